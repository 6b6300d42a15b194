// Goal: the launch-queue mode gives what its rules say, to the nanosecond: on
// small cases worked by hand, on the shared golden cases of both lowerings, on
// measured iteration times within 5%, and a named block instead of a hang.
#include "sim/launch_queue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/launch_per_peer.h"
#include "sim/simulate_launch_queue.h"
#include "traces/torch_csv.h"

namespace rrfp {
namespace {

using nlohmann::json;

/// Durations are [rank]; empty W: B is not split.
struct Durations {
  std::vector<std::int64_t> forward_ns;
  std::vector<std::int64_t> backward_ns;
  std::vector<std::int64_t> weight_ns;
};

Case chain(const Durations& durations, int microbatches) {
  ProgramSpec spec;
  spec.ranks = static_cast<int>(durations.forward_ns.size());
  spec.microbatches = microbatches;
  spec.split_backward = !durations.weight_ns.empty();
  for (int rank = 0; rank < spec.ranks; ++rank) {
    spec.stages.push_back({.rank = rank, .predecessors = {}});
    if (rank > 0) spec.stages.back().predecessors = {rank - 1};
  }
  Case built{.name = "chain", .program = *Program::create(spec)};
  built.duration_ns.resize(built.program.task_ids());
  for (TaskId id = 0; id < built.program.task_ids(); ++id) {
    if (!built.program.exists(id)) continue;
    const int stage = built.program.stage_of(id);
    const Slot slot = built.program.slot_of(id);
    built.duration_ns[id] = slot == Slot::kForward    ? durations.forward_ns[stage]
                            : slot == Slot::kBackward ? durations.backward_ns[stage]
                                                      : durations.weight_ns[stage];
  }
  built.network.mode = NetworkMode::kLaunchQueue;
  built.policy.window = 1;
  return built;
}

Schedule one_forward_one_backward(const Program& program) {
  Schedule schedule;
  const int microbatches = program.microbatches();
  for (int rank = 0; rank < program.ranks(); ++rank) {
    std::vector<Task>& tasks = schedule.ranks.emplace_back();
    const int warmup = std::min(microbatches, program.ranks() - 1 - rank);
    for (int m = 0; m < warmup; ++m) tasks.push_back({rank, Kind::kForward, m});
    for (int m = 0; m < microbatches; ++m) {
      if (warmup + m < microbatches) tasks.push_back({rank, Kind::kForward, warmup + m});
      tasks.push_back({rank, Kind::kBackward, m});
    }
  }
  return schedule;
}

Schedule schedule_of(const std::vector<std::vector<std::string>>& rows) {
  Schedule schedule;
  for (const auto& row : rows) {
    schedule.ranks.emplace_back();
    for (const std::string& cell : row) schedule.ranks.back().push_back(*parse_task(cell));
  }
  return schedule;
}

/// Cells such as 1F0, 1SEND_F0, 0RECV_B3.
LaunchCells cells_of(const Program& program, const std::vector<std::vector<std::string>>& rows) {
  LaunchCells cells;
  for (const auto& row : rows) {
    std::vector<LaunchCell>& out = cells.emplace_back();
    for (const std::string& text : row) {
      const std::size_t underscore = text.find('_');
      if (underscore == std::string::npos) {
        out.push_back({LaunchCellKind::kCompute, program.find(*parse_task(text)), -1});
        continue;
      }
      const LaunchCellKind kind =
          text.find("SEND") != std::string::npos ? LaunchCellKind::kSend : LaunchCellKind::kReceive;
      const Kind tensor = text[underscore + 1] == 'F' ? Kind::kForward : Kind::kBackward;
      for (const LaunchCell& cell : communication_cells(program, kind, std::stoi(text), tensor,
                                                        std::stoi(text.substr(underscore + 2)))) {
        out.push_back(cell);
      }
    }
  }
  return cells;
}

Schedule computes_of(const Program& program, const LaunchCells& cells) {
  Schedule schedule;
  for (const auto& row : cells) {
    schedule.ranks.emplace_back();
    for (const LaunchCell& cell : row) {
      if (cell.kind == LaunchCellKind::kCompute) {
        schedule.ranks.back().push_back(program.task(cell.task));
      }
    }
  }
  return schedule;
}

json shared_json(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(RRFP_SHARED_DIR) / "launch_queue" / name;
  std::ifstream file(path);
  return file ? json::parse(file) : json();
}

std::int64_t total(const IdleTimes& idle_ns) {
  std::int64_t sum = 0;
  for (const std::int64_t ns : idle_ns) sum += ns;
  return sum;
}

/// Causes add up to the idle time, and busy plus idle to the makespan.
void expect_accounted(const SimulationResult& result) {
  for (const RankResult& rank : result.ranks) {
    EXPECT_EQ(rank.busy_ns + total(rank.idle_ns), result.makespan_ns);
    for (const std::int64_t ns : rank.idle_ns) EXPECT_GE(ns, 0);
  }
}

TEST(LaunchQueueTest, MatchesEveryGoldenCase) {
  const json golden = shared_json("golden.json");
  if (golden.is_null()) GTEST_SKIP() << "no shared launch_queue/golden.json";
  int cases = 0;
  for (const json& entry : golden["cases"]) {
    const json& ns = entry["durations_ns"];
    const bool split = entry["schedule"] == "zb";
    Case input =
        chain({ns["F"], ns[split ? "I" : "B"],
               split ? ns["W"].get<std::vector<std::int64_t>>() : std::vector<std::int64_t>{}},
              entry["microbatches"]);
    input.network.message_ns = entry["message_ns"];
    for (const json& link : entry["slow_directed"]) {
      input.network.link_delays.push_back({link[0], link[1], entry["delay_ns"]});
    }
    LaunchOptions launch;
    if (split) {
      launch.cells =
          cells_of(input.program, golden["zb_order"][std::to_string(input.program.ranks())]);
    }
    const Schedule order =
        split ? computes_of(input.program, launch.cells) : one_forward_one_backward(input.program);
    const auto result = simulate_launch_queue(input, order, {}, launch);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_TRUE(result->completed);
    EXPECT_EQ(result->makespan_ns, entry["makespan_ns"].get<std::int64_t>()) << entry.dump();
    expect_accounted(*result);
    ++cases;
  }
  EXPECT_EQ(cases, 72);
}

/// A torch file with its SEND and RECV cells, through the reader and the one
/// entry point, gives the exact times too; without the cells it does not.
TEST(LaunchQueueTest, TorchFilesBringTheirCells) {
  const json golden = shared_json("golden.json");
  if (golden.is_null()) GTEST_SKIP() << "no shared launch_queue/golden.json";
  int cases = 0;
  int moved = 0;
  for (const json& entry : golden["cases"]) {
    if (entry["schedule"] != "zb") continue;
    const json& ns = entry["durations_ns"];
    Case input = chain({ns["F"], ns["I"], ns["W"]}, entry["microbatches"]);
    input.network.message_ns = entry["message_ns"];
    for (const json& link : entry["slow_directed"]) {
      input.network.link_delays.push_back({link[0], link[1], entry["delay_ns"]});
    }
    std::string csv;
    for (const json& row : golden["zb_order"][std::to_string(input.program.ranks())]) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        csv += (i == 0 ? "" : ",") + row[i].get<std::string>();
      }
      csv += "\n";
    }
    const auto torch = parse_torch_csv(csv, "zb.csv");
    ASSERT_TRUE(torch.ok()) << torch.error().message;
    const TorchPlan plan = to_plan(*torch);
    input.policy.hint.order = plan.schedule.ranks;
    input.policy.hint.messages = plan.messages;
    const auto result = simulate(input);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->makespan_ns, entry["makespan_ns"].get<std::int64_t>()) << entry.dump();
    input.policy.hint.messages = {{}, {{0, false, Kind::kForward, 1, 0}}};
    input.policy.hint.messages.resize(plan.messages.size());
    EXPECT_FALSE(simulate(input)->completed) << "most messages are never sent";
    ++cases;
    moved += plan.messages[1].size() > 3 ? 1 : 0;
  }
  EXPECT_EQ(cases, 36);
  EXPECT_EQ(moved, cases);
}

