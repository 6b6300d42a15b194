// Goal: memory of a device is allocated before the first task and is enough for
// the rest: whatever order the budget lets through has room for its activations,
// and every tensor has a block, whichever come first. What does not fit is said
// in one sentence. On the double of a device.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "executor/cuda_blocks.h"
#include "executor/cuda_double_streams.h"
#include "executor/cuda_slots.h"
#include "executor/cuda_stashes.h"
#include "scheduler_core/random.h"

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

struct Shape {
  int stages = 1;
  bool split = false;
  bool ordered = false;
};

// A rank with all stages of a chain.
Program program_of(const Shape& shape) {
  ProgramSpec spec;
  spec.ranks = 1;
  spec.microbatches = kMicrobatches;
  spec.split_backward = shape.split;
  spec.ordered_accumulation = shape.ordered;
  for (int stage = 0; stage < shape.stages; ++stage) {
    spec.stages.push_back({0, {}, Backward::kFull});
    if (stage > 0) spec.stages.back().predecessors = {stage - 1};
  }
  return *Program::create(spec);
}

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
  Drawn(const Shape& shape, RandomStream& random)
      : program(program_of(shape)), spec(spec_of(shape.stages)), cuts(*cut_model(spec, program)) {
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
  Result<void> begin(CudaStashes& stashes, std::optional<std::int64_t> budget) const {
    const std::vector<std::span<const int>> of(lengths.begin(), lengths.end());
    return stashes.begin(spec, cuts, of, program, 0, budget);
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
  std::vector<TaskId> next;  // the first task not yet run of each stage and microbatch
  for (int stage = 0; stage < program.stages(); ++stage) {
    for (int m = 0; m < kMicrobatches; ++m) {
      next.push_back(program.task_id(stage, Slot::kForward, m));
    }
  }
  while (!next.empty()) {
    const std::size_t at = random.below(next.size());
    const TaskId task = next[at];
    const int stage = program.stage_of(task);
    const int m = program.microbatch_of(task);
    if (program.slot_of(task) == Slot::kForward) {
      if (!admission.admits(stage, m)) continue;
      admission.take(stage, m);
      const auto number = static_cast<std::size_t>(stage);
      Result<void> kept = stashes.keep(drawn.spec, drawn.cuts[number],
                                       drawn.lengths[static_cast<std::size_t>(m)], m);
      if (!kept.ok()) return kept;
      next[at] = program.task_id(stage, Slot::kBackward, m);
      continue;
    }
    if (random.below(8) != 0) continue;
    const Returns part = returned_by(program, task);
    stashes.give_back(stage, m, part);
    admission.give_back(stage, m, part);
    EXPECT_EQ(stashes.held_bytes(), admission.held_bytes());
    if (part == Returns::kAllButStash) {
      next[at] = program.task_id(stage, Slot::kWeight, m);
    } else {
      next.erase(next.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  return {};
}

TEST_F(CudaMemoryUse, WhateverTheBudgetLetsThroughHasRoom) {
  for (const Shape& shape : {Shape{1, false, false}, Shape{1, true, false}, Shape{1, true, true},
                             Shape{3, false, true}, Shape{3, true, false}, Shape{3, true, true}}) {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      RandomStream random(DrawKey{.seed = seed});
      const Drawn drawn(shape, random);
      std::int64_t all = 0;
      for (const std::int64_t bytes : drawn.activation) all += bytes;
      const std::int64_t least = least_budget(drawn.program, drawn.activation, 0);
      std::optional<std::int64_t> budget =
          least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(all)));
      if (seed % 8 == 0) budget = least;
      if (seed % 8 == 1) budget = std::nullopt;
      CudaStashes stashes;
      ASSERT_TRUE(drawn.begin(stashes, budget).ok());
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
  const Drawn drawn(Shape{}, random);
  const std::int64_t least = least_budget(drawn.program, drawn.activation, 0);
  CudaStashes stashes;
  ASSERT_TRUE(drawn.begin(stashes, least).ok());
  const Result<void> ran =
      run_in_any_order(drawn, {drawn.program, 0, drawn.model(), 4 * least}, stashes, random);
  ASSERT_FALSE(ran.ok());
  EXPECT_NE(ran.error().message.find("more than the memory budget lets through"), std::string::npos)
      << ran.error().message;
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

TEST_F(CudaMemoryUse, WhatDoesNotFitIsSaidInOneSentence) {
  CudaBlocks blocks;
  const Result<void> reserved = blocks.reserve({std::size_t{3} << 30, std::size_t{2} << 30});
  ASSERT_FALSE(reserved.ok());
  EXPECT_EQ(reserved.error().message,
            "device 0 has no room for tensors on their way: 5120 MiB are needed, 4096 MiB of 4096 "
            "MiB are free (cudaMalloc: out of memory); smaller messages (rrfp run --payload-bytes "
            "N), fewer microbatches, or fewer ranks on this GPU need less");
  CudaArena arena;
  const Result<void> begun = arena.begin({{{std::size_t{5} << 30, 1}}}, std::nullopt);
  ASSERT_FALSE(begun.ok());
  EXPECT_EQ(begun.error().message,
            "device 0 has no room for activations: 5120 MiB are needed, 4096 MiB of 4096 MiB are "
            "free (cudaMalloc: out of memory); a smaller memory budget, or fewer ranks on this "
            "GPU, need less");
}

TEST_F(CudaMemoryUse, AnArenaCountsTheMostThatWasHeldAndIsUsedAgain) {
  constexpr std::size_t kUnit = CudaArena::kAlignment;
  CudaArena arena;
  const std::vector<SlotDemand> four(4, SlotDemand{kUnit, static_cast<std::int64_t>(kUnit)});
  ASSERT_TRUE(arena.begin({four}, std::nullopt).ok());
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(*arena.take(0, kUnit - 1));
  EXPECT_EQ(arena.held_bytes(), 4 * static_cast<std::int64_t>(kUnit));
  for (std::byte* block : blocks) arena.give_back(block);
  EXPECT_EQ(arena.high_water_bytes(), 4 * static_cast<std::int64_t>(kUnit));
  arena.forget_high_water();
  EXPECT_EQ(arena.high_water_bytes(), 0);
  // Cut in another way, for less.
  ASSERT_TRUE(arena.begin({{{3 * kUnit, 1}}}, std::nullopt).ok());
  EXPECT_EQ(arena.reserved_bytes(), 4 * static_cast<std::int64_t>(kUnit));
  arena.give_back(*arena.take(0, 3 * kUnit));
}

}  // namespace
}  // namespace rrfp
