// Small worlds and runs of them on threads, for the tests of the executor.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/decision_log.h"
#include "executor/emulated_device.h"
#include "executor/replay_log.h"
#include "executor/threads_run.h"
#include "traces/case.h"
#include "traces/prepared_case.h"

namespace rrfp {

inline constexpr std::int64_t kMicrosecond = 1'000;
inline constexpr std::int64_t kMillisecond = 1'000'000;

/// A chain, one stage per rank, every task of `task_ns`.
inline Case chain_case(int ranks, int microbatches, bool split, std::int64_t task_ns) {
  ProgramSpec spec;
  spec.ranks = ranks;
  spec.microbatches = microbatches;
  spec.split_backward = split;
  for (int stage = 0; stage < ranks; ++stage) {
    spec.stages.push_back({stage, {}, Backward::kFull});
    if (stage > 0) spec.stages.back().predecessors = {stage - 1};
  }
  Case made{"chain", *Program::create(spec)};
  made.duration_ns.assign(static_cast<std::size_t>(made.program.task_ids()), task_ns);
  return made;
}

inline void set_latency(Case& to, std::int64_t latency_ns) {
  to.network.latency_ns.assign(
      to.program.edges().size(),
      std::vector<std::int64_t>(
          static_cast<std::size_t>(to.tensor_parallel.lanes * to.program.microbatches()),
          latency_ns));
}

/// Keeps every iteration.
class KeepingSink final : public IterationSink {
 public:
  Result<void> on_iteration(IterationRecord record) override {
    iterations.push_back(std::move(record));
    return answer;
  }
  std::vector<IterationRecord> iterations;
  Result<void> answer;
};

/// The decisions of every finished iteration are made again, identically.
/// REQUIRES: plan.core.record.
inline void expect_decisions_replay(const RunPlan& plan,
                                    const std::vector<IterationRecord>& iterations) {
  ASSERT_TRUE(plan.core.record);
  std::string log = decision_log_header(plan);
  for (const IterationRecord& record : iterations) log += decision_log_of(plan, record);
  const Result<ReplayReport> report = replay_decisions(log, "decisions");
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_FALSE(report->difference) << *report->difference;
  EXPECT_FALSE(report->cut) << *report->cut;
  EXPECT_EQ(report->iterations, static_cast<std::int64_t>(iterations.size()));
  EXPECT_EQ(report->decisions > 0, !iterations.empty());
}

struct TestRun {
  std::shared_ptr<RunPlan> plan = std::make_shared<RunPlan>();
  std::shared_ptr<KeepingSink> sink = std::make_shared<KeepingSink>();
  std::shared_ptr<std::atomic<bool>> stop = std::make_shared<std::atomic<bool>>(false);
  std::vector<std::unique_ptr<const PreparedCase>> worlds;
  std::size_t payload_limit = 64;
  RunOutcome outcome;

  const PreparedCase& world() const { return *worlds.front(); }
  const Program& program() const { return world().program(); }

  void prepare(const Case& input, int iterations = 1, int replicas = 1) {
    plan->grid = {replicas, input.program.ranks(), input.tensor_parallel.lanes};
    plan->core.record = true;
    for (int i = 0; i < iterations; ++i) {
      plan->worlds.emplace_back();
      for (int replica = 0; replica < replicas; ++replica) {
        Result<std::unique_ptr<const PreparedCase>> prepared = PreparedCase::create(input);
        ASSERT_TRUE(prepared.ok()) << prepared.error().message;
        worlds.push_back(std::move(*prepared));
        plan->worlds.back().push_back(worlds.back().get());
      }
    }
  }

  void run() {
    const int lanes = plan->grid.lanes;
    const std::size_t limit = payload_limit;
    outcome = run_on_threads(
        plan,
        [lanes, limit](const Place&) { return std::make_unique<EmulatedDevice>(lanes, limit); },
        sink, default_tuning(plan->grid.size()), stop);
    expect_decisions_replay(*plan, sink->iterations);
  }

