// Goal: replaying a recorded job reproduces the published analysis of two real
// ones, per step and overall; the graph follows its rules on a trace worked by
// hand; the importer says what it used and what it dropped.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/median_count.h"
#include "sim/replay_analysis.h"
#include "sim/replay_case.h"
#include "sim/replay_step.h"
#include "sim/simulate.h"
#include "traces/native_trace_writer.h"
#include "traces/straggler_csv.h"

namespace rrfp {
namespace {

using nlohmann::json;

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& end)
      : path_((std::filesystem::temp_directory_path() /
               ("rrfp-replay-" + std::to_string(::getpid()) + end))
                  .string()) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write_trace(const StragglerImport& imported, const std::string& path) {
  Result<NativeTraceWriter> writer = NativeTraceWriter::create(path, imported.header);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  for (const TraceRecord& record : imported.records) writer->add(record);
  ASSERT_TRUE(writer->finish().ok());
}

/// The largest relative difference so far, and where.
class Worst {
 public:
  void compare(double ours, double theirs, const std::string& where) {
    const double difference = std::abs(ours / theirs - 1.0);
    if (difference <= difference_) return;
    difference_ = difference;
    where_ = where + ": " + std::to_string(ours) + " and " + std::to_string(theirs);
  }
  double difference() const { return difference_; }
  const std::string& where() const { return where_; }

