// Goal: a pipelined run trains the same model as a serial run, to the last bit
// of every weight and loss, whatever decided the order of its tasks; and that
// model learns.
#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "executor/training_case.h"
#include "executor/training_report.h"
#include "executor/training_run.h"
#include "scheduler_core/admission.h"
#include "scheduler_core/random.h"
#include "tests/executor/runs_for_tests.h"
#include "tests/executor/training_for_tests.h"
#include "traces/case_file.h"

namespace rrfp {
namespace {

DeviceMaker thread_devices(const TrainingRun& run) {
  const Grid grid = run.plan().grid;
  std::map<int, std::shared_ptr<ThreadsLaneGroup>> groups;
  for (int rank = 0; rank < grid.replicas * grid.ranks; ++rank) {
    groups[rank] = std::make_shared<ThreadsLaneGroup>(grid.lanes, 2'000'000'000);
  }
  return run.devices([grid, groups](const Place& place) {
    return std::make_shared<ThreadsLaneExchange>(groups.at(place.replica * grid.ranks + place.rank),
                                                 place.lane);
  });
}

struct Trained {
  Training pipelined;
  Training serial;
  RunOutcome outcome;
  Arrangements arrangements;
};

Trained train(const TrainingSetup& setup, const CaseOf& cases) {
  Trained trained;
  Result<TrainingRun> run = prepare_training(setup, small_text(), cases);
  EXPECT_TRUE(run.ok()) << run.error().message;
  if (!run.ok()) return trained;
  run->prepared.plan->core.record = true;
  auto kept = std::make_shared<KeepingSink>();
  run->sink->set_next(kept);
  trained.outcome = run_on_threads(run->prepared.plan, thread_devices(*run), run->sink,
                                   default_tuning(run->plan().grid.size()),
                                   std::make_shared<std::atomic<bool>>(false));
  expect_decisions_replay(run->plan(), kept->iterations);
  trained.pipelined = run->sink->result();
  trained.arrangements = run->arrangements;
  const CpuTraining& of = *run->training;
  Result<Training> serial = train_serially(of.spec, of.data, run->program(), run->arrangements);
  EXPECT_TRUE(serial.ok()) << serial.error().message;
  if (serial.ok()) trained.serial = std::move(*serial);
  return trained;
}

Trained train(const TrainingSetup& setup, const Case& input) {
  return train(setup, [&](int, int) -> Result<Case> { return input; });
}

// Bits, not numbers: 0 and -0 differ.
void expect_equal(const Trained& trained, const TrainingSetup& setup) {
  ASSERT_EQ(trained.outcome.end, RunEnd::kCompleted) << trained.outcome.why;
  ASSERT_EQ(trained.serial.loss.size(), static_cast<std::size_t>(setup.steps));
  EXPECT_EQ(trained.pipelined.loss, trained.serial.loss);
  ASSERT_FALSE(trained.serial.weights.empty());
  ASSERT_EQ(trained.pipelined.weights.size(), trained.serial.weights.size());
  for (const auto& [name, matrix] : trained.serial.weights) {
    const auto found = trained.pipelined.weights.find(name);
    ASSERT_NE(found, trained.pipelined.weights.end()) << name;
    EXPECT_EQ(to_report({{name, matrix}}), to_report({{name, found->second}})) << name;
  }
  EXPECT_EQ(digest(trained.pipelined.weights), digest(trained.serial.weights));
}

TEST(Training, EqualsASerialRunUnderEveryHintWindowBudgetAndDepth) {
  const TrainingSetup setup = small_setup();
  int runs = 0;
  for (const bool split : {false, true}) {
    for (const char* hint : {"bf", "bfw", "gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2"}) {
      const std::string name = hint;
      if (!split && (name == "bfw" || name[0] == 'z')) continue;
      for (const int variant : {0, 1, 2, 3}) {
        Case input = case_of({3, 6, split});
        input.policy.hint.name = hint;
        if (variant == 1) {
          // The least that works, in units of one activation.
          input.memory.activation_bytes.assign(3 * 6, 1);
          input.memory.budget_bytes.assign(3, 1);
        }
        if (variant == 2 && name[0] != 'b') input.policy.window = 1;
        if (variant == 3) input.queue_depth = 2;
        SCOPED_TRACE(name + (split ? ", split" : "") + ", variant " + std::to_string(variant));
        expect_equal(train(setup, input), setup);
        if (::testing::Test::HasFatalFailure()) return;
        ++runs;
      }
    }
  }
  EXPECT_EQ(runs, 44);
}

TEST(Training, EqualsASerialRunUnderInjectedJitterAndAnticipation) {
  TrainingSetup setup = small_setup();
  setup.paced = true;
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    Case input = case_of({3, 6, true});
    draw_world(input, 300 * kMicrosecond, kMillisecond, seed);
    input.policy.hint.name = "bfw";
    if (seed % 2 == 0) {
      input.policy.hint.name = "zb-h2";
      input.policy.anticipation = Anticipation{750, 500};
    }
    SCOPED_TRACE(seed);
    expect_equal(train(setup, input), setup);
  }
}

TEST(Training, EqualsASerialRunWithBlockingSendAndReceive) {
  const TrainingSetup setup = small_setup();
  Case input = case_of({3, 6, false});
  input.policy.hint.name = "1f1b";
  input.policy.window = 1;
  input.network.mode = NetworkMode::kRendezvous;
  expect_equal(train(setup, input), setup);
}

// The model does not depend on how it is cut: one stage, and several of one
// rank, train the same weights.
TEST(Training, EqualsASerialRunHoweverTheModelIsCut) {
  const TrainingSetup setup = small_setup();
  const Trained whole = train(setup, case_of({1, 6, true}));
  expect_equal(whole, setup);
  Shape chunks{2, 6, true, true, {}};
  for (int stage = 0; stage < 4; ++stage) {
    chunks.stages.push_back({stage % 2, {}, Backward::kFull});
    if (stage > 0) chunks.stages.back().predecessors = {stage - 1};
  }
  const Trained cut = train(setup, case_of(chunks));
  expect_equal(cut, setup);
  EXPECT_EQ(digest(cut.serial.weights), digest(whole.serial.weights));
  EXPECT_EQ(digest(train(setup, case_of({4, 6, false})).pipelined.weights),
            digest(whole.serial.weights));
}

TEST(Training, EqualsASerialRunWithArrangedMicrobatches) {
  const TrainingSetup setup = small_setup();
  std::vector<std::uint64_t> digests;
  for (const Arrangement arrange :
       {Arrangement::kGiven, Arrangement::kAscending, Arrangement::kHill}) {
    Case input = case_of({3, 6, true});
    input.policy.arrangement = arrange;
    const Trained trained = train(setup, input);
    expect_equal(trained, setup);
    EXPECT_EQ(trained.arrangements[0][0].empty(), arrange == Arrangement::kGiven);
    digests.push_back(digest(trained.serial.weights));
  }
  // Other orders of the same sums: else the arrangement did not reach the data.
  EXPECT_NE(digests[0], digests[1]);
  EXPECT_NE(digests[1], digests[2]);
}

TEST(Training, WithoutOrderedAccumulationEqualsASerialRunWithinRounding) {
  TrainingSetup setup = small_setup();
  setup.paced = true;
  Case input = case_of({2, 4, true, false});
  // The activation of microbatch 0 comes last, and so does its W on both ranks.
  set_latency(input, 0);
  const EdgeId edge = input.program.find_edge(Kind::kForward, 0, 1);
  input.network.latency_ns[static_cast<std::size_t>(edge)][0] = 20 * kMillisecond;
  const Trained trained = train(setup, input);
  ASSERT_EQ(trained.outcome.end, RunEnd::kCompleted) << trained.outcome.why;
  for (std::size_t step = 0; step < trained.serial.loss.size(); ++step) {
    EXPECT_NEAR(trained.pipelined.loss[step], trained.serial.loss[step], 1e-12);
  }
  for (const auto& [name, matrix] : trained.serial.weights) {
    const Matrix& other = trained.pipelined.weights.at(name);
    EXPECT_LT((matrix - other).cwiseAbs().maxCoeff(), 1e-12) << name;
  }
  // Else the order of sums does not show, and equal bits prove nothing.
  EXPECT_NE(digest(trained.serial.weights), digest(trained.pipelined.weights));
  input.program = case_of({2, 4, true, true}).program;
  expect_equal(train(setup, input), setup);
}

TEST(Training, EqualsASerialRunWithAnEncoderThatJoinsTheDecoder) {
  TrainingSetup setup = small_setup();
  setup.spec.model.blocks = 5;
  for (const bool limited : {false, true}) {
    Case input = case_of(with_encoder(Backward::kFull));
    if (limited) {
      input.memory.activation_bytes.assign(5 * 5, 1);
      input.memory.budget_bytes = {2, 2, 1};
    }
    expect_equal(train(setup, input), setup);
  }
}

TEST(Training, FrozenStagesKeepTheirWeights) {
  TrainingSetup setup = small_setup();
  setup.spec.model.blocks = 5;
  const auto weights_after = [&](int steps, Backward of_encoder) {
    setup.steps = steps;
    const Trained trained = train(setup, case_of(with_encoder(of_encoder)));
    expect_equal(trained, setup);
    return trained.pipelined.weights;
  };
  for (const Backward of_encoder : {Backward::kInput, Backward::kNone, Backward::kFull}) {
    auto early = weights_after(1, of_encoder);
    auto late = weights_after(3, of_encoder);
    for (const char* name : {"root 1 token", "block 0 mlp in", "block 1 attention out"}) {
      EXPECT_EQ(early.at(name) == late.at(name), of_encoder != Backward::kFull) << name;
    }
    EXPECT_NE(early.at("block 3 mlp in"), late.at("block 3 mlp in"));
  }
}

TEST(Training, EqualsASerialRunWithReplicas) {
  TrainingSetup setup = small_setup();
  setup.paced = true;
  setup.replicas = 3;  // two can be added either way
  const Trained trained = train(setup, [](int step, int replica) -> Result<Case> {
    Case input = case_of({2, 4, true});
    draw_world(input, 200 * kMicrosecond, 300 * kMicrosecond,
               static_cast<std::uint64_t>(10 * step + replica));
    return input;
  });
  expect_equal(trained, setup);
  setup.replicas = 1;
  EXPECT_NE(train(setup, case_of({2, 4, true})).serial.loss, trained.serial.loss)
      << "the other replicas' samples took no part";
}

TEST(Training, EqualsASerialRunWithLanes) {
  for (const Coordination coordination : {Coordination::kVote, Coordination::kLeader}) {
    for (const int replicas : {1, 2}) {
      TrainingSetup setup = small_setup();
      setup.replicas = replicas;
      setup.paced = true;
      setup.spec.model.heads = 4;
      Case input = case_of({2, 4, true});
      input.tensor_parallel.lanes = 4;  // two can be added either way
      input.tensor_parallel.coordination = coordination;
      draw_world(input, 200 * kMicrosecond, 400 * kMicrosecond, 5);
      const Trained trained = train(setup, input);
      expect_equal(trained, setup);
      EXPECT_EQ(trained.serial.weights.count("block 0 mlp in, lane 3"), 1U);
    }
  }
}

TEST(Training, LossGoesDown) {
  TrainingSetup setup = small_setup();
  setup.steps = 60;
  setup.spec.model.width = 16;
  setup.spec.model.blocks = 2;
  setup.spec.data.shortest = 12;
  setup.spec.data.longest = 24;
  Result<TrainingRun> run = prepare_training(setup, small_text(), [](int, int) -> Result<Case> {
    return case_of({2, 4, true});
  });
  ASSERT_TRUE(run.ok()) << run.error().message;
  const RunOutcome outcome =
      run_on_threads(run->prepared.plan, thread_devices(*run), run->sink, default_tuning(2),
                     std::make_shared<std::atomic<bool>>(false));
  ASSERT_EQ(outcome.end, RunEnd::kCompleted) << outcome.why;
  const std::vector<Real>& loss = run->sink->result().loss;
  ASSERT_EQ(loss.size(), 60U);
  // At first every byte is about as likely as any other.
  EXPECT_NEAR(loss.front(), std::log(256.0), 1.0);
  EXPECT_LT(loss.back(), 0.5 * loss.front());
}

TEST(Training, ALossThatIsNoNumberStopsTheRunAndNamesTheStep) {
  TrainingSetup setup = small_setup();
  setup.spec.optimizer.learning_rate = 1e300;
  for (const int ranks : {1, 3}) {
    Result<TrainingRun> run = prepare_training(setup, small_text(), [&](int, int) -> Result<Case> {
      return case_of({ranks, 4, true});
    });
    ASSERT_TRUE(run.ok()) << run.error().message;
    const RunOutcome outcome =
        run_on_threads(run->prepared.plan, thread_devices(*run), run->sink, default_tuning(ranks),
                       std::make_shared<std::atomic<bool>>(false));
    EXPECT_EQ(outcome.end, RunEnd::kFault);
    EXPECT_NE(outcome.why.find("step 1: the loss of microbatch "), std::string::npos)
        << outcome.why;
    EXPECT_EQ(run->sink->result().loss.size(), 1U);
    const Result<Training> serial =
        train_serially(run->training->spec, run->training->data, run->program(), run->arrangements);
    ASSERT_FALSE(serial.ok());
    EXPECT_EQ(serial.error().message.find("step 1: the loss of microbatch 0 is "), 0U)
        << serial.error().message;
  }
}

TEST(Training, CasesCountTheBytesOfTheModel) {
  ModelSpec model = small_setup().spec.model;
  model.longest = 12;
  Case base = case_of({2, 3, true});
  base.memory.activation_bytes = {10, 10, 10, 20, 20, 20};
  base.memory.budget_bytes = {30, 50};  // 3 and 2.5 of their largest
  const Result<TrainingCases> cases = TrainingCases::create(model, base.program);
  ASSERT_TRUE(cases.ok());
  const Case made = cases->fill(base, {{4}, {12}, {6}}, false);
  for (int rank = 0; rank < 2; ++rank) {
    const std::int64_t least = least_budget(made.program, made.memory.activation_bytes, rank);
    EXPECT_GT(least, 12 * 8 * 8);  // a row of each position at the very least
    EXPECT_EQ(made.memory.budget_bytes[static_cast<std::size_t>(rank)],
              rank == 0 ? 3 * least : least * 5 / 2);
  }
  // Microbatch 1 is the longest, and everything about it is the largest.
  for (int stage = 0; stage < 2; ++stage) {
    for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
      const auto of = [&](int m) {
        return made.duration_ns[static_cast<std::size_t>(made.program.task_id(stage, slot, m))];
      };
      EXPECT_LT(of(0), of(2));
      EXPECT_LT(of(2), of(1));
    }
  }
  EXPECT_EQ(
      made.network
          .message_bytes[static_cast<std::size_t>(made.program.task_id(0, Slot::kForward, 1))],
      12 * 8 * 8);
}

// What fits in units of a case fits in bytes of the model, whichever stage of the rank it is of:
// five activations of one size are four of the larger stage and one of the smaller, and not two and
// a half of each.
TEST(Training, WhatFitsTheBudgetOfACaseFitsThatOfTheModel) {
  ModelSpec model = small_setup().spec.model;
  model.longest = 6;
  const Result<Case> base = read_case_file(RRFP_SOURCE_DIR "/tests/cases/windowed-leader.json");
  ASSERT_TRUE(base.ok()) << base.error().message;
  ASSERT_EQ(base->memory.budget_bytes, (std::vector<std::optional<std::int64_t>>{5, 4}));
  const Result<TrainingCases> cases = TrainingCases::create(model, base->program);
  ASSERT_TRUE(cases.ok()) << cases.error().message;
  const Case made = cases->fill(*base, {{6}, {6}, {6}, {6}}, false);
  const std::int64_t first = made.memory.activation_bytes[0];
  const std::int64_t third = made.memory.activation_bytes[8];
  ASSERT_NE(first, third);
  EXPECT_EQ(made.memory.budget_bytes[0], 4 * std::max(first, third) + std::min(first, third));
  const std::int64_t second = made.memory.activation_bytes[4];
  const std::int64_t fourth = made.memory.activation_bytes[12];
  EXPECT_EQ(made.memory.budget_bytes[1], 3 * std::max(second, fourth) + std::min(second, fourth));
}

TEST(Training, WhatWaitsForItsWeightGradientFitsAsItDidInTheCase) {
  Case base = case_of({2, 3, true});
  base.memory.activation_bytes.assign(2 * 3, 10);
  base.memory.weight_stash_bytes.assign(2 * 3, 1);
  base.memory.budget_bytes = {12, 12};  // one activation and what two W need
  ModelSpec model = small_setup().spec.model;
  model.longest = 6;
  const Result<TrainingCases> cases = TrainingCases::create(model, base.program);
  ASSERT_TRUE(cases.ok());
  const Case made = cases->fill(base, {{6}, {6}, {6}}, false);
  for (int rank = 0; rank < 2; ++rank) {
    const auto at = static_cast<std::size_t>(rank * 3);
    EXPECT_EQ(made.memory.budget_bytes[static_cast<std::size_t>(rank)],
              made.memory.activation_bytes[at] + 2 * made.memory.weight_stash_bytes[at]);
  }
  // Of what the case has take nothing there is as much as anybody wants.
  base.memory.weight_stash_bytes.assign(2 * 3, 0);
  const Case unbounded = cases->fill(base, {{6}, {6}, {6}}, false);
  EXPECT_GE(unbounded.memory.budget_bytes[0],
            unbounded.memory.activation_bytes[0] + 2 * unbounded.memory.weight_stash_bytes[0]);
}

TEST(Training, TextsThatAreTooShortAreRefused) {
  const Result<TrainingRun> run = prepare_training(
      small_setup(), "short", [](int, int) -> Result<Case> { return case_of({}); });
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().message, "the text has 5 bytes; 1 sequences of up to 12 need at least 13");
}