  const WorkerRecord& worker(int iteration, int endpoint) const {
    return sink->iterations[static_cast<std::size_t>(iteration)]
        .workers[static_cast<std::size_t>(endpoint)];
  }
  std::vector<std::string> order(int iteration, int endpoint) const {
    std::vector<std::string> names;
    for (const TaskRecord& task : worker(iteration, endpoint).tasks) {
      names.push_back(to_string(program().task(task.task)));
    }
    return names;
  }
};

/// Every task ran once on every lane, after everything it needs, and no
/// shorter than its length; the order is within what the records allow.
inline void expect_lawful(const TestRun& run, int iteration) {
  const RunPlan& plan = *run.plan;
  const IterationRecord& record = run.sink->iterations[static_cast<std::size_t>(iteration)];
  ASSERT_EQ(static_cast<int>(record.workers.size()), plan.grid.size());
  for (int endpoint = 0; endpoint < plan.grid.size(); ++endpoint) {
    const Place place = plan.grid.place(endpoint);
    const PreparedCase& world = plan.world(iteration, place.replica);
    const Program& program = world.program();
    const WorkerRecord& worker = record.workers[static_cast<std::size_t>(endpoint)];
    EXPECT_EQ(worker.endpoint, endpoint);
    EXPECT_EQ(worker.tasks.size(), program.tasks_of_rank(place.rank).size());
    std::vector<std::int64_t> end_ns(static_cast<std::size_t>(program.task_ids()), -1);
    std::int64_t last_end_ns = 0;
    const auto message = [&](EdgeId edge, int microbatch) {
      return static_cast<std::size_t>(edge * program.microbatches() + microbatch);
    };
    std::vector<std::int64_t> arrival_ns(
        program.edges().size() * static_cast<std::size_t>(program.microbatches()), -1);
    for (const ArrivalRecord& arrival : worker.arrivals) {
      EXPECT_EQ(arrival_ns[message(arrival.edge, arrival.microbatch)], -1) << "arrived twice";
      arrival_ns[message(arrival.edge, arrival.microbatch)] = arrival.arrival_ns;
      EXPECT_GE(arrival.arrival_ns, arrival.due_ns);
      EXPECT_GE(arrival.due_ns, arrival.sent_ns);
      EXPECT_GE(arrival.sent_ns, arrival.finish_ns);
    }
    for (const TaskRecord& task : worker.tasks) {
      const auto id = static_cast<std::size_t>(task.task);
      const std::string name = to_string(program.task(task.task));
      EXPECT_EQ(end_ns[id], -1) << name << " ran twice";
      EXPECT_GE(task.start_ns, last_end_ns) << name;
      EXPECT_GE(task.start_ns, task.decided_ns) << name;
      EXPECT_GE(task.end_ns - task.start_ns, world.duration_ns()[id]) << name;
      const int stage = program.stage_of(task.task);
      const int m = program.microbatch_of(task.task);
      const Slot slot = program.slot_of(task.task);
      if (slot == Slot::kWeight) {
        const auto input = static_cast<std::size_t>(program.task_id(stage, Slot::kBackward, m));
        EXPECT_GE(end_ns[input], 0) << name << " before its I";
      }
      if (slot == Slot::kBackward) {
        const auto forward = static_cast<std::size_t>(program.task_id(stage, Slot::kForward, m));
        EXPECT_GE(end_ns[forward], 0) << name << " before its F";
      }
      for (std::size_t edge = 0; edge < program.edges().size(); ++edge) {
        const Edge& of = program.edges()[edge];
        const Slot of_slot = of.slot();
        if (of.to != stage || of_slot != slot || !of.carries) continue;
        const std::int64_t here_ns =
            of.local() ? end_ns[static_cast<std::size_t>(program.task_id(of.from, of_slot, m))]
                       : arrival_ns[message(static_cast<EdgeId>(edge), m)];
        EXPECT_GE(here_ns, 0) << name << " before its input from stage " << of.from;
        EXPECT_GE(task.start_ns, here_ns) << name;
      }
      end_ns[id] = last_end_ns = task.end_ns;
    }
  }
}

}  // namespace rrfp
