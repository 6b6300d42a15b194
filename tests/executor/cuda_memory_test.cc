// Goal: memory of a device is allocated before the first task and is enough for
// the rest: whatever order the budget lets through has room for its activations,
// a fixed order has what it takes and not more, and every tensor has a block,
// whichever come first. What does not fit is said
// in one sentence. On the double of a device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <numeric>

#include "executor/cuda_blocks.h"
#include "executor/cuda_double_streams.h"
#include "executor/cuda_slots.h"
#include "executor/cuda_stashes.h"
#include "scheduler_core/random.h"
#include "scheduler_core/schedule.h"
#include "tests/executor/random_order_for_tests.h"

namespace rrfp {
namespace {

constexpr int kMicrobatches = 12;

std::size_t free_bytes() {
  std::size_t left = 0;
  std::size_t all = 0;
  EXPECT_EQ(cudaMemGetInfo(&left, &all), cudaSuccess);
  return left;
}

class CudaMemoryUse : public testing::Test {
 protected:
  void SetUp() override { DoubleMachine::get().reset(); }
  void TearDown() override {
    EXPECT_EQ(DoubleMachine::get().objection(), "");
    DoubleMachine::get().reset();
  }
};

// --- Activations.

ModelSpec spec_of(int stages) {
  ModelSpec spec;
  spec.width = 8;
  spec.heads = 2;
  spec.mlp_width = 16;
  spec.blocks = stages;
  spec.longest = 64;
  return spec;
}

// What microbatches of drawn lengths take, and stashes with room for it.
struct Drawn {
  Drawn(const OneRank& shape, RandomStream& random)
      : program(program_on_one_rank(shape, kMicrobatches)),
        spec(spec_of(shape.stages)),
        cuts(*cut_model(spec, program)) {
    for (int m = 0; m < kMicrobatches; ++m) {
      lengths.push_back({1 + static_cast<int>(random.below(64))});
    }
    for (const StageCut& cut : cuts) {
      for (const std::vector<int>& of : lengths) {
        const StashBytes bytes = cuda_stash_bytes(spec, cut, of);
        activation.push_back(bytes.forward);
        stash.push_back(bytes.weight);
      }
    }
  }

  MemoryModel model() const { return {activation, stash}; }
  Result<void> begin(CudaStashes& stashes, const StashLimits& limits) const {
    const std::vector<std::span<const int>> of(lengths.begin(), lengths.end());
    return stashes.begin(spec, cuts, of, program, 0, limits);
  }
  Result<void> keep(CudaStashes& stashes, int stage, int microbatch) const {
    return stashes.keep(spec, cuts[static_cast<std::size_t>(stage)],
                        lengths[static_cast<std::size_t>(microbatch)], microbatch);
  }
  std::int64_t all_bytes() const {
    return std::accumulate(activation.begin(), activation.end(), std::int64_t{0});
  }

