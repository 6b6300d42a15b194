// Goal: a sweep makes a schedule once for all points that have the same, and keeps
// no more of them than it may.
#include "experiments/schedule_cache.h"

#include <gtest/gtest.h>

#include "tests/core/orders.h"

namespace rrfp {
namespace {

using testing::linear;

HintSpec hint(const std::string& name) {
  HintSpec spec;
  spec.name = name;
  return spec;
}

TEST(ScheduleCache, TheSameIsMadeOnceAndOthersAreNotTakenForIt) {
  ScheduleCache cache(1 << 20);
  const Program small = linear(2, 4);
  const auto first = cache.get(hint("1f1b"), small);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*cache.get(hint("1f1b"), linear(2, 4)), *first);
  const auto other_hint = cache.get(hint("gpipe"), small);
  EXPECT_NE(*other_hint, *first);
  const auto other_program = cache.get(hint("1f1b"), linear(2, 5));
  EXPECT_NE(*other_program, *first);
  const auto again = make_fitted_schedule(hint("1f1b"), small);
  EXPECT_EQ((*first)->schedule, again->schedule);
  EXPECT_FALSE(cache.get(hint("nothing"), small).ok());
}

TEST(ScheduleCache, WhatWasAskedForLongestAgoGoesFirst) {
  const Program small = linear(2, 4);
  ScheduleCache cache(2 * small.task_ids());
  const auto first = cache.get(hint("1f1b"), small);
  const auto second = cache.get(hint("gpipe"), small);
  EXPECT_EQ(*cache.get(hint("1f1b"), small), *first);
  const auto third = cache.get(hint("bf"), small);
  EXPECT_EQ(cache.kept_tasks(), 2 * small.task_ids());
  EXPECT_EQ(*cache.get(hint("1f1b"), small), *first) << "asked for after gpipe";
  EXPECT_NE(*cache.get(hint("gpipe"), small), *second) << "made again";
  EXPECT_EQ((*cache.get(hint("gpipe"), small))->schedule, (*second)->schedule);
  const Program large = linear(8, 64);
  const auto alone = cache.get(hint("1f1b"), large);
  EXPECT_EQ(*cache.get(hint("1f1b"), large), *alone) << "one is kept, however large";
  EXPECT_EQ(cache.kept_tasks(), large.task_ids());
}

}  // namespace
}  // namespace rrfp
