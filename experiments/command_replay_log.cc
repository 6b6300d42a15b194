// rrfp replay-log: makes the decisions of a run again, from its log.
#include <array>
#include <ostream>

#include "executor/replay_log.h"
#include "experiments/command.h"
#include "experiments/file_kind.h"
#include "experiments/text_list.h"

namespace rrfp {

namespace {

constexpr std::array<OptionRow, 0> kOptions = {};

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const Result<std::string> path = options.operand("LOG (a decision log)");
  if (!path.ok()) return path.error();
  const Result<ReplayReport> report = replay_decision_log(*path);
  if (!report.ok()) {
    constexpr FileKind kTaken[] = {FileKind::kDecisions};
    return explain_kind(report.error(), *path, kTaken);
  }
  if (report->difference) {
    terminal.out << "first difference: " << *report->difference << "\n";
    return ExitStatus::kFailed;
  }
  terminal.out << "identical: " << report->decisions << " decisions and "
               << report->calls - report->decisions << " other calls in "
               << counted(report->iterations, "iteration") << "\n";
  if (report->cut) {
    terminal.out << "the log is cut: " << *report->cut << ", for its run was ended meanwhile\n";
  }
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kReplayLogCommand;
const Command kReplayLogCommand = {
    "replay-log",
    "makes the decisions of a run again, from its decision log",
    "LOG",
    "LOG is what rrfp run --decisions wrote. Its calls are fed to the scheduler core again; every\n"
    "answer must be the same, or the first difference is printed and the status is 1.",
    "rrfp replay-log /tmp/decisions.jsonl",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