  Program program;
  ModelSpec spec;
  std::vector<StageCut> cuts;
  std::vector<std::vector<int>> lengths;  // by microbatch, of the one root
  std::vector<std::int64_t> activation;
  std::vector<std::int64_t> stash;
};

// Runs tasks in an order drawn among those that `admission` lets through; the error of the first F
// that has no room. Forwards are drawn more often: memory is to be full.
Result<void> run_in_any_order(const Drawn& drawn, Admission admission, CudaStashes& stashes,
                              RandomStream& random) {
  const Program& program = drawn.program;
  RandomOrder order(program, kMicrobatches);
  while (!order.all_ran()) {
    const TaskId task = order.draw(random);
    const int stage = program.stage_of(task);
    const int m = program.microbatch_of(task);
    if (program.slot_of(task) == Slot::kForward) {
      if (!admission.admits(stage, m)) continue;
      admission.take(stage, m);
      Result<void> kept = drawn.keep(stashes, stage, m);
      if (!kept.ok()) return kept;
    } else {
      if (random.below(8) != 0) continue;
      const Returns part = returned_by(program, task);
      stashes.give_back(stage, m, part);
      admission.give_back(stage, m, part);
      EXPECT_EQ(stashes.held_bytes(), admission.held_bytes());
    }
    order.ran();
  }
  return {};
}

TEST_F(CudaMemoryUse, WhateverTheBudgetLetsThroughHasRoom) {
  for (const OneRank& shape :
       {OneRank{1, false, false}, OneRank{1, true, false}, OneRank{1, true, true},
        OneRank{3, false, true}, OneRank{3, true, false}, OneRank{3, true, true}}) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      RandomStream random(DrawKey{.seed = seed});
      const Drawn drawn(shape, random);
      const std::int64_t all = drawn.all_bytes();
      const std::int64_t least = least_budget(drawn.program, drawn.activation, 0);
      std::optional<std::int64_t> budget =
          least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(all)));
      if (seed % 8 == 0) budget = least;
      if (seed % 8 == 1) budget = std::nullopt;
      CudaStashes stashes;
      ASSERT_TRUE(drawn.begin(stashes, {.budget_bytes = budget}).ok());
      EXPECT_LE(stashes.reserved_bytes(), all);
      const std::size_t left = free_bytes();
      const Result<void> ran =
          run_in_any_order(drawn, {drawn.program, 0, drawn.model(), budget}, stashes, random);
      ASSERT_TRUE(ran.ok()) << "stages " << shape.stages << ", split " << shape.split
                            << ", ordered " << shape.ordered << ", seed " << seed << ": "
                            << ran.error().message;
      EXPECT_EQ(free_bytes(), left) << "memory was allocated while tasks ran";
    }
  }
}

// What is planted: a scheduler that does not keep to its budget.
TEST_F(CudaMemoryUse, MoreThanTheBudgetLetsThroughIsAnErrorInWords) {
  RandomStream random(DrawKey{.seed = 1});
  const Drawn drawn(OneRank{}, random);
  const std::int64_t least = least_budget(drawn.program, drawn.activation, 0);
  CudaStashes stashes;
  ASSERT_TRUE(drawn.begin(stashes, {.budget_bytes = least}).ok());
  const Result<void> ran =
      run_in_any_order(drawn, {drawn.program, 0, drawn.model(), 4 * least}, stashes, random);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("more than the order and the memory budget of the rank let "),
            std::string::npos)
      << ran.error().message;
}

