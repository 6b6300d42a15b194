#include "experiments/job_command.h"

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "executor/launcher.h"
#include "experiments/version.h"

namespace rrfp {

namespace {

// So long a process that cannot go on waits for others to tell it to.
constexpr std::int64_t kPatienceToTellNs = 10'000'000'000;

// `of`, in milliseconds, where the command has it and it is given. REQUIRES: it can be read.
std::optional<std::int64_t> given_ns(const Options& options, const OptionRow& of) {
  for (const OptionRow& row : options.rows()) {
    if (row.name != of.name) continue;
    const Result<std::optional<std::int64_t>> given_ms = options.integer(row.name);
    if (given_ms.ok() && *given_ms) return **given_ms * 1'000'000;
  }
  return std::nullopt;
}

// What must be the same in all processes. Here because a new option is compared unless its row
// says otherwise.
Terms terms_of(std::string_view command, const Options& options, const JobInputs& inputs) {
  Terms terms = {{"rrfp", version_text()},
                 {"letters of", std::to_string(sizeof(Letter)) + " bytes"},
                 {"command", std::string(command)}};
  terms.insert(terms.end(), inputs.files.begin(), inputs.files.end());
  for (const OptionRow& row : options.rows()) {
    if (row.alike == OptionRow::Alike::kNot) continue;
    Term term{"--" + std::string(row.name), options.text(row.name)};
    if (term.value && row.alike == OptionRow::Alike::kWhetherGiven) term.value = "";
    terms.push_back(std::move(term));
  }
  return terms;
}

bool is_on_cuda(const Options& options) {
  for (const OptionRow& row : options.rows()) {
    if (row.name != "device") continue;
    const std::string device = options.text_or("device", "");
    return device == "cuda" || device == "synthetic";
  }
  return false;
}

}  // namespace

JobCommand::JobCommand(std::string_view name, TransportKind transport, Terminal& terminal)
    : name_(name), transport_(transport), terminal_(terminal) {}

// In one piece, for other processes write as well.
void JobCommand::tell(const std::string& message) {
  terminal_.err << "rrfp " + name_ + ": " + message + "\n" << std::flush;
}

void JobCommand::on_slow(const Result<void>& able, const std::string& who_waits) {
  if (told_) return;
  told_ = !able.ok();
  if (!able.ok()) return tell(able.error().message + "\n(" + who_waits + ", to tell them)");
  const bool unasked =
      !job_ && transport_ == TransportKind::kAuto && Job::meets_over_tcp(transport_);
  tell(who_waits + (unasked ? "; --transport threads would run all in this process" : ""));
}

// Whoever started this by a launcher may expect a process for each worker.
void JobCommand::note_threads(const Grid& grid) {
  const Result<Launch> launch = find_launch(environment);
  if (grid.size() == 1 || !launch.ok() || launch->by == Launch::By::kNobody) return;
  const std::string all = "all " + std::to_string(grid.size()) + " workers";
  if (launch->processes == 1) {
    terminal_.err << "note: one process was started, so " + all + " run in it as threads; start " +
                         std::to_string(grid.size()) + " processes to give each worker its own\n";
  } else if (launch->process == 0) {
    terminal_.err << "note: --transport threads: each process that the launcher started runs " +
                         all + " by itself, as threads\n";
  }
}

// The launcher, if any, ends the others.
void JobCommand::on_late(const Result<void>& able, const std::string& who_waited) {
  if (!told_) tell(able.ok() ? who_waited : able.error().message);
  std::_Exit(static_cast<int>(ExitStatus::kWrong));
}

Result<void> JobCommand::meet(const Result<void>& able, const Options* options,
                              const JobInputs& inputs) {
  JobMeeting meeting;
  meeting.cuda = options != nullptr && is_on_cuda(*options);
  if (!able.ok()) {
    meeting.patience_ns = kPatienceToTellNs;
  } else {
    const std::int64_t in_run_ns = given_ns(*options, kPatienceRow).value_or(0);
    meeting.patience_ns = std::max(meeting.patience_ns, in_run_ns);
    meeting.agreement_patience_ns =
        given_ns(*options, kAgreeRow).value_or(std::max(meeting.agreement_patience_ns, in_run_ns));
  }
  // The job keeps it.
  meeting.on_slow = [this, able](const std::string& who_waits) { on_slow(able, who_waits); };
  meeting.on_late = [this, able](const std::string& who_waited) { on_late(able, who_waited); };
  meeting.on_progress = [this](const std::string& what) { tell(what); };
  Result<Job> opened = Job::open(transport_, meeting);
  if (!opened.ok()) return able.ok() ? opened.error() : able.error();
  job_.emplace(std::move(*opened));
  if (able.ok() && job_->processes() == nullptr) note_threads(inputs.grid);
  if (Result<void> all_able = job_->agree(able); !all_able.ok()) return all_able;
  if (Result<void> alike = job_->agree_on(terms_of(name_, *options, inputs)); !alike.ok()) {
    return alike;
  }
  return job_->agree(job_->check_size(inputs.grid));
}

Result<ExitStatus> JobCommand::fail(const Error& error) {
  terminal_.out << std::flush;
  if (!job_) {
    // Nobody else knows. Whom mpirun has started is spoken for by its caller.
    if (!Job::meets_over_tcp(transport_)) return error;
    if (!told_) tell(error.message);
    return ExitStatus::kWrong;
  }
  if (job_->processes() == nullptr) return error;
  if (job_->failed_alike()) {
    // What processes that MPI starts write comes together, and once is enough.
    if (job_->speaks() || job_->transport() == TransportKind::kTcp) tell(error.message);
    job_->leave();
    return ExitStatus::kWrong;
  }
  tell("process " + std::to_string(job_->processes()->transport().endpoint()) + ": " +
       error.message);
  job_->abort(static_cast<int>(ExitStatus::kWrong), error.message);
  return ExitStatus::kWrong;
}

Result<ExitStatus> fail_as_job(std::string_view name, TransportKind transport, const Error& error,
                               Terminal& terminal) {
  JobCommand command(name, transport, terminal);
  const Result<void> met = command.meet(error, nullptr, {});
  return command.fail(met.ok() ? error : met.error());
}

}  // namespace rrfp
