// What the commands have in common that run as a job, in threads or in several
// processes: they get ready alone, meet, make sure that all can go on and run
// the same, and take part; and what one of them cannot do ends all of them.
//
// Invariants
//  1. What one process finds before or while it meets ends all at once, with
//     its words, whatever the command or the options are that were wrong.
//  2. Every option of a command is compared between processes, but as its row
//     says, see OptionRow::Alike.
//
// Thread safety: one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "executor/job.h"
#include "experiments/command.h"
#include "experiments/guarded.h"
#include "experiments/run_input.h"

namespace rrfp {

/// What a process has found before it meets the others, for them to check.
struct JobInputs {
  Grid grid;    ///< which says how many processes there must be
  Terms files;  ///< what was read, by what it holds
};

class JobCommand {
 public:
  JobCommand(std::string_view name, TransportKind transport, Terminal& terminal);

  /// Meets the others. `able`: whether this process got ready; only then are
  /// `options` and `inputs` looked at.
  Result<void> meet(const Result<void>& able, const Options* options, const JobInputs& inputs);
  TransportKind transport() const { return transport_; }
  /// REQUIRES: they have met.
  Job& job() { return *job_; }
  /// After an error of this process, or of all: tells it where nobody else does,
  /// and leaves the job, or ends it.
  Result<ExitStatus> fail(const Error& error);

 private:
  void note_threads(const Grid& grid);
  void on_slow(const Result<void>& able, const std::string& who_waits);
  [[noreturn]] void on_late(const Result<void>& able, const std::string& who_waited);
  void tell(const std::string& message);

  const std::string name_;
  const TransportKind transport_;
  Terminal& terminal_;
  std::optional<Job> job_;
  bool told_ = false;  // what is wrong here, before the others came
};

/// `prepare`: () -> Result<P> where P has `JobInputs inputs`; what a process
/// does alone. `take_part`: (Job&, P&) -> Result<ExitStatus>; ends with
/// Job::close() but for an error.
template <typename Prepare, typename TakePart>
Result<ExitStatus> run_as_job(std::string_view name, const Options& options, Terminal& terminal,
                              const Prepare& prepare, const TakePart& take_part) {
  const Result<TransportKind> kind = transport_of(options);
  JobCommand command(name, kind.ok() ? *kind : TransportKind::kAuto, terminal);
  auto mine = without_exceptions(prepare);
  Result<void> able;
  able = mine.ok() ? Job::check_launch(command.transport(), mine->inputs.grid) : mine.error();
  if (!kind.ok()) able = kind.error();
  const Result<void> met = command.meet(able, &options, able.ok() ? mine->inputs : JobInputs());
  if (!met.ok()) return command.fail(met.error());
  Result<ExitStatus> status =
      without_exceptions([&]() -> Result<ExitStatus> { return take_part(command.job(), *mine); });
  return status.ok() ? status : command.fail(status.error());
}

/// For the process of a job whose command line cannot be understood: the others
/// learn it. `transport`: what it says still.
Result<ExitStatus> fail_as_job(std::string_view name, TransportKind transport, const Error& error,
                               Terminal& terminal);

}  // namespace rrfp
