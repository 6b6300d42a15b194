// Goal: a pipeline whose ranks are partitions of a CUDA device trains the model
// of the CPU, and to the same bits whatever decided the order of its tasks. All
// of it runs on the double of a device, which objects to every use of memory
// that a real one might get wrong.
#include <gtest/gtest.h>

#include <cmath>

#include "executor/cuda_double_streams.h"
#include "executor/cuda_local_transport.h"
#include "executor/cuda_training_device.h"
#include "tests/executor/training_for_tests.h"

namespace rrfp {
namespace {

// Between single and double precision, after some steps.
constexpr Real kNear = 2e-5;

// Reports what has started as done: a planted bug.
class HastyDevice final : public Device {
 public:
  explicit HastyDevice(std::unique_ptr<Device> of) : of_(std::move(of)) {}
  std::optional<DeviceEvent> poll(std::int64_t now_ns) override {
    if (const std::optional<TaskId> task = std::exchange(started_, std::nullopt)) {
      return DeviceEvent{DeviceEvent::Type::kFinished, *task, now_ns};
    }
    std::optional<DeviceEvent> event = of_->poll(now_ns);
    if (!event || event->type != DeviceEvent::Type::kStarted) return std::nullopt;
    started_ = event->task;
    return event;
  }
  Result<void> begin(const PreparedCase& world, int iteration) override {
    return of_->begin(world, iteration);
  }
  Result<void> take_input(TaskId task, int producer, Payload payload) override {
    return of_->take_input(task, producer, std::move(payload));
  }
  void launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) override {
    of_->launch(task, not_before_ns, now_ns);
  }
  std::int64_t next_event_ns() const override { return started_ ? 0 : of_->next_event_ns(); }
  bool busy() const override { return started_.has_value() || of_->busy(); }
  void on_group_start(TaskId task, std::int64_t start_ns) override {
    of_->on_group_start(task, start_ns);
  }
  Result<Payload> output(TaskId task, EdgeId edge) override { return of_->output(task, edge); }
  Result<Payload> gradient(int stage) override { return of_->gradient(stage); }
  Result<Payload> reduce(int stage, std::span<Payload> replicas) override {
    return of_->reduce(stage, replicas);
  }
  Result<void> take_gradient(int stage, Payload sum) override {
    return of_->take_gradient(stage, std::move(sum));
  }
  Result<void> finish_iteration() override { return of_->finish_iteration(); }

 private:
  std::unique_ptr<Device> of_;
  std::optional<TaskId> started_;
};

struct Trained {
  Training on_device;
  Training serial;  // on a CPU
  RunOutcome outcome;
  std::string objection;
  std::int64_t most_stash_bytes = 0;
  std::int64_t largest_budget_bytes = 0;  // of ranks and steps
};

class CudaTraining : public testing::Test {
 protected:
  void SetUp() override { DoubleMachine::get().reset(); }

