// Goal: what a run leaves behind is whole: the trace has every task and message
// once, and the decisions of every run are made again, identically, from its
// log; an altered log is caught at the altered line.
#include "executor/capture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "executor/replay_log.h"
#include "tests/executor/runs_for_tests.h"
#include "traces/native_trace_reader.h"
#include "traces/text_file.h"

namespace rrfp {
namespace {

std::string path_for(const std::string& name) {
  return testing::TempDir() + "rrfp_capture_" + std::to_string(getpid()) + "_" + name;
}

// Runs `input` and writes both files; the log is at `decisions`.
struct Captured {
  TestRun run;
  std::string trace = path_for("trace.jsonl");
  std::string decisions = path_for("decisions.jsonl");

  void go(const Case& input, int iterations = 2, int replicas = 1) {
    run.prepare(input, iterations, replicas);
    run.run();
    ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
    Capture capture(run.plan, {trace, decisions, "a run", {{"rrfp", "test"}}});
    for (const IterationRecord& record : run.sink->iterations) {
      ASSERT_TRUE(capture.on_iteration(record).ok());
    }
    const Result<void> finished = capture.finish();
    ASSERT_TRUE(finished.ok()) << finished.error().message;
  }
  void expect_replayed() {
    const Result<ReplayReport> report = replay_decision_log(decisions);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->difference) << *report->difference;
    EXPECT_EQ(report->iterations, static_cast<std::int64_t>(run.sink->iterations.size()));
    EXPECT_GT(report->decisions, 0);
  }
  ~Captured() {
    std::filesystem::remove(trace);
    std::filesystem::remove(decisions);
  }
};

Case anticipating_case() {
  Case input = chain_case(3, 6, true, 300 * kMicrosecond);
  input.policy.hint.name = "zb-h2";
  input.policy.anticipation = Anticipation{750, 500};
  input.memory.activation_bytes.assign(18, 1);
  input.memory.budget_bytes = {5, 3, 1};
  set_latency(input, 50 * kMicrosecond);
  return input;
}

TEST(Capture, TraceHasEveryTaskAndMessageOnce) {
  Captured captured;
  captured.go(anticipating_case());
  Result<NativeTraceReader> reader = NativeTraceReader::open(captured.trace);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ(reader->header().program.ranks(), 3);
  int tasks = 0;
  int messages = 0;
  int notices = 0;
  int credits = 0;
  TraceRecord record;
  while (true) {
    const Result<bool> more = reader->next(&record);
    ASSERT_TRUE(more.ok()) << more.error().message;
    if (!*more) break;
    if (const TraceTask* task = std::get_if<TraceTask>(&record)) {
      ++tasks;
      EXPECT_LE(task->ready_ns, task->decided_ns);
      EXPECT_LE(task->decided_ns, task->start_ns);
    }
    if (std::holds_alternative<TraceMessage>(record)) ++messages;
    if (const TraceNotice* notice = std::get_if<TraceNotice>(&record)) {
      ++notices;
      EXPECT_LE(notice->sent_ns, notice->seen_ns);
      EXPECT_LT(notice->sent_ns, notice->eta_ns);
    }
    if (const TraceCredit* credit = std::get_if<TraceCredit>(&record)) {
      ++credits;
      EXPECT_EQ(credit->to_stage, credit->from_stage + 1);
      EXPECT_LE(credit->sent_ns, credit->seen_ns);
    }
  }
  EXPECT_EQ(reader->dropped().total(), 0);
  EXPECT_EQ(tasks, 2 * 3 * 18);
  EXPECT_EQ(messages, 2 * 2 * 2 * 6);
  EXPECT_EQ(notices, messages) << "each of them was announced";
  EXPECT_EQ(credits, messages / 2) << "one for each activation";
}

TEST(Capture, DecisionsAreMadeAgainIdentically) {
  {
    Captured captured;
    captured.go(anticipating_case());
    captured.expect_replayed();
  }
  {
    Captured captured;
    captured.run.plan->core.adapt_expected = true;
    captured.run.plan->core.credits = 1;
    captured.go(anticipating_case());
    captured.expect_replayed();
  }
  {
    Captured captured;
    Case input = anticipating_case();
    input.tensor_parallel = {2, Coordination::kVote, 0, 0};
    set_latency(input, 50 * kMicrosecond);
    captured.go(input, 2, 2);
    captured.expect_replayed();
  }
  {
    Captured captured;
    Case input = chain_case(3, 6, false, 100 * kMicrosecond);
    input.policy.hint.name = "1f1b";
    input.policy.window = 1;
    input.network.mode = NetworkMode::kRendezvous;
    captured.go(input);
    captured.expect_replayed();
  }
}

TEST(Capture, AlteredLogIsCaughtAtTheLine) {
  Captured captured;
  captured.go(anticipating_case(), 1);
  const std::string text = *read_text_file(captured.decisions);
  // The first decision that starts something.
  const std::size_t start = text.find("\"action\":\"start\"");
  ASSERT_NE(start, std::string::npos);
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(start), '\n');
  std::string altered = text;
  altered.replace(start, 16, "\"action\":\"idle\"");
  std::ofstream(captured.decisions) << altered;
  Result<ReplayReport> report = replay_decision_log(captured.decisions);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_TRUE(report->difference);
  EXPECT_NE(report->difference->find("line " + std::to_string(line) + ": the log says"),
            std::string::npos)
      << *report->difference;

