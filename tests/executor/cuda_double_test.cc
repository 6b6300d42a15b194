// Goal: the double of a CUDA device is of use, which it is only if its checks
// bite. The host code under test, driven rightly, passes; driven wrongly in one
// way each (the planted bugs), it is told what it did.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "executor/cuda_double_streams.h"
#include "executor/cuda_launchers.h"
#include "executor/cuda_local_transport.h"
#include "executor/cuda_synthetic_device.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

constexpr std::size_t kBytes = 4096;

class CudaDouble : public testing::Test {
 protected:
  void SetUp() override { DoubleMachine::get().reset(); }
  void TearDown() override {
    receiver_.reset();
    sender_.reset();
    partitions_.reset();
    DoubleMachine::get().reset();
  }

  // Two ranks of `lanes` lanes, on a partition each.
  void prepare(int lanes = 1, std::int64_t task_ns = 5 * kMillisecond, int microbatches = 4) {
    Case input = chain_case(2, microbatches, true, task_ns);
    input.tensor_parallel.lanes = lanes;
    input.network.message_bytes.assign(static_cast<std::size_t>(input.program.task_ids()), kBytes);
    run_.prepare(input);
    settings_.grid = run_.plan->grid;
    settings_.look_every_ns = 20 * kMicrosecond;
    Result<CudaDevicePartitions> made = CudaDevicePartitions::create(0, settings_.grid.size());
    ASSERT_TRUE(made.ok()) << made.error().message;
    partitions_ = std::make_shared<CudaDevicePartitions>(std::move(*made));
  }

  CudaPartition& partition(const Place& place) {
    return partitions_->partition(settings_.grid.endpoint(place));
  }
  std::unique_ptr<CudaSyntheticDevice> device(const Place& place) {
    auto made =
        std::make_unique<CudaSyntheticDevice>(partitions_, partition(place), place, settings_);
    const Result<void> begun = made->begin(run_.world(), 0);
    EXPECT_TRUE(begun.ok()) << begun.error().message;
    int left = 1;
    while (left > 0) {
      const Result<int> warm = made->warm_up();
      EXPECT_TRUE(warm.ok()) << warm.error().message;
      left = warm.ok() ? *warm : 0;
    }
    return made;
  }

  TaskId forward(int stage, int microbatch = 0) const {
    return run_.program().task_id(stage, Slot::kForward, microbatch);
  }
  EdgeId edge() const { return run_.program().find_edge(Kind::kForward, 0, 1); }

