// Goal: the end of an iteration of several replicas, worked by hand.
#include "sim/data_parallel.h"

#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "traces/prepared_case.h"

namespace rrfp {
namespace {

// One rank per stage, chain, `microbatches` of F 10, B 20 (or I 10, W 10).
Case chain(int stages, int microbatches, bool split) {
  ProgramSpec spec;
  spec.ranks = stages;
  spec.microbatches = microbatches;
  spec.split_backward = split;
  for (int stage = 0; stage < stages; ++stage) {
    StageSpec& added = spec.stages.emplace_back();
    added.rank = stage;
    if (stage > 0) added.predecessors.push_back(stage - 1);
  }
  Case given{"chain", *Program::create(spec)};
  given.duration_ns.assign(static_cast<std::size_t>(given.program.task_ids()), 10);
  if (!split) {
    for (int stage = 0; stage < stages; ++stage) {
      for (int m = 0; m < microbatches; ++m) {
        given.duration_ns[static_cast<std::size_t>(
            given.program.task_id(stage, Slot::kBackward, m))] = 20;
      }
    }
  }
  given.policy.hint.name = "1f1b";
  given.policy.window = 1;
  return given;
}

ReplicaEnds ends_of(const Case& given) {
  const auto prepared = PreparedCase::create(given);
  EXPECT_TRUE(prepared.ok());
  EagerEngine engine(**prepared, {});
  engine.run();
  const ReplicaEnds fast = replica_ends((*prepared)->program(), engine);
  // The record of tasks must say the same.
  const Result<SimulationResult> result = simulate(given);
  EXPECT_TRUE(result.ok());
  const ReplicaEnds slow = replica_ends((*prepared)->program(), *result);
  EXPECT_EQ(fast.accumulated_ns, slow.accumulated_ns);
  EXPECT_EQ(fast.makespan_ns, slow.makespan_ns);
  return fast;
}

// Two stages, one microbatch: F 0-10, F 10-20, B 20-40, B 40-60.
TEST(DataParallel, OneReplicaSynchronisesItself) {
  const std::vector<ReplicaEnds> ends = {ends_of(chain(2, 1, false))};
  EXPECT_EQ(ends[0].accumulated_ns, (std::vector<std::int64_t>{60, 40}));
  EXPECT_EQ(iteration_end_ns(ends, {}, 0), 60);
  // Stage 1 starts at 40 and may take 25 before it is the last.
  EXPECT_EQ(iteration_end_ns(ends, std::vector<std::int64_t>{5, 25}, 0), 65);
  EXPECT_EQ(iteration_end_ns(ends, std::vector<std::int64_t>{5, 26}, 7), 73);
}

// Stage by stage the last replica counts, which need not be the same one.
TEST(DataParallel, LastReplicaOfEachStageStartsItsAllReduce) {
  Case first = chain(2, 1, false);
  Case second = chain(2, 1, false);
  const auto length = [](Case& given, int stage, Slot slot) -> std::int64_t& {
    return given.duration_ns[static_cast<std::size_t>(given.program.task_id(stage, slot, 0))];
  };
  length(first, 0, Slot::kBackward) = 100;  // ends: stage 1 at 40, stage 0 at 140
  length(second, 1, Slot::kBackward) = 50;  // ends: stage 1 at 70, stage 0 at 90
  const std::vector<ReplicaEnds> ends = {ends_of(first), ends_of(second)};
  EXPECT_EQ(iteration_end_ns(ends, std::vector<std::int64_t>{1, 1}, 0), 141);
  EXPECT_EQ(iteration_end_ns(ends, std::vector<std::int64_t>{1, 80}, 0), 150);
  EXPECT_EQ(iteration_end_ns(ends, std::vector<std::int64_t>{1, 80}, 1000), 1150);
}

TEST(DataParallel, SplitBackwardSynchronisesAfterTheLastW) {
  Case given = chain(1, 2, true);
  given.policy.hint.order = {{{0, Kind::kForward, 0},
                              {0, Kind::kForward, 1},
                              {0, Kind::kInputGradient, 1},
                              {0, Kind::kWeightGradient, 1},
                              {0, Kind::kInputGradient, 0},
                              {0, Kind::kWeightGradient, 0}}};
  EXPECT_EQ(ends_of(given).accumulated_ns, (std::vector<std::int64_t>{60}));
}

// Microbatch 1 is fused and ends at 60, after the W of microbatch 0 at 40.
TEST(DataParallel, FusedBackwardCountsAsAnAccumulation) {
  Case given = chain(1, 2, true);
  given.policy.hint.order = {{{0, Kind::kForward, 0},
                              {0, Kind::kInputGradient, 0},
                              {0, Kind::kForward, 1},
                              {0, Kind::kWeightGradient, 0},
                              {0, Kind::kBackward, 1}}};
  EXPECT_EQ(ends_of(given).accumulated_ns, (std::vector<std::int64_t>{60}));
  given.policy.hint.order = {{{0, Kind::kForward, 0},
                              {0, Kind::kInputGradient, 0},
                              {0, Kind::kForward, 1},
                              {0, Kind::kBackward, 1},
                              {0, Kind::kWeightGradient, 0}}};
  EXPECT_EQ(ends_of(given).accumulated_ns, (std::vector<std::int64_t>{60}));
}

// A frozen stage has nothing to sum: its own synchronisation time is not paid,
// but its tasks still hold up the end.
TEST(DataParallel, StageWithoutWeightGradientHasNoAllReduce) {
  Case given = chain(2, 1, false);
  ProgramSpec spec = given.program.spec();
  spec.stages[0].backward = Backward::kNone;
  Case frozen{"frozen", *Program::create(spec)};
  frozen.duration_ns = given.duration_ns;
  frozen.policy = given.policy;
  frozen.policy.hint.name = "bf";
  frozen.policy.window = kNoWindow;
  const std::vector<ReplicaEnds> ends = {ends_of(frozen)};
  EXPECT_EQ(ends[0].accumulated_ns, (std::vector<std::int64_t>{kNoGradient, 40}));
  EXPECT_EQ(iteration_end_ns(ends, std::vector<std::int64_t>{500, 3}, 0), 43);
}

}  // namespace
}  // namespace rrfp