TEST(LaunchQueueTest, NamesACellThatHasNoPlace) {
  Case input = chain({{10, 10}, {20, 20}, {}}, 2);
  input.policy.hint.order = one_forward_one_backward(input.program).ranks;
  const auto message_of = [&](const OrderedMessage& message) {
    input.policy.hint.messages = {{message}, {}};
    const auto result = simulate(input);
    return result.ok() ? std::string("no error") : result.error().message;
  };
  EXPECT_EQ(message_of({0, true, Kind::kForward, 1, 0}),
            "1SEND_F0 of rank 0: the stage is on rank 1");
  EXPECT_EQ(message_of({0, true, Kind::kForward, 0, 2}),
            "0SEND_F2 of rank 0: there is no such stage or microbatch");
}

std::vector<std::int64_t> to_ns(const json& list_ms) {
  std::vector<std::int64_t> ns;
  for (const json& ms : list_ms) {
    ns.push_back(ms.is_null() ? -1 : std::llround(ms.get<double>() * 1e6));
  }
  return ns;
}

/// The weight gradients behind the last other cell take `trailing_ns` in all.
void set_trailing_weights(const LaunchCells& cells, const std::vector<std::int64_t>& trailing_ns,
                          Case* input) {
  for (std::size_t rank = 0; rank < cells.size(); ++rank) {
    if (trailing_ns[rank] < 0) continue;
    std::int64_t left_ns = trailing_ns[rank];
    for (auto cell = cells[rank].rbegin(); cell->kind == LaunchCellKind::kCompute &&
                                           input->program.slot_of(cell->task) == Slot::kWeight;
         ++cell) {
      input->duration_ns[cell->task] = left_ns;
      left_ns = 0;
    }
  }
}

