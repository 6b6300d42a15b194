#include "executor/replay_log.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "executor/call_guard.h"
#include "executor/core_machines.h"
#include "executor/decision_log.h"
#include "traces/case_file.h"
#include "traces/json_cursor.h"
#include "traces/json_reader.h"
#include "traces/line_source.h"
#include "traces/prepared_case.h"

namespace rrfp {

namespace {

// One worker's machines, made again.
struct ReplayedWorker {
  std::unique_ptr<CoreMachines> machines;
  std::unique_ptr<CallGuard> guard;
  std::vector<CoreCall> owed;  // answers that the log has yet to show
};

// Makes `call` on `machines`; what it answers stands in machines.calls().
void make_call(const CoreCall& call, CoreMachines& machines, int microbatches) {
  switch (call.kind) {
    case CoreCall::Kind::kInput:
      return machines.on_input(call.task, call.other);
    case CoreCall::Kind::kNotice:
      return machines.on_notice(call.task, call.other, call.value);
    case CoreCall::Kind::kFinished:
      return machines.on_finished(call.task, call.at_ns);
    case CoreCall::Kind::kExpected:
      return machines.on_expected(call.other, static_cast<Kind>(call.flag), call.value);
    case CoreCall::Kind::kDecide:
      machines.decide(call.at_ns);
      return;
    case CoreCall::Kind::kVote:
      machines.on_lane(call.other / microbatches, call.other % microbatches, call.flag);
      return;
    case CoreCall::Kind::kAnnounced:
      return machines.on_announced(call.value, call.task);
    case CoreCall::Kind::kLaunch:
      machines.pop();
      return;
    case CoreCall::Kind::kOutput:
      return machines.on_output(call.other, static_cast<int>(call.value));
    case CoreCall::Kind::kCredit:
      return machines.on_credit(call.other);
    case CoreCall::Kind::kNext:
      machines.next(call.other);
      return;
    case CoreCall::Kind::kToldOf:
      return;  // an answer, not a call
  }
}

class LogReplay {
 public:
  Result<void> read_header(const JsonDocument& line);
  Result<void> read_line(const JsonDocument& line);
  const ReplayReport& report() const { return report_; }
  /// There are no more lines.
  Result<ReplayReport> end(const std::string& name);

 private:
  Result<void> begin_iteration(const JsonDocument& line);
  Result<void> read_call(const JsonDocument& line);
  void compare(const std::string& where, const CoreCall& call, ReplayedWorker& worker,
               const Program& program);