// Any order that runs each F before its I and that before its W, with backwards fused here and
// there (`fused`: where the program allows it).
std::vector<Task> random_order(const Program& program, RandomStream& random, bool fused = true) {
  std::vector<Task> next;
  for (int stage = 0; stage < program.stages(); ++stage) {
    for (int m = 0; m < kMicrobatches; ++m) next.push_back({stage, Kind::kForward, m});
  }
  std::vector<Task> order;
  while (!next.empty()) {
    const std::size_t at = random.below(next.size());
    Task& task = next[at];
    if (task.kind != Kind::kForward && random.below(2) != 0) continue;
    order.push_back(task);
    if (task.kind == Kind::kForward) {
      const bool whole = !program.split_backward() || (fused && random.below(3) == 0);
      task.kind = whole ? Kind::kBackward : Kind::kInputGradient;
    } else if (task.kind == Kind::kInputGradient) {
      task.kind = Kind::kWeightGradient;
    } else {
      next.erase(next.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  return order;
}

// A rank that runs what is among the first `window` tasks not yet begun, and sees a task end as
// late as it can. The error of the first F that has no room.
Result<void> run_within(const Drawn& drawn, const StashLimits& limits, CudaStashes& stashes,
                        RandomStream& random) {
  std::vector<bool> begun(limits.order.size());
  std::vector<bool> ended(static_cast<std::size_t>(drawn.program.task_ids()));
  std::deque<TaskId> held;
  const auto may_begin = [&](std::size_t position) {
    const TaskId task = drawn.program.find(limits.order[position]);
    const TaskId before = task - kMicrobatches;  // the slot before, of the same stage
    return !begun[position] && (drawn.program.slot_of(task) == Slot::kForward ||
                                ended[static_cast<std::size_t>(before)]);
  };
  std::size_t first = 0;
  while (first < begun.size() || !held.empty()) {
    std::vector<std::size_t> ready;
    const std::size_t end = std::min(first + static_cast<std::size_t>(limits.window), begun.size());
    for (std::size_t position = first; position < end; ++position) {
      if (may_begin(position)) ready.push_back(position);
    }
    if (ready.empty() || held.size() == static_cast<std::size_t>(limits.queue_depth)) {
      const TaskId task = held.front();
      held.pop_front();
      ended[static_cast<std::size_t>(task)] = true;
      stashes.give_back(drawn.program.stage_of(task), drawn.program.microbatch_of(task),
                        returned_by(drawn.program, task));
      continue;
    }
    const std::size_t position = ready[random.below(ready.size())];
    const Task& task = limits.order[position];
    begun[position] = true;
    held.push_back(drawn.program.find(task));
    while (first < begun.size() && begun[first]) ++first;
    if (task.kind != Kind::kForward) continue;
    if (Result<void> kept = drawn.keep(stashes, task.stage, task.microbatch); !kept.ok()) {
      return kept;
    }
  }
  return {};
}

TEST_F(CudaMemoryUse, WhateverABindingOrderLetsThroughHasRoom) {
  for (const OneRank& shape : {OneRank{1, false, false}, OneRank{1, true, false},
                               OneRank{3, false, false}, OneRank{3, true, false}}) {
    for (std::uint64_t seed = 0; seed < 240; ++seed) {
      RandomStream random(DrawKey{.seed = seed});
      Drawn drawn(shape, random);
      const Schedule schedule{{random_order(drawn.program, random)}};
      drawn.program = fit_program(drawn.program, schedule).value();
      const StashLimits limits{.order = schedule.ranks[0],
                               .window = 1 + static_cast<int>(seed % 2 * random.below(4)),
                               .queue_depth = 1 + static_cast<int>(random.below(3))};
      CudaStashes stashes;
      ASSERT_TRUE(drawn.begin(stashes, limits).ok());
      EXPECT_LE(stashes.reserved_bytes(), drawn.all_bytes());
      const std::size_t left = free_bytes();
      const Result<void> ran = run_within(drawn, limits, stashes, random);
      ASSERT_TRUE(ran.ok()) << "stages " << shape.stages << ", split " << shape.split << ", window "
                            << limits.window << ", queue depth " << limits.queue_depth << ", seed "
                            << seed << ": " << ran.error().message;
      EXPECT_EQ(free_bytes(), left) << "memory was allocated while tasks ran";
    }
  }
}

// Such a run ends by itself, with its own words.
TEST_F(CudaMemoryUse, AnOrderThatCannotBeRunHasRoomForOneMicrobatch) {
  RandomStream random(DrawKey{.seed = 1});
  const Drawn drawn(OneRank{1, true, false}, random);
  std::vector<Task> order = random_order(drawn.program, random, false);
  std::reverse(order.begin(), order.end());
  CudaStashes stashes;
  ASSERT_TRUE(drawn.begin(stashes, {.order = order, .window = 1}).ok());
  EXPECT_TRUE(drawn.keep(stashes, 0, 0).ok());
}

// Rank 0 of 8: of 64 microbatches 8 are held at a time; and one more where the device is given the
// next F before the last B was seen to end.
TEST_F(CudaMemoryUse, AFixedOrderHasRoomForWhatItHoldsAndNotForAllMicrobatches) {
  constexpr int kRanks = 8;
  constexpr int kMany = 64;
  ProgramSpec of;
  of.ranks = kRanks;
  of.microbatches = kMany;
  for (int stage = 0; stage < kRanks; ++stage) {
    of.stages.push_back({stage, {}, Backward::kFull});
    if (stage > 0) of.stages.back().predecessors = {stage - 1};
  }
  HintSpec hint;
  hint.name = "1f1b";
  const FittedSchedule fitted = make_fitted_schedule(hint, *Program::create(of)).value();
  const ModelSpec spec = spec_of(kRanks);
  const std::vector<StageCut> cuts = *cut_model(spec, fitted.program);
  const auto reserved = [&](int shortest, const StashLimits& limits) {
    RandomStream random(DrawKey{.seed = 1});
    std::vector<int> lengths(kMany);
    for (int& length : lengths) {
      length = shortest + static_cast<int>(random.below(static_cast<std::uint64_t>(65 - shortest)));
    }
    std::vector<std::span<const int>> by_microbatch;
    for (const int& length : lengths) by_microbatch.emplace_back(&length, 1);
    CudaStashes stashes;
    EXPECT_TRUE(stashes.begin(spec, cuts, by_microbatch, fitted.program, 0, limits).ok());
    return stashes.reserved_bytes();
  };
  const StashLimits fixed{.order = fitted.schedule.ranks[0], .window = 1};
  StashLimits two_held = fixed;
  two_held.queue_depth = 2;
  const std::int64_t all = reserved(64, {.order = fixed.order});
  EXPECT_EQ(reserved(64, fixed), all * kRanks / kMany);
  EXPECT_EQ(reserved(64, two_held), all * (kRanks + 1) / kMany);
  EXPECT_LT(reserved(8, fixed), reserved(8, {.order = fixed.order}) / 3) << "of many lengths";
}

// In one process: what would take more than a share is allocated as it is needed, and used again.
TEST_F(CudaMemoryUse, ActivationsAreAllocatedAsNeededWhereAllWouldTakeMoreThanAShare) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomStream random(DrawKey{.seed = seed});
    const Drawn drawn(OneRank{3, true, false}, random);
    const std::int64_t budget = least_budget(drawn.program, drawn.activation, 0);
    const std::size_t before = free_bytes();
    CudaStashes stashes;
    for (int iteration = 0; iteration < 3; ++iteration) {
      ASSERT_TRUE(drawn.begin(stashes, {.reserve_bytes = 1 << 10}).ok());
      const Result<void> ran =
          run_in_any_order(drawn, {drawn.program, 0, drawn.model(), budget}, stashes, random);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
      EXPECT_EQ(free_bytes() + static_cast<std::size_t>(stashes.reserved_bytes()), before);
      EXPECT_LT(stashes.reserved_bytes(), drawn.all_bytes()) << "seed " << seed;
    }
    ASSERT_TRUE(drawn.begin(stashes, {}).ok()) << "and reserved again";
    EXPECT_EQ(free_bytes() + static_cast<std::size_t>(stashes.reserved_bytes()), before);
  }
}

TEST_F(CudaMemoryUse, WhatIsSpareMakesRoomForWhatIsNeeded) {
  constexpr std::size_t kUnit = std::size_t{1} << 30;  // a quarter of the device
  CudaArena arena;
  const std::vector<SlotDemand> demands(9, SlotDemand{kUnit, 1});
  ASSERT_TRUE(arena.begin({demands}, {.reserve_bytes = kUnit}).ok());
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*arena.take(0, kUnit));
  const Result<std::byte*> fifth = arena.take(0, kUnit);
  ASSERT_FALSE(fifth.ok());
  EXPECT_NE(fifth.error().message.find("has no room for activations: 1074 MB are needed, "),
            std::string::npos)
      << fifth.error().message;
  for (std::byte* block : blocks) arena.give_back(block);
  blocks = {*arena.take(0, kUnit - 1)};
  EXPECT_EQ(arena.reserved_bytes(), 4 * static_cast<std::int64_t>(kUnit));
  blocks.push_back(*arena.take(0, 3 * kUnit));  // the other three go
  EXPECT_EQ(arena.reserved_bytes(), 4 * static_cast<std::int64_t>(kUnit));
  for (std::byte* block : blocks) arena.give_back(block);
}

