// Goal: every order that fits the budget of a case fits that of the training,
// whatever sizes microbatches have in either and however many stages a rank has.
#include "executor/training_budget.h"

#include <gtest/gtest.h>

#include <vector>

#include "scheduler_core/random.h"
#include "tests/executor/random_order_for_tests.h"

namespace rrfp {
namespace {

constexpr int kMicrobatches = 6;

struct Shape : OneRank {
  bool one_size = false;  // of a stage's microbatches, in the case
};

struct Bytes {
  std::vector<std::int64_t> activation;
  std::vector<std::int64_t> stash;

  MemoryModel model() const { return {activation, stash}; }
};

// Some take nothing.
Bytes draw_bytes(RandomStream& random, int stages, bool one_size) {
  Bytes drawn;
  for (int i = 0; i < stages * kMicrobatches; ++i) {
    const bool again = one_size && i % kMicrobatches > 0;
    drawn.activation.push_back(again ? drawn.activation.back()
                                     : static_cast<std::int64_t>(random.below(10)));
    const auto most = static_cast<std::uint64_t>(drawn.activation.back());
    drawn.stash.push_back(again ? drawn.stash.back()
                                : static_cast<std::int64_t>(random.below(most + 1)));
  }
  return drawn;
}

// Runs tasks in an order drawn among those that `of_case` admits, and returns whether `of_training`
// admits each.
bool fits_as_well(const Program& program, Admission of_case, Admission of_training,
                  RandomStream& random) {
  RandomOrder order(program, kMicrobatches);
  while (!order.all_ran()) {
    const TaskId task = order.draw(random);
    const int stage = program.stage_of(task);
    const int m = program.microbatch_of(task);
    if (program.slot_of(task) == Slot::kForward) {
      if (!of_case.admits(stage, m)) continue;
      if (!of_training.admits(stage, m)) return false;
      of_case.take(stage, m);
      of_training.take(stage, m);
    } else {
      const Returns part = returned_by(program, task);
      of_case.give_back(stage, m, part);
      of_training.give_back(stage, m, part);
    }
    order.ran();
  }
  return true;
}

// Orders, of so many, that fit the case and not the training.
int orders_lost(const Shape& shape, int orders) {
  const Program program = program_on_one_rank(shape, kMicrobatches);
  RandomStream random(DrawKey{42, 0, 0, 0});
  int lost = 0;
  for (int i = 0; i < orders; ++i) {
    const Bytes from = draw_bytes(random, shape.stages, shape.one_size);
    const Bytes to = draw_bytes(random, shape.stages, shape.one_size && i % 2 == 0);
    const std::int64_t budget =
        least_budget(program, from.activation, 0) + static_cast<std::int64_t>(random.below(20));
    const std::int64_t trained = training_budget(program, from.model(), to.model(), 0, budget);
    if (trained < least_budget(program, to.activation, 0) ||
        !fits_as_well(program, {program, 0, from.model(), budget},
                      {program, 0, to.model(), trained}, random)) {
      ++lost;
    }
  }
  return lost;
}

TEST(TrainingBudget, WhatFitsTheCaseFitsTheTraining) {
  for (const int stages : {1, 2}) {
    for (const bool split : {false, true}) {
      for (const bool ordered : {false, true}) {
        for (const bool one_size : {false, true}) {
          SCOPED_TRACE(std::to_string(stages) + " stages" + (split ? ", split" : "") +
                       (ordered ? ", ordered" : "") + (one_size ? ", one size" : ""));
          EXPECT_EQ(orders_lost({stages, split, ordered, one_size}, 2000), 0);
        }
      }
    }
  }
}

// Eleven small ones of a budget of one large and one small: of one size in the training, eleven.
TEST(TrainingBudget, SmallMicrobatchesOfTheCaseMayAllBeLargeInTheTraining) {
  const Program program = program_on_one_rank({}, kMicrobatches);
  const std::vector<std::int64_t> sizes = {1, 1, 1, 1, 1, 10};
  const std::vector<std::int64_t> alike(kMicrobatches, 7);
  EXPECT_EQ(training_budget(program, {sizes, {}}, {alike, alike}, 0, 11), 11 * 7);
  // Where those of the case are alike too, as many fit as did.
  const std::vector<std::int64_t> ones(kMicrobatches, 1);
  EXPECT_EQ(training_budget(program, {ones, {}}, {alike, alike}, 0, 3), 3 * 7);
}

}  // namespace
}  // namespace rrfp