TEST(ExchangeLaneSum, SumsInTheOrderOfLanesOnEveryLane) {
  // (1 + 1e16) - 1e16 is 0 in double precision; from the other end it is 1.
  const Real parts[] = {1, 1e16, -1e16};
  auto group = std::make_shared<ThreadsLaneGroup>(3, 1'000'000'000);
  std::vector<Real> sums(3);
  std::vector<std::thread> threads;
  for (int lane = 2; lane >= 0; --lane) {
    threads.emplace_back([&, lane] {
      ExchangeLaneSum lanes(std::make_shared<ThreadsLaneExchange>(group, lane));
      for (int i = 0; i < 100; ++i) {
        sums[static_cast<std::size_t>(lane)] +=
            lanes.sum({Matrix::Constant(1, 1, parts[lane])})(0, 0);
      }
      EXPECT_FALSE(lanes.failure());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sums, (std::vector<Real>{0, 0, 0}));
}

TEST(ExchangeLaneSum, ALaneThatWaitsInVainGivesUp) {
  auto group = std::make_shared<ThreadsLaneGroup>(2, 20'000'000);
  ExchangeLaneSum lanes(std::make_shared<ThreadsLaneExchange>(group, 0));
  static_cast<void>(lanes.sum({Matrix::Ones(1, 1)}));
  EXPECT_TRUE(lanes.failure());
  static_cast<void>(lanes.sum({Matrix::Ones(1, 1)}));  // returns at once
}

}  // namespace
}  // namespace rrfp
