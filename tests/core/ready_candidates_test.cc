// Goal: the candidates of a decision are listed in hint order, with those that
// memory or the window keeps back, and no more of them than asked for.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "scheduler_core/rank_scheduler.h"

namespace rrfp {
namespace {

std::vector<TaskId> candidates(const RankScheduler& scheduler, std::size_t most) {
  std::array<TaskId, 16> buffer{};
  const std::size_t count = scheduler.ready(std::span<TaskId>(buffer.data(), most));
  return {buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(count)};
}

TEST(ReadyCandidates, ListsBlockedOnesInHintOrder) {
  const Result<Program> program = Program::create({1, 3, true, false, {{0, {}, Backward::kFull}}});
  ASSERT_TRUE(program.ok());
  Schedule schedule;
  schedule.ranks.resize(1);
  for (const char* name : {"0I0", "0I1", "0I2", "0F2", "0F0", "0F1", "0W0", "0W1", "0W2"}) {
    schedule.ranks[0].push_back(*parse_task(name));
  }
  const std::vector<std::int64_t> bytes = {1, 1, 1};
  RankSchedulerConfig config;
  config.memory.activation_bytes = bytes;
  config.budget_bytes = 1;
  RankScheduler scheduler(*program, schedule, config);
  EXPECT_TRUE(candidates(scheduler, 16).empty());
  const auto id = [&](const char* name) { return program->find(*parse_task(name)); };
  for (const char* name : {"0F1", "0F0", "0F2"}) {
    scheduler.on_input(id(name), RankScheduler::kRootInput);
  }
  EXPECT_EQ(candidates(scheduler, 16), (std::vector<TaskId>{id("0F2"), id("0F0"), id("0F1")}));
  EXPECT_EQ(candidates(scheduler, 2), (std::vector<TaskId>{id("0F2"), id("0F0")}));
  ASSERT_EQ(scheduler.decide(0).task, id("0F2"));
  scheduler.on_finished(id("0F2"), 1);
  // The budget is full: the other F are candidates all the same.
  EXPECT_EQ(candidates(scheduler, 16), (std::vector<TaskId>{id("0I2"), id("0F0"), id("0F1")}));
}

}  // namespace
}  // namespace rrfp