TEST(CudaSlots, EqualBlocksTakeTheBudgetAndAllBlocksNoMoreThanTheySum) {
  const std::vector<SlotDemand> equal(10, SlotDemand{100, 150});
  std::vector<SlotClass> classes = slot_classes(equal, 450);
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].slots, 3U);
  // Lengths near each other share slots: (2 + 2) * 100 would be less than the 5 of all.
  classes = slot_classes({{98, 98}, {99, 99}, {100, 100}, {98, 98}, {99, 99}}, 200);
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].bytes, 100U);
  EXPECT_EQ(classes[0].slots, 2U);
  // Those that are far apart do not: 20 small ones in large slots would be 2000.
  std::vector<SlotDemand> apart(20, SlotDemand{10, 10});
  apart.push_back({100, 100});
  classes = slot_classes(apart, 200);
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].slots, 20U);
  EXPECT_EQ(classes[1].slots, 1U);
  classes = slot_classes({{1, 1}, {2, 2}, {3, 3}}, std::nullopt);
  EXPECT_EQ(classes.size(), 3U);
  EXPECT_TRUE(slot_classes({}, 7).empty());
  // Blocks that are never out together share a slot; those that meet do not.
  classes = slot_classes({{9, 1, {0, 2}}, {10, 1, {2, 3}}, {10, 1, {3, 5}}}, std::nullopt);
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].slots, 1U);
  classes = slot_classes({{10, 1, {0, 3}}, {10, 1, {2, 3}}, {10, 1, {3, 5}}}, std::nullopt);
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].slots, 2U);
}