  Trained train(TrainingSetup setup, const CaseOf& cases) const {
    Trained trained;
    setup.footprint = {sizeof(float), cuda_stash_bytes};
    Result<TrainingRun> run = prepare_training(setup, small_text(), cases);
    EXPECT_TRUE(run.ok()) << run.error().message;
    if (!run.ok()) return trained;
    CudaSettings settings;
    settings.grid = run->plan().grid;
    settings.look_every_ns = 20 * kMicrosecond;
    Result<CudaDevicePartitions> made = CudaDevicePartitions::create(0, settings.grid.size());
    EXPECT_TRUE(made.ok()) << made.error().message;
    auto partitions = std::make_shared<CudaDevicePartitions>(std::move(*made));
    const auto partition = [=](const Place& place) -> CudaPartition& {
      return partitions->partition(settings.grid.endpoint(place));
    };
    std::map<int, std::shared_ptr<ThreadsLaneGroup>> groups;
    for (int rank = 0; rank < settings.grid.replicas * settings.grid.ranks; ++rank) {
      groups[rank] = std::make_shared<ThreadsLaneGroup>(settings.grid.lanes, 5'000 * kMillisecond);
    }
    const DeviceMaker make_device = [&](const Place& place) -> std::unique_ptr<Device> {
      const auto exchange = std::make_shared<ThreadsLaneExchange>(
          groups.at(place.replica * settings.grid.ranks + place.rank), place.lane);
      auto device = std::make_unique<CudaTrainingDevice>(
          partitions, partition(place), place, settings, run->training,
          [exchange](std::size_t most) { return gather_through_host(exchange, most); });
      if (!hasty_) return device;
      return std::make_unique<HastyDevice>(std::move(device));
    };
    const TransportMaker make_transport = [&](const Place& place, Transport& control) {
      return std::make_unique<CudaLocalTransport>(partitions, partition(place), control,
                                                  settings.look_every_ns);
    };
    trained.outcome = run_on_threads(run->prepared.plan, make_device, run->sink,
                                     default_tuning(settings.grid.size()),
                                     std::make_shared<std::atomic<bool>>(false), make_transport);
    trained.on_device = run->sink->result();
    trained.objection = DoubleMachine::get().objection();
    trained.most_stash_bytes = run->sink->most_stash_bytes();
    for (int step = 0; step < setup.steps; ++step) {
      for (const std::optional<std::int64_t>& budget :
           run->plan().world(step, 0).input().memory.budget_bytes) {
        trained.largest_budget_bytes = std::max(trained.largest_budget_bytes, budget.value_or(0));
      }
    }
    const CpuTraining& of = *run->training;
    Result<Training> serial = train_serially(of.spec, of.data, run->program(), run->arrangements);
    if (serial.ok()) trained.serial = std::move(*serial);
    return trained;
  }
  Trained train(const TrainingSetup& setup, const Case& input) const {
    return train(setup, [&](int, int) -> Result<Case> { return input; });
  }

  bool hasty_ = false;
};

void expect_near(const Trained& trained, const TrainingSetup& setup) {
  ASSERT_EQ(trained.outcome.end, RunEnd::kCompleted) << trained.outcome.why;
  EXPECT_EQ(trained.objection, "");
  ASSERT_EQ(trained.on_device.loss.size(), static_cast<std::size_t>(setup.steps));
  for (std::size_t step = 0; step < trained.serial.loss.size(); ++step) {
    EXPECT_NEAR(trained.on_device.loss[step], trained.serial.loss[step], kNear) << step;
  }
  ASSERT_EQ(trained.on_device.weights.size(), trained.serial.weights.size());
  for (const auto& [name, matrix] : trained.serial.weights) {
    const auto found = trained.on_device.weights.find(name);
    ASSERT_NE(found, trained.on_device.weights.end()) << name;
    EXPECT_LT((matrix - found->second).cwiseAbs().maxCoeff(), kNear) << name;
  }
}

struct Policy {
  const char* hint;
  int window = 0;  // 1: as a fixed order
  bool anticipates = false;
};
constexpr Policy kPolicies[] = {{"1f1b", 1},      {"1f1b"}, {"zb-h2", 1},    {"zb-h2", 0, true},
                                {"bf", 0, false}, {"bfw"},  {"bfw", 0, true}};

// Under another jitter each, so that they differ in the order of their tasks.
Case under(const Policy& policy, Case input, std::uint64_t seed) {
  draw_world(input, 400 * kMicrosecond, 600 * kMicrosecond, seed);
  input.policy.hint.name = policy.hint;
  if (policy.window > 0) input.policy.window = policy.window;
  if (policy.anticipates) input.policy.anticipation = Anticipation{750, 500};
  return input;
}

TEST_F(CudaTraining, EveryPolicyTrainsToTheSameBits) {
  TrainingSetup setup = small_setup();
  setup.paced = true;
  std::optional<Training> first;
  std::uint64_t seed = 0;
  for (const Policy& policy : kPolicies) {
    SCOPED_TRACE(std::string(policy.hint) + ", case " + std::to_string(++seed));
    const Trained trained = train(setup, under(policy, case_of({3, 6, true}), seed));
    expect_near(trained, setup);
    if (HasFatalFailure()) return;
    if (!first) first = trained.on_device;
    EXPECT_EQ(trained.on_device.loss, first->loss);
    EXPECT_EQ(digest(trained.on_device.weights), digest(first->weights));
  }
}

TEST_F(CudaTraining, EveryPolicyTrainsToTheSameBitsWithFourRanksOfTwoLanes) {
  TrainingSetup setup = small_setup();
  setup.paced = true;
  std::optional<Training> first;
  std::uint64_t seed = 0;
  for (const Policy& policy : kPolicies) {
    SCOPED_TRACE(std::string(policy.hint) + ", case " + std::to_string(++seed));
    Case input = case_of({4, 6, true});
    input.tensor_parallel.lanes = 2;
    input.tensor_parallel.coordination =
        seed % 2 == 0 ? Coordination::kVote : Coordination::kLeader;
    const Trained trained = train(setup, under(policy, input, seed));
    expect_near(trained, setup);
    if (HasFatalFailure()) return;
    EXPECT_EQ(trained.on_device.weights.count("block 0 mlp in, lane 1"), 1U);
    if (!first) first = trained.on_device;
    EXPECT_EQ(trained.on_device.loss, first->loss);
    EXPECT_EQ(digest(trained.on_device.weights), digest(first->weights));
  }
}

// Whole backwards, several stages of a rank, two tasks in the stream.
TEST_F(CudaTraining, TrainsHoweverTheModelIsCutAndTasksAreQueued) {
  const TrainingSetup setup = small_setup();
  expect_near(train(setup, case_of({1, 6, false})), setup);
  Shape chunks{2, 6, true, true, {}};
  for (int stage = 0; stage < 4; ++stage) {
    chunks.stages.push_back({stage % 2, {}, Backward::kFull});
    if (stage > 0) chunks.stages.back().predecessors = {stage - 1};
  }
  Case input = case_of(chunks);
  input.queue_depth = 2;
  expect_near(train(setup, input), setup);
}

TEST_F(CudaTraining, KeepsToTheBudgetAndSaysHowMuchItHeld) {
  const TrainingSetup setup = small_setup();
  Case input = case_of({3, 6, true});
  input.policy.hint.name = "zb-h2";
  const std::int64_t unlimited = train(setup, input).most_stash_bytes;
  input.memory.activation_bytes.assign(3 * 6, 1);
  input.memory.budget_bytes.assign(3, 1);  // the least that works
  const Trained trained = train(setup, input);
  expect_near(trained, setup);
  EXPECT_GT(trained.most_stash_bytes, 0);
  EXPECT_LE(trained.most_stash_bytes, trained.largest_budget_bytes);
  EXPECT_GT(unlimited, trained.largest_budget_bytes) << "else the budget limits nothing";
}

// In one process, where there is no need to refuse what may fit: one microbatch at a time does.
TEST_F(CudaTraining, TrainsOneMicrobatchAtATimeWhereAllWouldNotFit) {
  TrainingSetup setup = small_setup();
  setup.spec.model.width = 32;
  setup.spec.model.mlp_width = 128;
  setup.spec.data.shortest = setup.spec.data.longest = 32;
  setup.steps = 1;
  Case input = case_of({1, 48, false});
  input.policy.hint.name = "bf";
  constexpr std::size_t kActivations = std::size_t{6} << 20;
  constexpr std::size_t kLeft = kActivations + (std::size_t{32} << 20);  // the workspace of cuBLAS
  const Result<CudaMemory> taken = CudaMemory::create(DoubleMachine::kBytes - kLeft, "the test");
  ASSERT_TRUE(taken.ok());
  const Trained trained = train(setup, input);
  expect_near(trained, setup);
  EXPECT_GT(static_cast<std::size_t>(48 * trained.most_stash_bytes), kActivations)
      << "else all of them fit";
}

TEST_F(CudaTraining, TrainsAnEncoderThatJoinsTheDecoderAndFrozenStages) {
  TrainingSetup setup = small_setup();
  setup.spec.model.blocks = 5;
  for (const Backward of_encoder : {Backward::kFull, Backward::kInput, Backward::kNone}) {
    expect_near(train(setup, case_of(with_encoder(of_encoder))), setup);
  }
}

// Copies of a weight, of replicas and lanes, have to be equal bit for bit, or
// the run ends; two lanes can be added either way.
TEST_F(CudaTraining, TrainsReplicasOfFourLanes) {
  TrainingSetup setup = small_setup();
  setup.replicas = 2;
  setup.spec.model.heads = 4;
  Case input = case_of({2, 4, true});
  input.tensor_parallel.lanes = 4;
  expect_near(train(setup, input), setup);
}

// What is planted: weight gradients that add up in the order in which they
// come. The order of sums has to show, or equal bits would prove nothing.
TEST_F(CudaTraining, AWrongOrderOfAccumulationChangesBits) {
  TrainingSetup setup = small_setup();
  setup.paced = true;
  Case input = case_of({2, 4, true, false});
  set_latency(input, 0);
  // The activation of microbatch 0 comes last, and so does its W on both ranks.
  const EdgeId edge = input.program.find_edge(Kind::kForward, 0, 1);
  input.network.latency_ns[static_cast<std::size_t>(edge)][0] = 30 * kMillisecond;
  const Trained wrong = train(setup, input);
  expect_near(wrong, setup);
  input.program = case_of({2, 4, true, true}).program;
  const Trained right = train(setup, input);
  expect_near(right, setup);
  EXPECT_NE(digest(wrong.on_device.weights), digest(right.on_device.weights));
}

// What is planted: tensors that are sent before the work that makes them has
// ended. The double says so, and the run ends with its words.
TEST_F(CudaTraining, ADoubleObjectsToTensorsThatAreSentTooEarly) {
  hasty_ = true;
  TrainingSetup setup = small_setup();
  // Tasks that take a while.
  setup.spec.model.width = 96;
  setup.spec.model.mlp_width = 384;
  setup.spec.data.shortest = setup.spec.data.longest = 32;
  const Trained trained = train(setup, case_of({2, 4, true}));
  EXPECT_EQ(trained.outcome.end, RunEnd::kFault);
  EXPECT_NE(trained.objection.find("has yet to finish with"), std::string::npos)
      << trained.objection;
  EXPECT_NE(trained.outcome.why.find("the double objects: "), std::string::npos)
      << trained.outcome.why;
}

TEST_F(CudaTraining, ALossThatIsNoNumberStopsTheRunAndNamesTheStep) {
  TrainingSetup setup = small_setup();
  setup.spec.optimizer.learning_rate = 1e30;
  const Trained trained = train(setup, case_of({3, 4, true}));
  EXPECT_EQ(trained.outcome.end, RunEnd::kFault);
  EXPECT_NE(trained.outcome.why.find("step 1: the loss of microbatch "), std::string::npos)
      << trained.outcome.why;
  EXPECT_EQ(trained.on_device.loss.size(), 1U);
}

}  // namespace
}  // namespace rrfp
