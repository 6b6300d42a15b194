// Goal: a run on threads carries out what the core decides: every task once,
// after its inputs, in the order that the policy allows, for every mode, and
// for as long as the world says.
#include <gtest/gtest.h>

#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

TEST(ThreadsRun, ReadinessFirstRunsEveryTaskOnceAfterItsInputs) {
  TestRun run;
  run.prepare(chain_case(4, 8, true, 200 * kMicrosecond), 3);
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  ASSERT_EQ(run.sink->iterations.size(), 3U);
  for (int i = 0; i < 3; ++i) expect_lawful(run, i);
}

TEST(ThreadsRun, WindowOfOneKeepsTheFixedOrder) {
  for (const NetworkMode mode : {NetworkMode::kEager, NetworkMode::kRendezvous}) {
    Case input = chain_case(4, 6, false, 200 * kMicrosecond);
    input.policy.hint.name = "1f1b";
    input.policy.window = 1;
    input.network.mode = mode;
    TestRun run;
    run.prepare(input);
    run.run();
    ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
    expect_lawful(run, 0);
    for (int rank = 0; rank < 4; ++rank) {
      std::vector<std::string> expected;
      for (const Task& task : run.world().schedule().ranks[static_cast<std::size_t>(rank)]) {
        expected.push_back(to_string(task));
      }
      EXPECT_EQ(run.order(0, rank), expected) << "rank " << rank;
    }
  }
}

// Microbatch 0's activation is slow, microbatch 1's is not: readiness-first
// runs 1F1 before 1F0.
TEST(ThreadsRun, MessagesArriveOutOfOrderAndAreRunAsTheyCome) {
  Case input = chain_case(2, 2, false, 500 * kMicrosecond);
  set_latency(input, 0);
  input.network
      .latency_ns[static_cast<std::size_t>(input.program.find_edge(Kind::kForward, 0, 1))] = {
      20 * kMillisecond, 0};
  TestRun run;
  run.prepare(input);
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  expect_lawful(run, 0);
  EXPECT_EQ(run.order(0, 1), (std::vector<std::string>{"1F1", "1B1", "1F0", "1B0"}));
  EXPECT_EQ(run.order(0, 0), (std::vector<std::string>{"0F0", "0F1", "0B1", "0B0"}));
}

TEST(ThreadsRun, QueueDepthTwoHoldsTwoTasks) {
  Case input = chain_case(2, 6, true, 300 * kMicrosecond);
  input.queue_depth = 2;
  input.dispatch_ns = 100 * kMicrosecond;
  TestRun run;
  run.prepare(input);
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  expect_lawful(run, 0);
  int early = 0;  // decided before the one before it had ended
  const std::vector<TaskRecord>& tasks = run.worker(0, 0).tasks;
  for (std::size_t i = 1; i < tasks.size(); ++i) {
    if (tasks[i].decided_ns < tasks[i - 1].end_ns) ++early;
    EXPECT_GE(tasks[i].start_ns, tasks[i].decided_ns + 100 * kMicrosecond);
  }
  EXPECT_GT(early, 0);
}

TEST(ThreadsRun, RootInputsAndLinksTakeTheirTime) {
  Case input = chain_case(2, 3, false, 100 * kMicrosecond);
  input.input_ready_ns = {0, 3 * kMillisecond, 0};
  input.network.bytes_per_second = 1'000'000;  // 2,000 bytes take 2 ms
  input.network.message_bytes.assign(static_cast<std::size_t>(input.program.task_ids()), 2000);
  TestRun run;
  run.prepare(input);
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  expect_lawful(run, 0);
  for (const TaskRecord& task : run.worker(0, 0).tasks) {
    if (run.program().task(task.task) == Task{0, Kind::kForward, 1}) {
      EXPECT_GE(task.start_ns, 3 * kMillisecond);
    }
  }
  std::int64_t free_ns = 0;
  for (const ArrivalRecord& arrival : run.worker(0, 1).arrivals) {
    EXPECT_GE(arrival.arrival_ns - arrival.finish_ns, 2 * kMillisecond);
    EXPECT_GE(arrival.sent_ns, free_ns) << "the link carries one message at a time";
    EXPECT_EQ(arrival.bytes, 64) << "only so much of it travels for real";
    free_ns = arrival.sent_ns + 2 * kMillisecond;
  }
}

TEST(ThreadsRun, StallShowsInTheRecordAndNothingIsDatedBack) {
  TestRun run;
  run.prepare(chain_case(2, 4, false, kMillisecond));
  const TaskId stalled = run.program().find({1, Kind::kForward, 1});
  run.plan->injected.push_back({Injected::Kind::kStall, 1, 0, stalled, 5 * kMillisecond});
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  expect_lawful(run, 0);
  for (const TaskRecord& task : run.worker(0, 1).tasks) {
    if (task.task != stalled) continue;
    EXPECT_GE(task.end_ns - task.start_ns, 5 * kMillisecond);
  }
  EXPECT_GE(run.worker(0, 1).worst_stall_ns, 3 * kMillisecond);
}