// --- Tensors on their way.

// An iteration: every size is out once, in any order, and for how long nobody knows. What is still
// out at the end is given back some time in the next one.
void pass_in_any_order(CudaBlocks& blocks, std::vector<std::size_t> sizes, std::vector<void*>& out,
                       std::size_t left_out, RandomStream& random) {
  while (!sizes.empty() || out.size() > left_out) {
    if (!sizes.empty() && (out.empty() || random.below(3) != 0)) {
      const auto at = static_cast<std::ptrdiff_t>(random.below(sizes.size()));
      const Result<void*> block = blocks.take(sizes[static_cast<std::size_t>(at)]);
      ASSERT_TRUE(block.ok()) << block.error().message;
      out.push_back(*block);
      sizes.erase(sizes.begin() + at);
    } else {
      const auto at = static_cast<std::ptrdiff_t>(random.below(out.size()));
      blocks.give_back(out[static_cast<std::size_t>(at)]);
      out.erase(out.begin() + at);
    }
  }
}

// Iterations differ in their sizes. `left_out`: at their ends.
void expect_a_block_for_every_tensor(std::size_t left_out) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomStream random(DrawKey{.seed = seed});
    CudaBlocks blocks;
    const std::size_t before = free_bytes();
    std::size_t most = 0;
    std::vector<void*> out;
    for (int iteration = 0; iteration < 8; ++iteration) {
      std::vector<std::size_t> sizes(1 + random.below(12));
      std::size_t sum = 0;
      for (std::size_t& size : sizes) sum += size = 512 * (1 + random.below(6));
      most = std::max(most, sum);
      ASSERT_TRUE(blocks.reserve(sizes).ok());
      const std::size_t left = free_bytes();
      if (left_out == 0) {
        EXPECT_LE(before - left, most) << "memory that is there is not used again";
      }
      pass_in_any_order(blocks, sizes, out, iteration < 7 ? left_out : 0, random);
      EXPECT_EQ(free_bytes(), left) << "memory was allocated while tensors were on their way";
    }
  }
}

TEST_F(CudaMemoryUse, EveryReservedTensorHasABlockWhateverTheOrder) {
  expect_a_block_for_every_tensor(0);
}

// Blocks that are there stand in for smaller ones.
TEST_F(CudaMemoryUse, AndSoItHasWhereOthersAreNotBackYet) {
  expect_a_block_for_every_tensor(1);
  expect_a_block_for_every_tensor(3);
}