 private:
  double difference_ = 0;
  std::string where_;
};

const std::map<std::string, std::string>& published_types() {
  static const std::map<std::string, std::string> kNames = {{"F", "forward-compute"},
                                                            {"B", "backward-compute"},
                                                            {"F messages", "forward-pp-comm"},
                                                            {"B messages", "backward-pp-comm"}};
  return kNames;
}

struct Published {
  std::string job;
  double replay_over_measured;  ///< three digits
  double slowdown;
  double tolerance;  ///< of every single figure; 1% is asked for
};

void PrintTo(const Published& published, std::ostream* out) { *out << published.job; }

class PublishedAnalysisTest : public ::testing::TestWithParam<Published> {};

TEST_P(PublishedAnalysisTest, IsReproduced) {
  const std::filesystem::path folder = std::filesystem::path(RRFP_SHARED_DIR) / "data/bytedance";
  std::ifstream file(folder / ("result-" + GetParam().job + ".json"));
  if (!file) GTEST_SKIP() << "no shared data/bytedance";
  const json published = json::parse(file);
  const auto imported =
      import_straggler_csv((folder / ("trace-" + GetParam().job + ".csv.gz")).string());
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const TemporaryFile trace("-" + GetParam().job + ".jsonl.zst");
  write_trace(*imported, trace.path());
  const auto analysis = analyse_trace(trace.path());
  ASSERT_TRUE(analysis.ok()) << analysis.error().message;

  EXPECT_EQ(analysis->dropped.total(), 0);
  EXPECT_NEAR(analysis->replay_over_measured(), GetParam().replay_over_measured, 0.0005);
  EXPECT_NEAR(analysis->slowdown(), GetParam().slowdown, 0.0005);
  ASSERT_EQ(analysis->steps.size(), published["step_t_base"].size());

  Worst worst;
  int compared = 0;
  const auto compare = [&](double ours, const json& theirs, const std::string& where) {
    worst.compare(ours, theirs.get<double>(), where);
    ++compared;
  };
  const auto name_of = [&](const std::string& group) {
    const auto found = published_types().find(group);
    return found == published_types().end() ? group : found->second;
  };
  const int stages = imported->header.program.stages();
  const int replicas = imported->header.replicas;
  for (int stage = 0; stage < stages; ++stage) {
    compare(analysis->stage_slowdown(stage),
            published["blocking_decompose_by_stage"][std::to_string(stage)], "stage");
  }
  for (int replica = 0; replica < replicas; ++replica) {
    compare(analysis->replica_slowdown(replica),
            published["blocking_decompose_by_dp_rank"][std::to_string(replica)], "replica");
  }
  for (std::size_t group = 0; group < analysis->type_groups.size(); ++group) {
    const std::string name = name_of(analysis->type_groups[group]);
    const json& by_type = published["blocking_decompose_by_optype"];
    if (by_type.contains(name)) {
      compare(analysis->type_slowdown(static_cast<int>(group)), by_type[name], name);
    }
  }
  for (const StepAnalysis& step : analysis->steps) {
    const std::string key = std::to_string(step.iteration);
    const auto over_ideal = [&](std::int64_t ns) {
      return static_cast<double>(ns) / static_cast<double>(step.ideal_ns);
    };
    compare(static_cast<double>(step.measured_ns) / 1e9, published["step_t_base"][key],
            "measured " + key);
    compare(static_cast<double>(step.replay_ns) / 1e9, published["step_t_nodelay"][key],
            "replay " + key);
    compare(static_cast<double>(step.ideal_ns) / 1e9, published["step_t_noblk"][key],
            "ideal " + key);
    compare(over_ideal(step.replay_ns), published["blocking_step_slowdown"][key],
            "slowdown " + key);
    const json& by_stage = published["blocking_decompose_by_stage_per_step"][key];
    const json& by_replica = published["blocking_decompose_by_dp_rank_per_step"][key];
    const json& by_type = published["blocking_decompose_by_optype_per_step"][key];
    for (int i = 0; i < stages; ++i) {
      compare(over_ideal(step.by_stage_ns[i]), by_stage[std::to_string(i)], "stage of " + key);
    }
    for (int i = 0; i < replicas; ++i) {
      compare(over_ideal(step.by_replica_ns[i]), by_replica[std::to_string(i)],
              "replica of " + key);
    }
    for (std::size_t i = 0; i < analysis->type_groups.size(); ++i) {
      const std::string name = name_of(analysis->type_groups[i]);
      if (by_type.contains(name)) {
        compare(over_ideal(step.by_type_ns[i]), by_type[name], name + " of " + key);
      }
    }
  }
  EXPECT_GE(compared, 32 * (4 + 4 + 2 + 11));
  EXPECT_LT(worst.difference(), GetParam().tolerance) << worst.where();
  RecordProperty("worst", worst.where());
}

INSTANTIATE_TEST_SUITE_P(Jobs, PublishedAnalysisTest,
                         ::testing::Values(Published{"ST", 0.981, 1.1787, 1e-4},
                                           Published{"SE", 0.995, 1.5374, 2e-3}));

/// Two ranks, one microbatch: every task starts late, the receives are posted
/// early, and both ranks end with one collective.
TraceStep late_step() {
  TraceStep step;
  step.iteration = 3;
  const auto task = [&](int rank, Kind kind, std::int64_t start_ns, std::int64_t end_ns) {
    TraceTask made;
    made.iteration = 3;
    made.rank = rank;
    made.task = {rank, kind, 0};
    made.start_ns = start_ns;
    made.end_ns = end_ns;
    step.tasks.push_back(made);
  };
  task(0, Kind::kForward, 0, 10);
  task(0, Kind::kBackward, 60, 80);
  task(1, Kind::kForward, 16, 26);
  task(1, Kind::kBackward, 26, 46);
  TraceMessage activation;
  activation.iteration = 3;
  activation.to_stage = 1;
  activation.send = {12, 12, 15};
  activation.receive = {3, 12, 15};
  TraceMessage gradient;
  gradient.iteration = 3;
  gradient.kind = Kind::kBackward;
  gradient.from_stage = 1;
  gradient.send = {46, 46, 50};
  gradient.receive = {15, 46, 51};
  step.messages = {activation, gradient};
  TraceSpan sync;
  sync.iteration = 3;
  sync.name = "sync";
  sync.group = "world";
  sync.start_ns = 80;
  sync.end_ns = 100;
  step.spans = {sync, sync};
  step.spans[1].rank = 1;
  step.spans[1].start_ns = 50;
  return step;
}

TraceHeader two_ranks() {
  ProgramSpec spec;
  spec.ranks = 2;
  spec.microbatches = 1;
  spec.stages.resize(2);
  spec.stages[1].rank = 1;
  spec.stages[1].predecessors = {0};
  return TraceHeader(*Program::create(spec));
}

std::vector<std::int64_t> recorded(const ReplayStep& step) {
  std::vector<std::int64_t> ns;
  for (const ReplayOperation& operation : step.operations()) ns.push_back(operation.recorded_ns);
  return ns;
}

TEST(ReplayTest, LeavesLaunchDelaysOutAndKeepsTransfers) {
  ReplayTypes types;
  const auto step = ReplayStep::create(two_ranks(), late_step(), &types);
  ASSERT_TRUE(step.ok()) << step.error().message;
  EXPECT_EQ(step->measured_ns(), 100);
  std::vector<std::int64_t> end_ns(step->operations().size());
  EXPECT_EQ(step->run(recorded(*step), end_ns), 88);
  const auto end_of = [&](const std::string& type, int stage) {
    for (std::size_t i = 0; i < end_ns.size(); ++i) {
      const ReplayOperation& operation = step->operations()[i];
      if (types.name(operation.type) == type && operation.stage == stage) return end_ns[i];
    }
    return std::int64_t{-1};
  };
  EXPECT_EQ(end_of("F receive", 1), 13);
  EXPECT_EQ(end_of("F", 1), 23);
  EXPECT_EQ(end_of("B send", 1), 47);
  EXPECT_EQ(end_of("B receive", 0), 48);
  EXPECT_EQ(end_of("B", 0), 68);
  EXPECT_EQ(end_of("sync", 0), 88);
  EXPECT_EQ(end_of("sync", 1), 88);
}

TEST(ReplayTest, SendsOfOneKindFollowEachOther) {
  ProgramSpec spec = two_ranks().program.spec();
  spec.microbatches = 2;
  const TraceHeader header(*Program::create(spec));
  TraceStep step;
  for (const int m : {0, 1}) {
    TraceTask task;
    task.task.microbatch = m;
    task.start_ns = 10 * m;
    task.end_ns = 10 * m + 10;
    step.tasks.push_back(task);
    TraceMessage message;
    message.to_stage = 1;
    message.microbatch = m;
    message.send = {10 * m + 10, 0, m == 0 ? 40 : 45};
    message.receive = {m == 0 ? 0 : 40, 0, message.send.done_ns};
    step.messages.push_back(message);
  }
  ReplayTypes types;
  const auto replayed = ReplayStep::create(header, step, &types);
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  EXPECT_EQ(replayed->run(recorded(*replayed)), 45);
}

TEST(ReplayTest, TraceOriginMeasuresFromTheFirstRecord) {
  TraceHeader header = two_ranks();
  header.origin = "trace";
  TraceStep step = late_step();
  step.tasks[0].start_ns = 2;
  ReplayTypes types;
  EXPECT_EQ(ReplayStep::create(header, step, &types)->measured_ns(), 98);
}

TEST(ReplayTest, AnOrderThatContradictsItselfIsAnError) {
  TraceStep step = late_step();
  step.tasks[1].start_ns = -30;  // B of stage 0 before its F
  step.tasks[1].end_ns = -10;
  ReplayTypes types;
  const auto replayed = ReplayStep::create(two_ranks(), step, &types);
  ASSERT_FALSE(replayed.ok());
  EXPECT_NE(replayed.error().message.find("iteration 3"), std::string::npos);
}

TEST(ReplayTest, OneStepOfItsOwnMeansIsItsOwnIdeal) {
  const TemporaryFile trace("-own.jsonl");
  StragglerImport made{two_ranks(), {}, {}};
  const TraceStep step = late_step();
  for (const TraceTask& task : step.tasks) made.records.push_back(task);
  for (const TraceMessage& message : step.messages) made.records.push_back(message);
  for (const TraceSpan& span : step.spans) made.records.push_back(span);
  write_trace(made, trace.path());
  const auto analysis = analyse_trace(trace.path());
  ASSERT_TRUE(analysis.ok()) << analysis.error().message;
  EXPECT_DOUBLE_EQ(analysis->replay_over_measured(), 0.88);
  EXPECT_DOUBLE_EQ(analysis->slowdown(), 1.0);
  EXPECT_DOUBLE_EQ(analysis->stage_slowdown(1), 1.0);

  made.records.push_back(step.tasks[0]);
  std::get<TraceTask>(made.records.back()).iteration = 4;
  made.records.push_back(step.tasks[1]);
  write_trace(made, trace.path());
  const auto scattered = analyse_trace(trace.path());
  ASSERT_FALSE(scattered.ok());
  EXPECT_NE(scattered.error().message.find("iteration 3 do not stand together"), std::string::npos);
}

/// The recorded order as a case, between what stands before and after it.
TEST(ReplayCaseTest, FrameAndCaseGiveTheStepBack) {
  const TraceHeader header = two_ranks();
  const TraceStep step = late_step();
  const auto made = replay_case(header, step, 0);
  ASSERT_TRUE(made.ok()) << made.error().message;
  const auto result = simulate(*made);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->makespan_ns, 68);
  const auto frame = ReplayFrame::create(header, step);
  ASSERT_TRUE(frame.ok()) << frame.error().message;
  EXPECT_EQ(frame->head_ns(), 0);
  EXPECT_EQ(frame->step_ns(std::vector<std::int64_t>{68, 43}), 88);