TEST(ThreadsRun, SixteenThirtyTwoAndSixtyFourRanksComplete) {
  for (const int ranks : {16, 32, 64}) {
    Case input = chain_case(ranks, 8, true, 100 * kMicrosecond);
    input.policy.hint.name = "bfw";
    TestRun run;
    run.prepare(input);
    run.run();
    ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
    expect_lawful(run, 0);
  }
}

TEST(ThreadsRun, CreditsNeverDeadlock) {
  for (const bool ordered : {false, true}) {
    for (const int credits : {1, 2, 3}) {
      ProgramSpec spec = chain_case(3, 8, true, 1).program.spec();
      spec.ordered_accumulation = ordered;
      Case input{"credits", *Program::create(spec)};
      input.duration_ns.assign(static_cast<std::size_t>(input.program.task_ids()),
                               100 * kMicrosecond);
      input.memory.activation_bytes.assign(24, 10);
      input.memory.budget_bytes.assign(3, 20);
      input.policy.hint = {.name = "random", .order = {}, .group = 0, .seed = 7};
      TestRun run;
      run.prepare(input);
      run.plan->core.credits = credits;
      run.run();
      ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why << ", credits " << credits;
      expect_lawful(run, 0);
      for (int rank = 0; rank < 3; ++rank) EXPECT_LE(run.worker(0, rank).peak_bytes, 20);
    }
  }
}

TEST(ThreadsRun, LanesRunTheSameTasksInTheSameOrder) {
  for (const Coordination coordination : {Coordination::kVote, Coordination::kLeader}) {
    Case input = chain_case(3, 6, true, 200 * kMicrosecond);
    input.tensor_parallel = {3, coordination, 20 * kMicrosecond, 20 * kMicrosecond};
    set_latency(input, 100 * kMicrosecond);
    // Lanes see different messages late.
    for (std::vector<std::int64_t>& edge : input.network.latency_ns) {
      for (std::size_t i = 0; i < edge.size(); i += 5) edge[i] = 2 * kMillisecond;
    }
    TestRun run;
    run.prepare(input);
    run.run();
    ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
    expect_lawful(run, 0);
    for (int rank = 0; rank < 3; ++rank) {
      for (int lane = 1; lane < 3; ++lane) {
        EXPECT_EQ(run.order(0, rank * 3), run.order(0, rank * 3 + lane));
      }
    }
  }
}