TEST(LaunchQueueTest, PredictsMeasuredIterationTimes) {
  const json golden = shared_json("golden.json");
  const json measured = shared_json("measured-a10.json");
  if (golden.is_null() || measured.is_null()) GTEST_SKIP() << "no shared launch_queue data";
  int points = 0;
  for (const json& point : measured["points"]) {
    const json& ms = point["durations_ms"];
    const bool split = point["schedule"] == "zb";
    Case input = chain({to_ns(ms["F"]), to_ns(ms[split ? "I" : "B"]),
                        split ? to_ns(ms["W"]) : std::vector<std::int64_t>{}},
                       measured["microbatches"]);
    input.network.message_ns = std::llround(measured["message_ms"].get<double>() * 1e6);
    LaunchOptions launch;
    if (split) {
      launch.cells = cells_of(input.program, golden["zb_order"]["4"]);
      set_trailing_weights(launch.cells, to_ns(ms["trailing_W"]), &input);
    }
    const Schedule order =
        split ? computes_of(input.program, launch.cells) : one_forward_one_backward(input.program);
    const auto before = simulate_launch_queue(input, order, {}, launch);
    const std::int64_t delay_ns = std::llround(point["delay_ms"].get<double>() * 1e6);
    for (const json& link : point["slow_directed"]) {
      input.network.link_delays.push_back({link[0], link[1], delay_ns});
    }
    const auto after = simulate_launch_queue(input, order, {}, launch);
    ASSERT_TRUE(before.ok() && after.ok());
    const double predicted_ms =
        static_cast<double>(after->makespan_ns - before->makespan_ns) / 1e6 +
        point["measured_before_ms"].get<double>();
    const double error = predicted_ms / point["measured_after_ms"].get<double>() - 1.0;
    EXPECT_LT(error, 0.0) << point.dump();
    EXPECT_GT(error, -0.05) << point.dump();
    ++points;
  }
  EXPECT_EQ(points, 24);
}

std::int64_t idle(const RankResult& rank, IdleCause cause) {
  return rank.idle_ns[static_cast<std::size_t>(cause)];
}

using Times = std::vector<std::int64_t>;

TEST(LaunchQueueTest, BatchedStepsGroupAndWait) {
  Case input = chain({{10, 10}, {20, 20}, {}}, 1);
  input.network.message_ns = 3;
  const auto result = simulate_launch_queue(input, one_forward_one_backward(input.program),
                                            {.idle_causes = true, .messages = true});
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->ranks[0].start_ns, (Times{0, 46}));
  EXPECT_EQ(result->ranks[1].start_ns, (Times{13, 23}));
  EXPECT_EQ(result->makespan_ns, 66);
  expect_accounted(*result);
  EXPECT_EQ(idle(result->ranks[0], IdleCause::kRendezvous), 36);
  EXPECT_EQ(idle(result->ranks[1], IdleCause::kFill), 13);
  EXPECT_EQ(idle(result->ranks[1], IdleCause::kDrain), 23);
  ASSERT_EQ(result->messages.size(), 2U);
  EXPECT_EQ(result->messages[1].finish_ns, 43);
  EXPECT_EQ(result->messages[1].sent_ns, 43);
  EXPECT_EQ(result->messages[1].arrival_ns, 46);
}