  TraceStep framed = step;
  TraceSpan gather = step.spans[0];
  gather.name = "gather";
  gather.start_ns = -9;
  gather.end_ns = -2;
  framed.spans.push_back(gather);
  TraceSpan pause = gather;  // between F and B of rank 0
  pause.group.clear();
  pause.start_ns = 30;
  pause.end_ns = 34;
  framed.spans.push_back(pause);
  const auto with_head = ReplayFrame::create(header, framed);
  EXPECT_EQ(with_head->head_ns(), 7);
  EXPECT_EQ(with_head->step_ns(std::vector<std::int64_t>{68, 43}), 95);
  const auto paused = replay_case(header, framed, 0);
  EXPECT_EQ(paused->duration_ns[paused->program.task_id(0, Slot::kBackward, 0)], 24);

  framed.tasks.pop_back();
  const auto incomplete = replay_case(header, framed, 0);
  ASSERT_FALSE(incomplete.ok());
  EXPECT_NE(incomplete.error().message.find("iteration 3, replica 0: 1B0 is missing"),
            std::string::npos);
}

/// The simulator's own engine on real steps is within 1% of the replay.
TEST(ReplayCaseTest, CasesOfRealStepsRunAsRecorded) {
  const std::filesystem::path folder = std::filesystem::path(RRFP_SHARED_DIR) / "data/bytedance";
  const auto imported = import_straggler_csv((folder / "trace-ST.csv.gz").string());
  if (!imported.ok()) GTEST_SKIP() << imported.error().message;
  const TemporaryFile trace("-cases.jsonl");
  write_trace(*imported, trace.path());
  Result<TraceStepReader> reader = TraceStepReader::open(trace.path());
  ASSERT_TRUE(reader.ok());
  const TraceHeader& header = reader->header();
  TraceStep step;
  Worst worst;
  while (*reader->next(&step)) {
    ReplayTypes types;
    const auto replayed = ReplayStep::create(header, step, &types);
    const auto frame = ReplayFrame::create(header, step);
    ASSERT_TRUE(replayed.ok() && frame.ok());
    std::vector<std::int64_t> end_ns;
    for (int replica = 0; replica < header.replicas; ++replica) {
      const auto made = replay_case(header, step, replica);
      ASSERT_TRUE(made.ok()) << made.error().message;
      const auto result = simulate(*made);
      ASSERT_TRUE(result.ok() && result->completed);
      for (const RankResult& rank : result->ranks) end_ns.push_back(rank.end_ns.back());
    }
    worst.compare(static_cast<double>(frame->step_ns(end_ns)),
                  static_cast<double>(replayed->run(recorded(*replayed))),
                  std::to_string(step.iteration));
  }
  EXPECT_LT(worst.difference(), 0.01) << worst.where();
}

TEST(MedianCountTest, IsTheMedian) {
  MedianCount count;
  EXPECT_EQ(count.median(), 0);
  for (const std::int64_t ns : {9, 1, 5, 2000}) count.add(ns);
  EXPECT_EQ(count.median(), 7);
  count.add(2000);
  EXPECT_EQ(count.median(), 9);
  for (const std::int64_t ns :
       {std::int64_t{8191}, std::int64_t{8192}, std::int64_t{123456789}, std::int64_t{1} << 61}) {
    MedianCount one;
    one.add(ns);
    EXPECT_NEAR(static_cast<double>(one.median()), static_cast<double>(ns),
                static_cast<double>(ns) / 8192);
  }
}

}  // namespace
}  // namespace rrfp