  // A line that is gone: the calls after it cannot have been, or are too few.
  std::size_t cut = text.find("\"call\":\"finished\"");
  ASSERT_NE(cut, std::string::npos);
  const std::size_t begin = text.rfind('\n', cut);
  const std::size_t end = text.find('\n', cut);
  std::ofstream(captured.decisions) << text.substr(0, begin) + text.substr(end);
  report = replay_decision_log(captured.decisions);
  EXPECT_TRUE(!report.ok() || report->difference || report->cut);

  // The same call twice.
  std::ofstream(captured.decisions)
      << text.substr(0, end) + text.substr(begin, end - begin) + text.substr(end);
  report = replay_decision_log(captured.decisions);
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find("cannot be made here"), std::string::npos)
      << report.error().message;
}

// What is on the disk after each iteration stays as it is, and can be read.
TEST(Capture, FilesGrowByEachIteration) {
  TestRun run;
  run.prepare(anticipating_case(), 4);
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  const std::string trace = path_for("grows.jsonl");
  const std::string decisions = path_for("grows.log");
  Capture capture(run.plan, {trace, decisions, "a run", {}});
  std::string trace_before;
  std::string decisions_before;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(capture.on_iteration(run.sink->iterations[static_cast<std::size_t>(i)]).ok());
    const std::string trace_now = *read_text_file(trace);
    const std::string decisions_now = *read_text_file(decisions);
    EXPECT_TRUE(trace_now.starts_with(trace_before));
    EXPECT_TRUE(decisions_now.starts_with(decisions_before));
    EXPECT_GT(trace_now.size(), trace_before.size());
    const Result<ReplayReport> report = replay_decision_log(decisions);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->iterations, i + 1);
    EXPECT_FALSE(report->cut);
    trace_before = trace_now;
    decisions_before = decisions_now;
  }
  EXPECT_EQ(capture.figures().size(), 4U);

  // Killed while it wrote the last iteration: wherever that was, the log is
  // good up to there, and says that it is cut.
  const std::size_t last = decisions_before.rfind("{\"iteration\":3");
  ASSERT_NE(last, std::string::npos);
  const std::size_t step = (decisions_before.size() - last) / 40;
  for (std::size_t cut = last + 1; cut + 1 < decisions_before.size(); cut += step) {
    const Result<ReplayReport> report =
        replay_decisions(std::string_view(decisions_before).substr(0, cut), "cut");
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->difference);
    EXPECT_GE(report->iterations, 3);
    if (report->iterations == 4) {
      EXPECT_TRUE(report->cut);
    }
  }
  // Cut in the middle is not cut at the end.
  const std::size_t second = decisions_before.find("{\"iteration\":1");
  const std::size_t line = decisions_before.rfind('\n', second - 2);
  std::string gap = decisions_before;
  gap.erase(line, second - 1 - line);
  EXPECT_FALSE(replay_decisions(gap, "gap").ok());
  std::filesystem::remove(trace);
  std::filesystem::remove(decisions);
}

TEST(Capture, FullDiskEndsTheRunAndNamesThePath) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  TestRun run;
  run.prepare(chain_case(2, 2, false, 100 * kMicrosecond), 3);
  auto capture = std::make_shared<Capture>(run.plan, CaptureFiles{"", "/dev/full", "", {}});
  const RunOutcome outcome = run_on_threads(
      run.plan, [](const Place&) { return std::make_unique<EmulatedDevice>(1, 0); }, capture,
      default_tuning(2), run.stop);
  EXPECT_EQ(outcome.end, RunEnd::kFault);
  EXPECT_NE(outcome.why.find("/dev/full"), std::string::npos) << outcome.why;
}

}  // namespace
}  // namespace rrfp