TEST(LaunchQueueTest, AMessageTakesAsLongAsTheLargerOfItsEntries) {
  // Rank 0 sends messages 0 and 1 in one entry, which rank 1 receives one by
  // one; then the other way round with messages 2 and 3.
  const auto entry = [](int stream, int first, int last) {
    LaunchAction action;
    action.kind = LaunchKind::kCommunicate;
    action.stream = stream;
    action.first = first;
    action.last = last;
    return action;
  };
  LaunchProgram program;
  program.message_ns = 3;
  program.messages = 4;
  program.ranks.resize(2);
  program.ranks[0].operations = {{0, true}, {1, true}, {2, true}, {3, true}};
  program.ranks[0].actions = {entry(kBatchedStream, 0, 2), entry(peer_stream(1), 2, 3),
                              entry(peer_stream(1), 3, 4)};
  program.ranks[1].operations = {{0, false}, {1, false}, {2, false}, {3, false}};
  program.ranks[1].actions = {entry(peer_stream(0), 0, 1), entry(peer_stream(0), 1, 2),
                              entry(kBatchedStream, 2, 4)};
  const LaunchTimes times = evaluate(program);
  EXPECT_TRUE(times.completed);
  EXPECT_EQ(times.arrival_ns[0], 6);
  EXPECT_EQ(times.arrival_ns[1], 12);
  // The batch of rank 1 issues at 6, behind its second receive in the queue.
  EXPECT_EQ(times.arrival_ns[2], 12);
  EXPECT_EQ(times.arrival_ns[3], 18);
}

TEST(LaunchQueueTest, DelayOfASendHoldsUpTheReceivesOfItsBatch) {
  Case input = chain({{10, 10}, {20, 20}, {}}, 2);
  input.network.message_ns = 3;
  input.network.link_delays = {{0, 1, 100}};
  const auto result = simulate_launch_queue(input, one_forward_one_backward(input.program));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->ranks[0].start_ns, (Times{0, 113, 229, 262}));
  EXPECT_EQ(result->ranks[1].start_ns, (Times{113, 123, 229, 239}));
  EXPECT_EQ(result->makespan_ns, 282);
}

TEST(LaunchQueueTest, DelayedSendHoldsUpTheQueueButNotTheOtherRank) {
  Case input = chain({{10, 10}, {10, 10}, {5, 5}}, 1);
  input.network.message_ns = 3;
  input.network.link_delays = {{1, 0, 50}};
  const Schedule order = schedule_of({{"0F0", "0I0", "0W0"}, {"1F0", "1I0", "1W0"}});
  const auto result = simulate_launch_queue(input, order);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->ranks[0].start_ns, (Times{0, 86, 96}));
  EXPECT_EQ(result->ranks[1].start_ns, (Times{13, 23, 83}));
  EXPECT_EQ(result->makespan_ns, 101);
  expect_accounted(*result);
}

TEST(LaunchQueueTest, PlacesCellsByPlannedEnds) {
  Case input = chain({{10, 10}, {10, 10}, {10, 10}}, 2);
  input.network.message_ns = 1;
  const Schedule order = schedule_of(
      {{"0F0", "0F1", "0I0", "0W0", "0I1", "0W1"}, {"1F0", "1I0", "1F1", "1I1", "1W0", "1W1"}});
  EXPECT_EQ(place_cells(input, order),
            cells_of(input.program, {{"0F0", "0SEND_F0", "0F1", "0SEND_F1", "0RECV_B0", "0I0",
                                      "0RECV_B1", "0W0", "0I1", "0W1"},
                                     {"1RECV_F0", "1RECV_F1", "1F0", "1I0", "1SEND_B0", "1F1",
                                      "1I1", "1SEND_B1", "1W0", "1W1"}}));
}

