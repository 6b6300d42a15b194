// Goal: the four machines of the core allocate nothing after construction,
// from the first event of the first iteration on.
#include <gtest/gtest.h>

#include <deque>

#include "scheduler_core/announced_sequence.h"
#include "scheduler_core/arrival_vote.h"
#include "scheduler_core/edge_credits.h"
#include "scheduler_core/rank_scheduler.h"
#include "tests/core/orders.h"
#include "tests/count_allocations.h"

namespace rrfp {
namespace {

/// All ranks of a program, each task ending at once and each message arriving
/// at once: an iteration without time, and without anything that allocates.
class Pipeline {
 public:
  Pipeline(const Program& program, const Schedule& schedule, RankSchedulerConfig config)
      : program_(program) {
    for (config.rank = 0; config.rank < program.ranks(); ++config.rank) {
      ranks_.emplace_back(program, schedule, config);
    }
  }

  /// Returns how many tasks ran.
  int run() {
    for (RankScheduler& rank : ranks_) rank.reset();
    for (int stage = 0; stage < program_.stages(); ++stage) {
      if (!program_.predecessors(stage).empty()) continue;
      for (int m = 0; m < program_.microbatches(); ++m) {
        rank_of(stage).on_input(program_.task_id(stage, Slot::kForward, m),
                                RankScheduler::kRootInput);
      }
    }
    int ran = 0;
    for (int idle = 0; idle < program_.ranks(); ++now_ns_) {
      RankScheduler& rank = ranks_[static_cast<std::size_t>(now_ns_ % program_.ranks())];
      const Decision decision = rank.decide(now_ns_);
      if (decision.action != Decision::Action::kStart) {
        idle = decision.action == Decision::Action::kWait ? 0 : idle + 1;
        continue;
      }
      idle = 0;
      ++ran;
      for (const Notice& notice : rank.notices()) {
        ranks_[static_cast<std::size_t>(notice.to_rank)].on_notice(notice.task, notice.producer,
                                                                   notice.eta_ns);
      }
      finish(rank, decision.task);
    }
    return ran;
  }

 private:
  RankScheduler& rank_of(int stage) {
    return ranks_[static_cast<std::size_t>(program_.rank_of(stage))];
  }

  void finish(RankScheduler& rank, TaskId task) {
    rank.on_finished(task, now_ns_);
    const int stage = program_.stage_of(task);
    const Slot slot = program_.slot_of(task);
    rank.on_expected(stage, program_.task(task).kind, 7);
    for (const EdgeId id : program_.edges_from(stage, slot)) {
      const Edge& edge = program_.edge(id);
      if (edge.local()) continue;
      rank_of(edge.to).on_input(program_.task_id(edge.to, slot, program_.microbatch_of(task)),
                                stage);
    }
  }

  const Program& program_;
  std::deque<RankScheduler> ranks_;
  std::int64_t now_ns_ = 0;
};

// Two chunks per rank, a join, budgets and activations of several sizes.
Program joined(bool ordered) {
  ProgramSpec spec = testing::looped(3, 2, 8, true).spec();
  spec.ordered_accumulation = ordered;
  spec.stages[5].predecessors = {3, 4};
  return Program::create(spec).value();
}

TEST(Allocation, RankSchedulersMakeNoneFromTheFirstEventOn) {
  RRFP_NEEDS_COUNTED_ALLOCATIONS();
  for (const Program& program :
       {testing::looped(3, 2, 8, true), testing::linear(4, 8), joined(false), joined(true)}) {
    const Schedule schedule = testing::make("bfw", program).value();
    const auto cells = static_cast<std::size_t>(program.stages() * program.microbatches());
    std::vector<std::int64_t> bytes;
    for (std::size_t i = 0; i < cells; ++i) bytes.push_back(static_cast<std::int64_t>(1 + i % 3));
    const std::vector<std::int64_t> expected_ns(static_cast<std::size_t>(program.task_ids()), 5);
    const std::vector<std::int64_t> transfer_ns(
        program.edges().size() * static_cast<std::size_t>(program.microbatches()), 2);
    RankSchedulerConfig config;
    config.memory.activation_bytes = bytes;
    config.budget_bytes = 7;
    config.anticipation = Anticipation{750, 500};
    config.expected_ns = expected_ns;
    config.expected_transfer_ns = transfer_ns;
    config.adapt_expected = true;
    Pipeline pipeline(program, schedule, config);

    int tasks = 0;
    for (int rank = 0; rank < program.ranks(); ++rank) {
      tasks += static_cast<int>(program.tasks_of_rank(rank).size());
    }
    const std::int64_t before = allocations;
    const int first = pipeline.run();
    const int second = pipeline.run();
    const std::int64_t after = allocations;
    EXPECT_EQ(after - before, 0);
    EXPECT_EQ(first, tasks);
    EXPECT_EQ(second, tasks);
  }
}

TEST(Allocation, TheOtherMachinesMakeNone) {
  RRFP_NEEDS_COUNTED_ALLOCATIONS();
  ArrivalVote vote(4, 2);
  AnnouncedSequence sequence(4);
  EdgeCredits shares(4, 2, AdmissionRule::kShares);
  EdgeCredits oldest(4, 2, AdmissionRule::kOldestFirst);
  const std::int64_t before = allocations;
  for (int iteration = 0; iteration < 2; ++iteration) {
    vote.reset();
    sequence.reset();
    for (int i = 0; i < 4; ++i) {
      vote.on_lane(i, 0);
      vote.on_lane(i, 1);
      sequence.on_announced(i, i);
      sequence.pop();
    }
    for (EdgeCredits* credits : {&shares, &oldest}) {
      credits->reset();
      for (int i = 0; i < 4; ++i) credits->on_output(i);
      while (credits->next() != EdgeCredits::kNothing) credits->on_credit();
    }
  }
  const std::int64_t after = allocations;
  EXPECT_EQ(after - before, 0);
}

// The counter counts.
TEST(Allocation, IsSeen) {
  RRFP_NEEDS_COUNTED_ALLOCATIONS();
  const std::int64_t before = allocations;
  const std::vector<int> some(100, 1);
  EXPECT_EQ(some.size(), 100u);
  EXPECT_GT(allocations, before);
}

}  // namespace
}  // namespace rrfp