// With votes a task is decided once every lane has its input and has told the
// leader, which takes vote_ns.
TEST(ThreadsRun, LeaderDecidesAfterEveryVote) {
  Case input = chain_case(2, 6, true, 200 * kMicrosecond);
  input.tensor_parallel = {2, Coordination::kVote, 300 * kMicrosecond, 0};
  set_latency(input, 0);
  std::vector<std::int64_t>& latency_ns =
      input.network
          .latency_ns[static_cast<std::size_t>(input.program.find_edge(Kind::kForward, 0, 1))];
  for (std::size_t i = 6; i < 12; ++i) latency_ns[i] = 2 * kMillisecond;  // of lane 1
  TestRun run;
  run.prepare(input);
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  int checked = 0;
  for (const ArrivalRecord& arrival : run.worker(0, 3).arrivals) {
    const TaskId task = run.program().task_id(1, Slot::kForward, arrival.microbatch);
    for (const TaskRecord& record : run.worker(0, 2).tasks) {
      if (record.task != task) continue;
      EXPECT_GE(record.decided_ns, arrival.arrival_ns + 300 * kMicrosecond);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 6);
}

TEST(ThreadsRun, ReplicasSumTheirGradientsStageByStage) {
  TestRun run;
  run.prepare(chain_case(2, 4, true, 200 * kMicrosecond), 2, 3);
  run.plan->end.gradient_sync_ns = {3 * kMillisecond, 2 * kMillisecond};
  run.plan->end.optimizer_ns = kMillisecond;
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  for (int i = 0; i < 2; ++i) expect_lawful(run, i);
  for (int stage = 0; stage < 2; ++stage) {
    std::int64_t last_start_ns = 0;
    for (int replica = 0; replica < 3; ++replica) {
      const WorkerRecord& worker = run.worker(0, replica * 2 + stage);
      ASSERT_EQ(worker.syncs.size(), 1U);
      last_start_ns = std::max(last_start_ns, worker.syncs[0].start_ns);
    }
    for (int replica = 0; replica < 3; ++replica) {
      const WorkerRecord& worker = run.worker(0, replica * 2 + stage);
      EXPECT_GE(worker.syncs[0].end_ns, last_start_ns + (3 - stage) * kMillisecond);
      EXPECT_GE(worker.end_ns, worker.syncs[0].end_ns + kMillisecond);
    }
  }
}

TEST(ThreadsRun, AnticipationWaitsForWhatIsAnnounced) {
  Case input = chain_case(2, 6, true, kMillisecond);
  input.policy.hint.name = "zb-h2";
  input.policy.anticipation = Anticipation{750, 500};
  TestRun run;
  run.prepare(input, 2);
  run.plan->core.adapt_expected = true;
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  for (int i = 0; i < 2; ++i) expect_lawful(run, i);
  int notices = 0;
  for (const CoreCall& call : run.worker(0, 1).calls) {
    if (call.kind == CoreCall::Kind::kNotice) ++notices;
  }
  EXPECT_GT(notices, 0);
}

// A notice says when its message is expected: after the start delay, the task
// and the transfer, as the profile has them; it is seen after notice_ns.
TEST(ThreadsRun, NoticesSayWhenAMessageIsExpected) {
  Case input = chain_case(2, 6, true, 900 * kMicrosecond);
  input.expected_ns.assign(input.duration_ns.size(), kMillisecond);
  input.dispatch_ns = 50 * kMicrosecond;
  input.policy.anticipation = Anticipation{750, 500};
  input.network.notice_ns = 200 * kMicrosecond;
  set_latency(input, 150 * kMicrosecond);
  TestRun run;
  run.prepare(input);
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  int notices = 0;
  for (const SignalRecord& signal : run.worker(0, 1).signals) {
    if (signal.type != SignalRecord::Type::kNotice) continue;
    ++notices;
    EXPECT_EQ(signal.eta_ns - signal.sent_ns, 1'200 * kMicrosecond);
    EXPECT_GE(signal.seen_ns, signal.sent_ns + 200 * kMicrosecond);
  }
  EXPECT_EQ(notices, 6);
}

// What rank 0 expects of its first forward, by the first notice that it gives.
std::int64_t first_expected_ns(const TestRun& run, int iteration) {
  for (const SignalRecord& signal : run.worker(iteration, 1).signals) {
    if (signal.type == SignalRecord::Type::kNotice) return signal.eta_ns - signal.sent_ns;
  }
  return 0;
}

// Tasks take twice what they are expected to. From one iteration to the next
// every microbatch costs thrice as much, so that machines are made anew; what
// was learnt of the ratio goes on.
TEST(ThreadsRun, RunningMeansOutliveTheCostsOfAnIteration) {
  for (const bool adapt : {false, true}) {
    TestRun run;
    for (const std::int64_t expected_ns : {kMillisecond, 3 * kMillisecond}) {
      Case input = chain_case(2, 16, false, 2 * expected_ns);
      input.expected_ns.assign(input.duration_ns.size(), expected_ns);
      input.policy.anticipation = Anticipation{750, 500};
      set_latency(input, 0);
      run.prepare(input);
    }
    run.plan->core.adapt_expected = adapt;
    run.run();
    ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
    EXPECT_EQ(first_expected_ns(run, 0), kMillisecond);
    const std::int64_t later_ns = first_expected_ns(run, 1);
    if (adapt) {
      EXPECT_GT(later_ns, 3 * kMillisecond * 17 / 10);
    } else {
      EXPECT_EQ(later_ns, 3 * kMillisecond);
    }
  }
}

// Two ranks whose fixed orders contradict each other.
TEST(ThreadsRun, BlockedOrdersAreDetectedAndNamed) {
  for (const NetworkMode mode : {NetworkMode::kEager, NetworkMode::kRendezvous}) {
    Case input = chain_case(2, 2, false, 100 * kMicrosecond);
    input.policy.window = 1;
    input.network.mode = mode;
    input.policy.hint.order.resize(2);
    for (const char* name : {"0F0", "0B0", "0F1", "0B1"}) {
      input.policy.hint.order[0].push_back(*parse_task(name));
    }
    for (const char* name : {"1F1", "1F0", "1B0", "1B1"}) {
      input.policy.hint.order[1].push_back(*parse_task(name));
    }
    TestRun run;
    run.prepare(input);
    run.plan->tuning.heartbeat_ns = 20 * kMillisecond;
    run.run();
    EXPECT_EQ(run.outcome.end, RunEnd::kBlocked) << run.outcome.why;
    EXPECT_EQ(run.outcome.blocked,
              (std::vector<Task>{{0, Kind::kBackward, 0}, {1, Kind::kForward, 1}}));
    ASSERT_EQ(run.outcome.waiting.size(), 2U);
    EXPECT_NE(run.outcome.waiting[1].find("1F1"), std::string::npos) << run.outcome.waiting[1];
    EXPECT_NE(run.outcome.waiting[1].find("rank 0 -> rank 1"), std::string::npos)
        << run.outcome.waiting[1];
    EXPECT_FALSE(run.outcome.left_behind);
  }
}

}  // namespace
}  // namespace rrfp