TEST(LaunchQueueTest, TrailingWeightGradientsAreOneCompute) {
  Case input = chain({{10, 10}, {10, 10}, {10, 10}}, 2);
  const Schedule order = schedule_of(
      {{"0F0", "0F1", "0I0", "0I1", "0W0", "0W1"}, {"1F0", "1I0", "1W0", "1F1", "1I1", "1W1"}});
  const Result<LaunchProgram> lowered = lower_per_peer(input, place_cells(input, order));
  ASSERT_TRUE(lowered.ok()) << lowered.error().message;
  const auto computes = [&](int rank) {
    int count = 0;
    for (const LaunchAction& action : lowered->ranks[rank].actions) {
      count += action.kind == LaunchKind::kCompute ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(computes(0), 5);
  EXPECT_EQ(computes(1), 6);
}

TEST(LaunchQueueTest, ReportsRanksThatWaitForEachOther) {
  Case input = chain({{100, 100}, {200, 200}, {}}, 2);
  const Schedule order = schedule_of({{"0F0", "0B0", "0F1", "0B1"}, {"1F1", "1B1", "1F0", "1B0"}});
  for (const LaunchLowering lowering : {LaunchLowering::kBatched, LaunchLowering::kPerPeer}) {
    const auto result =
        simulate_launch_queue(input, order, {}, {.lowering = lowering, .cells = {}});
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_FALSE(result->completed);
    EXPECT_EQ(result->makespan_ns, 100);
    EXPECT_EQ(result->blocked,
              (std::vector<Task>{{0, Kind::kBackward, 0}, {1, Kind::kForward, 1}}));
    expect_accounted(*result);
  }
}

TEST(LaunchQueueTest, ReportsAnOrderThatItsMemoryDoesNotHold) {
  Case input = chain({{10, 10}, {20, 20}, {}}, 2);
  input.network.message_ns = 3;
  input.memory.activation_bytes = {5, 5, 5, 5};
  input.memory.budget_bytes = {5, std::nullopt};
  const auto result = simulate_launch_queue(input, one_forward_one_backward(input.program));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_FALSE(result->completed);
  EXPECT_EQ(result->blocked, (std::vector<Task>{{0, Kind::kForward, 1}, {1, Kind::kForward, 1}}));
  EXPECT_EQ(result->makespan_ns, 43);
  EXPECT_EQ(idle(result->ranks[0], IdleCause::kRendezvous), 3);
  EXPECT_EQ(idle(result->ranks[0], IdleCause::kMemory), 30);
  EXPECT_EQ(result->ranks[0].peak_bytes, 5);
  expect_accounted(*result);

  input.memory.budget_bytes = {10, std::nullopt};
  const auto enough = simulate_launch_queue(input, one_forward_one_backward(input.program));
  EXPECT_TRUE(enough->completed);
  EXPECT_EQ(enough->ranks[0].peak_bytes, 10);
}

TEST(LaunchQueueTest, ReportsAWeightGradientAheadOfItsBackward) {
  Case input = chain({{10, 10}, {10, 10}, {10, 10}}, 1);
  const Schedule order = schedule_of({{"0F0", "0W0", "0I0"}, {"1F0", "1I0", "1W0"}});
  for (const LaunchLowering lowering : {LaunchLowering::kBatched, LaunchLowering::kPerPeer}) {
    const auto result =
        simulate_launch_queue(input, order, {}, {.lowering = lowering, .cells = {}});
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_FALSE(result->completed);
    ASSERT_FALSE(result->blocked.empty());
    EXPECT_EQ(result->blocked[0], (Task{0, Kind::kWeightGradient, 0}));
    expect_accounted(*result);
  }
}

TEST(LaunchQueueTest, ReportsAMessageThatIsNeverSent) {
  Case input = chain({{10, 10}, {10, 10}, {}}, 1);
  LaunchOptions launch;
  launch.cells =
      cells_of(input.program, {{"0F0", "0RECV_B0", "0B0"}, {"1RECV_F0", "1F0", "1B0", "1SEND_B0"}});
  const auto result =
      simulate_launch_queue(input, computes_of(input.program, launch.cells), {}, launch);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_FALSE(result->completed);
  EXPECT_EQ(result->blocked, (std::vector<Task>{{0, Kind::kBackward, 0}, {1, Kind::kForward, 0}}));

  launch.cells[0].push_back(launch.cells[0][1]);
  const auto twice =
      simulate_launch_queue(input, computes_of(input.program, launch.cells), {}, launch);
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().message.find("0RECV_B0"), std::string::npos) << twice.error().message;
}

TEST(LaunchQueueTest, ChunkedPlacementsRunPerPeerAndNotInBatches) {
  ProgramSpec spec{.ranks = 2, .microbatches = 2, .stages = {}};
  spec.stages = {{.rank = 0, .predecessors = {}},
                 {.rank = 1, .predecessors = {0}},
                 {.rank = 1, .predecessors = {1}},
                 {.rank = 0, .predecessors = {2}}};
  Case input{.name = "v", .program = *Program::create(spec)};
  input.duration_ns.assign(input.program.task_ids(), 10);
  input.network.mode = NetworkMode::kLaunchQueue;
  input.network.message_ns = 1;
  input.policy.window = 1;
  const Schedule order = schedule_of({{"0F0", "0F1", "3F0", "3B0", "3F1", "3B1", "0B0", "0B1"},
                                      {"1F0", "2F0", "1F1", "2F1", "2B0", "1B0", "2B1", "1B1"}});
  const auto result = simulate_launch_queue(input, order);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(result->completed);
  // Rank 1: F [11,31] and [31,51]; rank 0 gets 3F0 at 32 and is done at 52.
  EXPECT_EQ(result->ranks[0].start_ns[2], 32);
  expect_accounted(*result);
  const auto batched =
      simulate_launch_queue(input, order, {}, {.lowering = LaunchLowering::kBatched, .cells = {}});
  ASSERT_FALSE(batched.ok());
  EXPECT_NE(batched.error().message.find("one stage per rank"), std::string::npos);
}

TEST(LaunchQueueTest, HostWaitsForInputsAndPaysForLaunches) {
  Case input = chain({{10}, {20}, {}}, 2);
  input.input_ready_ns = {4, 100};
  input.dispatch_ns = 2;
  const auto result = simulate_launch_queue(input, one_forward_one_backward(input.program));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->ranks[0].start_ns, (Times{6, 18, 102, 114}));
  EXPECT_EQ(idle(result->ranks[0], IdleCause::kFill), 4);
  EXPECT_EQ(idle(result->ranks[0], IdleCause::kDispatch), 8);
  expect_accounted(*result);
}