  // Until the device has reported `ends` ends.
  static void poll(Device& device, int ends) {
    const std::int64_t give_up_ns = MonotonicClock::read_ns() + 5'000 * kMillisecond;
    while (ends > 0 && MonotonicClock::read_ns() < give_up_ns) {
      const std::optional<DeviceEvent> event = device.poll(MonotonicClock::read_ns());
      if (event && event->type == DeviceEvent::Type::kFinished) --ends;
      if (!event) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    EXPECT_EQ(ends, 0) << "the device did not get there";
  }

  // Every worker on its partition.
  void run_all() {
    run_.outcome = run_on_threads(
        run_.plan,
        [this](const Place& place) {
          return std::make_unique<CudaSyntheticDevice>(partitions_, partition(place), place,
                                                       settings_);
        },
        run_.sink, default_tuning(settings_.grid.size()), run_.stop,
        [this](const Place& place, Transport& control) {
          return std::make_unique<CudaLocalTransport>(partitions_, partition(place), control,
                                                      settings_.look_every_ns);
        });
  }

  // Rank 0 does 0F0 and sends; `early`: without having seen it end.
  Payload produce(bool early) {
    sender_ = device({0, 0, 0});
    sender_->launch(forward(0), 0, 0);
    if (!early) poll(*sender_, 1);
    Result<Payload> sent = sender_->output(forward(0), edge());
    EXPECT_TRUE(sent.ok());
    return std::move(*sent);
  }

  // Through the receiver's transport, as a letter from rank 0 to rank 1.
  Payload carry(Payload payload) {
    const std::pair<int, int> pairs[] = {{0, 1}};
    ThreadsNetwork network(2, pairs, ThreadsTuning{});
    CudaLocalTransport transport(partitions_, partition({0, 1, 0}), network.transport(1),
                                 settings_.look_every_ns);
    Letter letter;
    letter.tag = Tag::kMessage;
    letter.to = 1;
    letter.task = forward(1);
    letter.bytes = static_cast<std::int64_t>(payload.size());
    network.transport(0).send(letter, std::move(payload));
    Delivery delivery;
    const std::int64_t give_up_ns = MonotonicClock::read_ns() + 5'000 * kMillisecond;
    while (MonotonicClock::read_ns() < give_up_ns && transport.status().ok()) {
      if (!transport.poll(delivery)) {
        transport.wait(MonotonicClock::read_ns() + kMillisecond);
      } else if (delivery.event == Delivery::Event::kAnnounced) {
        transport.receive(delivery.letter);
      } else {
        EXPECT_EQ(delivery.letter.bytes, static_cast<std::int64_t>(kBytes));
        return std::move(delivery.payload);
      }
    }
    return Payload();
  }

  static void expect_objection(const std::string& part) {
    const std::string objection = DoubleMachine::get().objection();
    EXPECT_NE(objection.find(part), std::string::npos) << "the objection: " << objection;
  }
  static void expect_none() { EXPECT_EQ(DoubleMachine::get().objection(), ""); }

  TestRun run_;
  CudaSettings settings_;
  std::shared_ptr<CudaDevicePartitions> partitions_;
  std::unique_ptr<CudaSyntheticDevice> sender_;
  std::unique_ptr<CudaSyntheticDevice> receiver_;
};

TEST_F(CudaDouble, PassesWhatIsRight) {
  prepare();
  Payload arrived = carry(produce(false));
  ASSERT_FALSE(arrived.empty());
  receiver_ = device({0, 1, 0});
  ASSERT_TRUE(receiver_->take_input(forward(1), 0, std::move(arrived)).ok());
  receiver_->launch(forward(1), 0, 0);
  poll(*receiver_, 1);
  EXPECT_TRUE(receiver_->finish_iteration().ok());
  expect_none();
}

// What a task does beside its chain is taken off, as measured; a busy machine measures too much.
TEST_F(CudaDouble, TasksTakeTheTimeThatTheyAreGiven) {
  prepare(1, 20 * kMillisecond);
  sender_ = device({0, 0, 0});
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  for (int m = 0; m < 2; ++m) sender_->launch(forward(0, m), 0, begin_ns);
  poll(*sender_, 2);
  EXPECT_GE(MonotonicClock::read_ns() - begin_ns, 30 * kMillisecond);
}

TEST_F(CudaDouble, PassesAWholeRunWhichGivesBackEveryBlock) {
  prepare(2, 500 * kMicrosecond, 8);
  run_all();
  EXPECT_EQ(run_.outcome.end, RunEnd::kCompleted) << run_.outcome.why;
  ASSERT_EQ(run_.sink->iterations.size(), 1U);
  for (const WorkerRecord& worker : run_.sink->iterations[0].workers) {
    EXPECT_EQ(worker.tasks.size(), 24U);
    EXPECT_EQ(worker.arrivals.size(), 8U);
    for (const ArrivalRecord& arrival : worker.arrivals) {
      EXPECT_EQ(arrival.bytes, static_cast<std::int64_t>(kBytes));
    }
  }
  DoubleMachine::get().check([](DoubleChecks& checks) { EXPECT_EQ(checks.blocks_out(), 0U); });
  expect_none();
}

// A message of 80 ms is late by that, and no thread was held up for as long.
TEST_F(CudaDouble, ASlowLinkIsNoStall) {
  setenv("RRFP_DOUBLE_SLOW_COPIES", "3,80000000,0", 1);  // into partition 1
  prepare(1, 500 * kMicrosecond, 2);
  run_all();
  unsetenv("RRFP_DOUBLE_SLOW_COPIES");
  ASSERT_EQ(run_.outcome.end, RunEnd::kCompleted) << run_.outcome.why;
  const IterationRecord& record = run_.sink->iterations.at(0);
  EXPECT_GT(record.makespan_ns(), 160 * kMillisecond);
  EXPECT_LT(record.worst_stall_ns(), 80 * kMillisecond);
}

TEST_F(CudaDouble, ObjectsToABufferUsedBeforeItsEvent) {
  prepare();
  EXPECT_TRUE(carry(produce(true)).empty());
  expect_objection("a copy in stream");
  expect_objection("uses what the filling of a tensor in stream");
}

TEST_F(CudaDouble, ObjectsToABufferUsedAfterItsRelease) {
  prepare();
  receiver_ = device({0, 1, 0});
  Payload arrived = carry(produce(false));
  ASSERT_FALSE(arrived.empty());
  to_cuda_message(arrived)->give_back();
  expect_none();
  ASSERT_TRUE(receiver_->take_input(forward(1), 0, std::move(arrived)).ok());
  receiver_->launch(forward(1), 0, 0);
  expect_objection("the check of a tensor uses a block after it was returned");
  // The host code says so by its own means.
  const Result<void> finished = receiver_->finish_iteration();
  ASSERT_FALSE(finished.ok());
  EXPECT_NE(finished.error().message.find("after it was returned"), std::string::npos)
      << finished.error().message;
}

TEST_F(CudaDouble, ObjectsToABufferReleasedWhileInUse) {
  prepare();
  sender_ = device({0, 0, 0});
  sender_->launch(forward(0), 0, 0);
  const Result<Payload> sent = sender_->output(forward(0), edge());
  ASSERT_TRUE(sent.ok());
  to_cuda_message(*sent)->give_back();
  expect_objection("a block is returned that the filling of a tensor");
}

TEST_F(CudaDouble, AllocatesNothingWhileTasksRun) {
  const auto left = [] {
    std::size_t bytes = 0;
    std::size_t all = 0;
    EXPECT_EQ(cudaMemGetInfo(&bytes, &all), cudaSuccess);
    return bytes;
  };
  for (const bool one_process : {false, true}) {
    prepare();
    settings_.workers = one_process ? settings_.grid.size() : 1;
    sender_ = device({0, 0, 0});
    receiver_ = device({0, 1, 0});
    const std::size_t before = left();
    for (const int microbatch : {0, 1, 2}) sender_->launch(forward(0, microbatch), 0, 0);
    poll(*sender_, 3);
    std::vector<Payload> arrived;
    for (const int microbatch : {0, 1, 2}) {
      Result<Payload> sent = sender_->output(forward(0, microbatch), edge());
      ASSERT_TRUE(sent.ok()) << sent.error().message;
      arrived.push_back(carry(std::move(*sent)));
      ASSERT_FALSE(arrived.back().empty());
    }
    EXPECT_EQ(left(), before) << one_process;
    for (const Payload& message : arrived) to_cuda_message(message)->give_back();
    sender_.reset();
    receiver_.reset();
    run_ = TestRun();
  }
}

// The first iteration is small and has its blocks reserved.
TEST_F(CudaDouble, RunsALaterIterationWhoseTensorsTakeMoreThanTheirShare) {
  prepare(1, kMillisecond, 3);
  Case large = run_.world().input();
  constexpr std::int64_t kLarge = std::int64_t{400} << 20;  // 6 of them are more than half of 2 GiB
  large.network.message_bytes.assign(large.network.message_bytes.size(), kLarge);
  const Result<std::unique_ptr<const PreparedCase>> second = PreparedCase::create(large);
  ASSERT_TRUE(second.ok()) << second.error().message;
  settings_.workers = settings_.grid.size();
  sender_ = device({0, 0, 0});
  ASSERT_TRUE(sender_->begin(**second, 1).ok());
  for (const int microbatch : {0, 1}) {
    sender_->launch(forward(0, microbatch), 0, 0);
    poll(*sender_, 1);
    const Result<Payload> sent = sender_->output(forward(0, microbatch), edge());
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    ASSERT_FALSE(sent->empty());
    to_cuda_message(*sent)->give_back();
  }
}

TEST_F(CudaDouble, ObjectsToMembersOfAGroupThatDisagreeOnTheOrder) {
  prepare(2);
  const std::unique_ptr<CudaSyntheticDevice> lanes[] = {device({0, 0, 0}), device({0, 0, 1})};
  for (int lane = 0; lane < 2; ++lane) {
    const int first = lane == 0 ? 0 : 1;
    for (const int microbatch : {first, 1 - first}) {
      lanes[lane]->launch(forward(0, microbatch), 0, 0);
      lanes[lane]->on_group_start(forward(0, microbatch), 0);
      poll(*lanes[lane], 1);
    }
  }
  expect_objection("member 1 of group 0 enqueues work 1 as number 0");
}

TEST_F(CudaDouble, AgreesWithMembersOfAGroupThatKeepTheOrder) {
  prepare(2);
  const std::unique_ptr<CudaSyntheticDevice> lanes[] = {device({0, 0, 0}), device({0, 0, 1})};
  for (const auto& lane : lanes) {
    for (int microbatch = 0; microbatch < 2; ++microbatch) {
      lane->launch(forward(0, microbatch), 0, 0);
      lane->on_group_start(forward(0, microbatch), 0);
      poll(*lane, 1);
    }
  }
  expect_none();
}

TEST_F(CudaDouble, ObjectsToAStreamInWhichWorkPilesUp) {
  prepare(1, kMillisecond, 400);
  sender_ = device({0, 0, 0});
  for (int m = 0; m < 400; ++m) sender_->launch(forward(0, m), 0, 0);
  expect_objection("work piles up in stream");
}

TEST_F(CudaDouble, ObjectsToMemoryThatIsFreedInUseOrUsedWhenFreed) {
  prepare();
  CudaPartition& of = partition({0, 0, 0});
  ASSERT_EQ(launch_matrix_chain(1, 20'000, {of.fault().get(), 1}, of.compute()), cudaSuccess);
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
  ASSERT_EQ(launch_fill_pattern(memory, kBytes, 1, of.compute()), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(of.compute()), cudaSuccess);
  ASSERT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(launch_fill_pattern(nullptr, kBytes, 1, of.copies()), cudaErrorAssert);
  expect_objection("uses memory that is not allocated");
}

TEST_F(CudaDouble, ObjectsToAContextThatIsDestroyedBeforeItsStreams) {
#if RRFP_CUDA_GREEN_CONTEXTS
  const CudaDriver& driver = cuda_driver();
  CUgreenCtx context = nullptr;
  CUstream stream = nullptr;
  ASSERT_EQ(driver.create_context(&context, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
  ASSERT_EQ(driver.create_stream(&stream, context, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  EXPECT_NE(driver.destroy_context(context), CUDA_SUCCESS);
  expect_objection("a green context is destroyed before its streams");
  cudaStreamDestroy(stream);
  EXPECT_EQ(driver.destroy_context(context), CUDA_SUCCESS);
#endif
}

// What was sent as one message must not pass for another.
TEST_F(CudaDouble, AMessageInPlaceOfAnotherIsNoticed) {
  prepare();
  sender_ = device({0, 0, 0});
  sender_->launch(forward(0, 1), 0, 0);
  poll(*sender_, 1);
  Result<Payload> sent = sender_->output(forward(0, 1), edge());
  ASSERT_TRUE(sent.ok());
  Payload arrived = carry(std::move(*sent));
  receiver_ = device({0, 1, 0});
  ASSERT_TRUE(receiver_->take_input(forward(1, 0), 0, std::move(arrived)).ok());
  receiver_->launch(forward(1, 0), 0, 0);
  poll(*receiver_, 1);
  const Result<void> finished = receiver_->finish_iteration();
  ASSERT_FALSE(finished.ok());
  EXPECT_NE(finished.error().message.find("from stage 0 for 1F0 holds other bytes"),
            std::string::npos)
      << finished.error().message;
}

// As of CUDA: whoever gives up does not wait for what an event was recorded behind.
TEST_F(CudaDouble, AnEventIsDestroyedBeforeItsStreamGetsThere) {
  prepare();
  const cudaStream_t stream = partition({0, 0, 0}).compute();
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  ASSERT_EQ(launch_matrix_chain(1, 300'000, {}, stream), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
}

// On a busy host the few may seem to take longer than the many. A task whose products took no time
// would have 2^30 of them, and its stream would not end within 17 minutes, whoever waits for it.
TEST(CudaWorkLength, AProductTakesItsShareOfALongChain) {
  const double many_ns = 1'024'000;
  EXPECT_NEAR(CudaWorkMeasurement::product_ns(32'000, many_ns), 1'000, 1);
  EXPECT_NEAR(CudaWorkMeasurement::product_ns(40'000, many_ns), 992, 1)
      << "with an overhead of 8 us";
  EXPECT_EQ(CudaWorkMeasurement::product_ns(9'000'000, many_ns), 500);
  EXPECT_EQ(CudaWorkMeasurement::product_ns(0, many_ns), 1'000);
  EXPECT_GT(CudaWorkMeasurement::product_ns(0, 0), 0);
}

// Without it, completion is seen by events; either way marks never go back.
TEST_F(CudaDouble, MarksAreReachedInOrderByWritesAndByEvents) {
  prepare();
  const cudaStream_t stream = partition({0, 0, 0}).copies();
  for (const char* without : {"", "memops"}) {
    setenv("RRFP_DOUBLE_WITHOUT", without, 1);
    Result<std::unique_ptr<CudaMarks>> made = CudaMarks::create(stream);
    ASSERT_TRUE(made.ok()) << made.error().message;
    CudaMarks& marks = **made;
    ASSERT_EQ(launch_matrix_chain(1, 2'000, {}, stream), cudaSuccess);
    const Result<std::int64_t> first = marks.leave();
    ASSERT_EQ(launch_matrix_chain(1, 2'000, {}, stream), cudaSuccess);
    const Result<std::int64_t> second = marks.leave();
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(*second, *first + 1);
    EXPECT_LT(*marks.reached(), *first);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(*marks.reached(), *second);
  }
  unsetenv("RRFP_DOUBLE_WITHOUT");
}

}  // namespace
}  // namespace rrfp