TEST_F(CudaMemoryUse, ATensorThatWasNotReservedIsAnErrorInWords) {
  CudaBlocks blocks;
  ASSERT_TRUE(blocks.take(100).ok()) << "before, blocks are allocated as they are wanted";
  ASSERT_TRUE(blocks.reserve({1000}).ok());
  ASSERT_TRUE(blocks.take(1000).ok());
  const Result<void*> more = blocks.take(1000);
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().message,
            "no block of 1000 bytes is left: it is for none of the iteration's tensors, for which "
            "all memory was allocated before");
}

// An iteration that was reserved, and one that takes more than what may be.
TEST_F(CudaMemoryUse, BlocksAreAllocatedAsNeededWhereNobodyReservesThem) {
  CudaBlocks blocks;
  ASSERT_TRUE(blocks.reserve({1000}).ok());
  EXPECT_EQ(blocks.bytes(), 1024U);
  blocks.allocate_as_needed();
  std::vector<void*> out;
  for (const std::size_t bytes : {1000, 1000, 5000}) {
    const Result<void*> block = blocks.take(bytes);
    ASSERT_TRUE(block.ok()) << block.error().message;
    out.push_back(*block);
  }
  EXPECT_EQ(blocks.bytes(), 1024U + 1024U + 5120U);
  for (void* const block : out) blocks.give_back(block);
}

// Rounded up it would be a block of none, which there is.
TEST_F(CudaMemoryUse, ABlockOfMoreThanThereAreAddressesIsRefused) {
  CudaBlocks blocks;
  ASSERT_TRUE(blocks.reserve({1000}).ok());
  EXPECT_FALSE(blocks.take(std::numeric_limits<std::size_t>::max()).ok());
  blocks.allocate_as_needed();
  EXPECT_FALSE(blocks.take(std::numeric_limits<std::size_t>::max()).ok());
}

TEST_F(CudaMemoryUse, WhatDoesNotFitIsSaidInOneSentence) {
  CudaBlocks blocks;
  const Result<void> reserved = blocks.reserve({std::size_t{3} << 30, std::size_t{2} << 30});
  ASSERT_FALSE(reserved.ok());
  EXPECT_EQ(reserved.error().message,
            "device 0 has no room for tensors on their way: 5369 MB are needed, 4295 MB of 4295 "
            "MB are free (cudaMalloc: out of memory); smaller messages (rrfp run --payload-bytes "
            "N), fewer microbatches, or fewer ranks on this GPU need less");
  CudaArena arena;
  const Result<void> begun =
      arena.begin({{{std::size_t{5} << 30, 1}}}, {.remedy = "fewer of them need less"});
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(begun.error().message,
            "device 0 has no room for activations: 5369 MB are needed, 4295 MB of 4295 MB are "
            "free (cudaMalloc: out of memory); fewer of them need less");
}

TEST_F(CudaMemoryUse, AnArenaCountsTheMostThatWasHeldAndIsUsedAgain) {
  constexpr std::size_t kUnit = CudaArena::kAlignment;
  CudaArena arena;
  const std::vector<SlotDemand> four(4, SlotDemand{kUnit, static_cast<std::int64_t>(kUnit)});
  ASSERT_TRUE(arena.begin({four}, {}).ok());
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*arena.take(0, kUnit - 1));
  EXPECT_EQ(arena.held_bytes(), 4 * static_cast<std::int64_t>(kUnit));
  for (std::byte* block : blocks) arena.give_back(block);
  EXPECT_EQ(arena.high_water_bytes(), 4 * static_cast<std::int64_t>(kUnit));
  arena.forget_high_water();
  EXPECT_EQ(arena.high_water_bytes(), 0);
  // Cut in another way, for less.
  ASSERT_TRUE(arena.begin({{{3 * kUnit, 1}}}, {}).ok());
  EXPECT_EQ(arena.reserved_bytes(), 4 * static_cast<std::int64_t>(kUnit));
  arena.give_back(*arena.take(0, 3 * kUnit));
}

}  // namespace
}  // namespace rrfp