/// Through the one entry point: hints by name, arrangement, fused backwards.
TEST(LaunchQueueTest, SimulateRunsCasesOfThisMode) {
  Case input = chain({{10, 10}, {20, 20}, {}}, 2);
  input.network.message_ns = 3;
  input.network.link_delays = {{0, 1, 100}};
  input.policy.hint.name = "1f1b";
  const auto named = simulate(input);
  ASSERT_TRUE(named.ok()) << named.error().message;
  EXPECT_EQ(named->makespan_ns, 282);

  Case split = chain({{10, 10}, {10, 10}, {10, 10}}, 2);
  split.policy.hint.order =
      schedule_of({{"0F0", "0F1", "0B0", "0B1"}, {"1F0", "1B0", "1F1", "1B1"}}).ranks;
  split.policy.arrangement = Arrangement::kAscending;
  split.duration_ns[split.program.task_id(0, Slot::kForward, 0)] = 11;
  const auto fused = simulate(split);
  ASSERT_TRUE(fused.ok()) << fused.error().message;
  EXPECT_TRUE(fused->completed);
  EXPECT_EQ(fused->arrangement, (std::vector<int>{1, 0}));
  // Rank 1: F [10,20], B [20,40], F [40,50], B [50,70]; rank 0: B [70,90].
  EXPECT_EQ(fused->makespan_ns, 90);
}

TEST(LaunchQueueTest, NamesWhatItDoesNotTake) {
  Case input = chain({{10, 10}, {20, 20}, {}}, 2);
  const Schedule order = one_forward_one_backward(input.program);
  const auto message_of = [&](const Case& wrong) {
    const auto result = simulate_launch_queue(wrong, order);
    return result.ok() ? std::string("no error") : result.error().message;
  };
  Case no_window = input;
  no_window.policy.window = kNoWindow;
  EXPECT_NE(message_of(no_window).find("policy.window must be 1"), std::string::npos);
  Case far = input;
  far.network.link_delays = {{0, 2, 5}};
  EXPECT_NE(message_of(far).find("link_delay_ns[0]: rank 2"), std::string::npos);
  Case twice = input;
  twice.network.link_delays = {{0, 1, 5}, {1, 0, 5}, {0, 1, 6}};
  EXPECT_NE(message_of(twice).find("from 0 to 1 is named twice"), std::string::npos);
  Case negative = input;
  negative.network.link_delays = {{0, 1, -5}};
  EXPECT_NE(message_of(negative).find(".ns is -5"), std::string::npos);
}

}  // namespace
}  // namespace rrfp