  Grid grid_;
  CoreOptions options_;
  std::vector<std::unique_ptr<const PreparedCase>> worlds_;  // by replica
  std::vector<ReplayedWorker> workers_;                      // by endpoint
  bool begun_ = false;
  std::int64_t missing_ = 0;  // lines of calls that are yet to come
  std::string last_;          // "iteration 3 of replica 0"
  ReplayReport report_;
};

Result<void> LogReplay::read_header(const JsonDocument& line) {
  JsonErrors errors(line.file);
  const JsonCursor in(errors, line.root);
  const JsonCursor schema = in.at("schema");
  if (schema.string() != kDecisionsSchema) schema.expected("\"rrfp.decisions/1\"");
  const JsonCursor grid = in.at("grid");
  grid_.replicas = grid.at("replicas").small_integer(1, 1 << 10);
  grid_.ranks = grid.at("ranks").small_integer(1, 1 << 10);
  grid_.lanes = grid.at("lanes").small_integer(1, ArrivalVote::kMostLanes);
  options_.credits = in.at("credits").small_integer(0, 1 << 30);
  options_.adapt_expected = in.at("adapt_expected").boolean();
  options_.record = true;
  if (!errors.ok()) return errors.status().error();
  begun_ = true;
  worlds_.resize(static_cast<std::size_t>(grid_.replicas));
  workers_.resize(static_cast<std::size_t>(grid_.size()));
  return {};
}

Result<void> LogReplay::read_line(const JsonDocument& line) {
  return line.root.find("iteration") != nullptr ? begin_iteration(line) : read_call(line);
}

Result<ReplayReport> LogReplay::end(const std::string& name) {
  if (!begun_) return Error{name + ": is empty; expected a decision log (rrfp.decisions/1)"};
  if (missing_ > 0) {
    report_.cut = last_ + " lacks its last " + std::to_string(missing_) +
                  (missing_ == 1 ? " line" : " lines");
  }
  return report_;
}

Result<void> LogReplay::begin_iteration(const JsonDocument& line) {
  if (missing_ > 0) {
    return Error{line.file + ": " + last_ + " lacks " + std::to_string(missing_) +
                 " lines; the log was altered"};
  }
  JsonErrors errors(line.file);
  const JsonCursor in(errors, line.root);
  const int replica = in.at("replica").small_integer(0, grid_.replicas - 1);
  const int iteration = in.at("iteration").small_integer(0, 1 << 30);
  missing_ = in.at("calls").integer({0, std::int64_t{1} << 40});
  if (!errors.ok()) return errors.status().error();
  last_ = "iteration " + std::to_string(iteration) + " of replica " + std::to_string(replica);
  if (replica == 0) ++report_.iterations;
  std::unique_ptr<const PreparedCase>& world = worlds_[static_cast<std::size_t>(replica)];
  const JsonValue* text = line.root.find("case");
  if (text == nullptr && world == nullptr) {
    return Error{line.file + ": the first iteration of a replica needs a \"case\""};
  }
  std::unique_ptr<const PreparedCase> made;
  if (text != nullptr) {
    const Result<Case> input = read_case(JsonDocument{line.file, *text});
    if (!input.ok()) return input.error();
    if (input->program.ranks() != grid_.ranks || input->tensor_parallel.lanes != grid_.lanes) {
      return Error{line.file + ": the case has other ranks or lanes than \"grid\""};
    }
    Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(*input);
    if (!prepared.ok()) return Error{line.file + ": " + prepared.error().message};
    made = std::move(*prepared);
  }
  for (int rank = 0; rank < grid_.ranks; ++rank) {
    for (int lane = 0; lane < grid_.lanes; ++lane) {
      const Place place{replica, rank, lane};
      ReplayedWorker& worker = workers_[static_cast<std::size_t>(grid_.endpoint(place))];
      if (made != nullptr) {
        auto machines = std::make_unique<CoreMachines>(*made, place, options_);
        if (worker.machines != nullptr) machines->adopt_means(*worker.machines);
        worker.machines = std::move(machines);
        worker.guard = std::make_unique<CallGuard>(*made, place);
      } else {
        worker.machines->reset();
        worker.guard->reset();
      }
      worker.owed.clear();
    }
  }
  if (made != nullptr) world = std::move(made);
  return {};
}

Result<void> LogReplay::read_call(const JsonDocument& line) {
  JsonErrors errors(line.file);
  const JsonCursor in(errors, line.root);
  const int endpoint = in.at("w").small_integer(0, grid_.size() - 1);
  if (!errors.ok()) return errors.status().error();
  ReplayedWorker& worker = workers_[static_cast<std::size_t>(endpoint)];
  if (worker.machines == nullptr) {
    return Error{line.file + ": a call before the first iteration of its replica"};
  }
  const Program& program =
      worlds_[static_cast<std::size_t>(grid_.place(endpoint).replica)]->program();
  const Result<CoreCall> call = call_from_json(line, program);
  if (!call.ok()) return call.error();
  if (--missing_ < 0) return Error{line.file + ": " + last_ + " has too many lines"};
  if (call->kind != CoreCall::Kind::kToldOf) {
    if (!worker.owed.empty()) {
      compare(line.file, *call, worker, program);
      return {};
    }
    if (const std::optional<std::string> why = worker.guard->refuse(*call, *worker.machines)) {
      return Error{line.file + ": this call cannot be made here: " + *why +
                   "; the log was cut or altered"};
    }
    ++report_.calls;
    make_call(*call, *worker.machines, program.microbatches());
    worker.owed = worker.machines->take_calls();
  }
  if (call->kind == CoreCall::Kind::kDecide) {
    ++report_.decisions;
    const CoreCall& answer = worker.owed.front();
    if (answer.action == Decision::Action::kStart) worker.guard->decided(answer.task);
  }
  compare(line.file, *call, worker, program);
  return {};
}

// `call` as the log has it must be the next that the core has said.
void LogReplay::compare(const std::string& where, const CoreCall& call, ReplayedWorker& worker,
                        const Program& program) {
  if (!worker.owed.empty() && worker.owed.front() == call) {
    worker.owed.erase(worker.owed.begin());
    return;
  }
  const auto text = [&](const CoreCall& of) {
    return to_text(call_to_json(of, program), JsonLayout::kCompact);
  };
  report_.difference = where + ": the log says " + text(call) + "; the core says " +
                       (worker.owed.empty() ? "nothing" : text(worker.owed.front()));
}

}  // namespace

namespace {

// `next_line` writes the next line and says whether there is one.
template <typename NextLine>
Result<ReplayReport> replay_lines(const std::string& name, const NextLine& next_line) {
  LogReplay replay;
  std::string_view line;
  std::int64_t number = 0;
  while (!replay.report().difference) {
    const Result<bool> more = next_line(&line);
    if (!more.ok()) return more.error();
    if (!*more) return replay.end(name);
    const Result<JsonDocument> document =
        parse_json(line, name + ": line " + std::to_string(++number));
    if (!document.ok()) {
      // Torn by whatever ended the run, if nothing follows.
      const Result<bool> follows = next_line(&line);
      if (number > 1 && follows.ok() && !*follows) return replay.end(name);
      return document.error();
    }
    Result<void> read = number == 1 ? replay.read_header(*document) : replay.read_line(*document);
    if (!read.ok()) return read.error();
  }
  return replay.report();
}

}  // namespace

Result<ReplayReport> replay_decision_log(const std::string& path) {
  Result<LineSource> lines = LineSource::open(path);
  if (!lines.ok()) return lines.error();
  return replay_lines(path, [&lines](std::string_view* line) { return lines->next(line); });
}

Result<ReplayReport> replay_decisions(std::string_view log, const std::string& name) {
  return replay_lines(name, [&log](std::string_view* line) -> Result<bool> {
    if (log.empty()) return false;
    const std::size_t end = std::min(log.find('\n'), log.size());
    *line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    return true;
  });
}

}  // namespace rrfp
