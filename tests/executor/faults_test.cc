// Goal: whatever breaks, a run on threads ends within a stated time, every
// survivor says what it waited for, and nothing is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "executor/cuda_carried_transport.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

// The patience of these runs; a busy machine may hold a thread up for a while.
constexpr std::int64_t kPatience = 400 * kMillisecond;

TestRun run_with(Injected fault, const Case& input, int iterations = 2) {
  TestRun run;
  run.prepare(input, iterations);
  run.plan->tuning.patience_ns = kPatience;
  run.plan->tuning.heartbeat_ns = kPatience / 8;
  run.plan->injected.push_back(fault);
  return run;
}

std::int64_t timed(TestRun& run) {
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  run.run();
  return MonotonicClock::read_ns() - begin_ns;
}

bool mentions(const std::vector<std::string>& lines, const std::string& text) {
  for (const std::string& line : lines) {
    if (line.find(text) != std::string::npos) return true;
  }
  return false;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(Faults, SilentPeerEndsTheRunAndSurvivorsNameTheChannel) {
  const Case input = chain_case(3, 4, true, kMillisecond);
  TestRun run = run_with(
      {Injected::Kind::kSilent, 1, 0, input.program.find({1, Kind::kForward, 1}), 0}, input);
  const std::int64_t took_ns = timed(run);
  EXPECT_EQ(run.outcome.end, RunEnd::kFault);
  EXPECT_NE(run.outcome.why.find("rank 1 has not answered"), std::string::npos) << run.outcome.why;
  // Rank 2 has yet to see microbatch 1 and rank 0 the gradients.
  EXPECT_TRUE(mentions(run.outcome.waiting, "rank 2 waits to run 2F"))
      << joined(run.outcome.waiting);
  EXPECT_TRUE(mentions(run.outcome.waiting, "channel rank 1 -> rank 2"));
  EXPECT_TRUE(mentions(run.outcome.waiting, "channel rank 1 -> rank 0"));
  EXPECT_LT(took_ns, 2 * kPatience + 4'000 * kMillisecond);
}

TEST(Faults, StalledThreadIsTakenForLostButComesBack) {
  const Case input = chain_case(2, 4, false, kMillisecond);
  TestRun run = run_with({Injected::Kind::kStall, 1, 0, input.program.find({1, Kind::kForward, 1}),
                          1'200 * kMillisecond},
                         input);
  timed(run);
  EXPECT_EQ(run.outcome.end, RunEnd::kFault);
  EXPECT_FALSE(run.outcome.left_behind);
  EXPECT_NE(run.outcome.why.find("rank 1 has not answered"), std::string::npos) << run.outcome.why;
}

TEST(Faults, StalledFirstRankIsNoticedByTheOthers) {
  const Case input = chain_case(2, 4, false, kMillisecond);
  TestRun run = run_with({Injected::Kind::kStall, 0, 0, input.program.find({0, Kind::kForward, 2}),
                          1'500 * kMillisecond},
                         input);
  timed(run);
  EXPECT_EQ(run.outcome.end, RunEnd::kFault) << run.outcome.why;
  EXPECT_TRUE(mentions(run.outcome.waiting, "rank 1 ")) << joined(run.outcome.waiting);
}

TEST(Faults, StallWithinThePatienceIsNoFault) {
  const Case input = chain_case(2, 4, false, kMillisecond);
  TestRun run = run_with(
      {Injected::Kind::kStall, 1, 0, input.program.find({1, Kind::kForward, 1}), 50 * kMillisecond},
      input);
  timed(run);
  EXPECT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  EXPECT_EQ(run.sink->iterations.size(), 2U);
}

TEST(Faults, StopEndsTheRunAndKeepsWhatIsDone) {
  TestRun run;
  run.prepare(chain_case(2, 4, false, kMillisecond), 1'000);
  std::thread stopper([stop = run.stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    stop->store(true);
  });
  const std::int64_t took_ns = timed(run);
  stopper.join();
  EXPECT_EQ(run.outcome.end, RunEnd::kStopped);
  EXPECT_GT(run.sink->iterations.size(), 0U);
  EXPECT_LT(run.sink->iterations.size(), 1'000U);
  EXPECT_EQ(run.outcome.waiting.size(), 2U);
  EXPECT_LT(took_ns, 4'000 * kMillisecond);
}

TEST(Faults, SinkThatFailsEndsTheRunWithItsMessage) {
  TestRun run;
  run.prepare(chain_case(2, 2, false, 100 * kMicrosecond), 5);
  run.sink->answer = Error{"no room on the disk"};
  run.run();
  EXPECT_EQ(run.outcome.end, RunEnd::kFault);
  EXPECT_EQ(run.outcome.why, "no room on the disk");
  EXPECT_EQ(run.sink->iterations.size(), 1U);
}

// A device that fails on one rank.
class FailingDevice final : public Device {
 public:
  explicit FailingDevice(bool fails) : fails_(fails), device_(1, 0) {}
  Result<void> begin(const PreparedCase& world, int iteration) override {
    parts_left_ = iteration == 0 ? warm_up_parts : 0;
    sleep_for_ns(begin_ns);
    if (begin_error) return *begin_error;
    return device_.begin(world, iteration);
  }
  Result<int> warm_up() override {
    if (parts_left_ == 0) return 0;
    sleep_for_ns(kPatience / 4);
    return --parts_left_;
  }
  Result<void> take_input(TaskId task, int producer, Payload payload) override {
    if (fails_) return Error{"the tensor is torn"};
    return device_.take_input(task, producer, std::move(payload));
  }
  void launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) override {
    device_.launch(task, not_before_ns, now_ns);
  }
  std::optional<DeviceEvent> poll(std::int64_t now_ns) override { return device_.poll(now_ns); }
  std::int64_t next_event_ns() const override { return device_.next_event_ns(); }
  bool busy() const override { return device_.busy(); }
  void on_group_start(TaskId task, std::int64_t start_ns) override {
    device_.on_group_start(task, start_ns);
  }
  Result<Payload> output(TaskId task, EdgeId edge) override { return device_.output(task, edge); }
  Result<Payload> gradient(int stage) override { return device_.gradient(stage); }
  Result<Payload> reduce(int stage, std::span<Payload> replicas) override {
    return device_.reduce(stage, replicas);
  }
  Result<void> take_gradient(int stage, Payload sum) override {
    return device_.take_gradient(stage, std::move(sum));
  }
  Result<void> finish_iteration() override { return device_.finish_iteration(); }
  void stop() override {
    if (on_stop) on_stop();
  }

  std::function<void()> on_stop;
  int warm_up_parts = 0;  // each takes a quarter of the patience
  std::int64_t begin_ns = 0;
  std::optional<Error> begin_error;

 private:
  int parts_left_ = 0;
  bool fails_;
  EmulatedDevice device_;
};

TEST(Faults, DeviceThatFailsOnOneRankEndsTheRunForAll) {
  for (const int failing : {0, 1}) {
    TestRun run;
    run.prepare(chain_case(2, 2, false, 100 * kMicrosecond));
    const RunOutcome outcome = run_on_threads(
        run.plan,
        [failing](const Place& place) {
          return std::make_unique<FailingDevice>(place.rank == failing);
        },
        run.sink, default_tuning(2), run.stop);
    EXPECT_EQ(outcome.end, RunEnd::kFault);
    EXPECT_EQ(outcome.why, "rank " + std::to_string(failing) + ": the tensor is torn");
    EXPECT_EQ(outcome.waiting.size(), 2U);
  }
}

// Keeps what is said while workers get ready.
class WatchingSink final : public IterationSink {
 public:
  Result<void> on_iteration(IterationRecord) override { return {}; }
  void on_getting_ready(const GettingReady& progress) override { told.push_back(progress); }
  std::vector<GettingReady> told;
};

TEST(Faults, WorkerThatWarmsUpForLongerThanThePatienceIsAlive) {
  for (const int slow : {0, 1}) {
    TestRun run;
    run.prepare(chain_case(2, 2, false, 100 * kMicrosecond), 2);
    run.plan->tuning.patience_ns = kPatience;
    run.plan->tuning.heartbeat_ns = kPatience / 8;
    auto sink = std::make_shared<WatchingSink>();
    const RunOutcome outcome = run_on_threads(
        run.plan,
        [slow](const Place& place) {
          auto made = std::make_unique<FailingDevice>(false);
          if (place.rank == slow) made->warm_up_parts = 8;
          return made;
        },
        sink, default_tuning(2), run.stop);
    EXPECT_EQ(outcome.end, RunEnd::kCompleted) << slow << ": " << outcome.why;
    ASSERT_FALSE(sink->told.empty());
    int done = 0;
    for (const GettingReady& progress : sink->told) {
      EXPECT_EQ(progress.iteration, 0);
      EXPECT_EQ(progress.endpoint, slow);
      EXPECT_EQ(progress.parts, 8);
      EXPECT_GE(progress.parts_done, done);
      EXPECT_LT(progress.parts_done, 8);
      done = progress.parts_done;
    }
    EXPECT_GT(done, 2);
  }
}

// Of three ranks, each with a device as `make` has it.
RunOutcome run_with_devices(const std::function<void(int rank, FailingDevice& device)>& make) {
  TestRun run;
  run.prepare(chain_case(3, 2, false, 100 * kMicrosecond));
  run.plan->tuning.patience_ns = kPatience;
  return run_on_threads(
      run.plan,
      [&](const Place& place) {
        auto made = std::make_unique<FailingDevice>(false);
        make(place.rank, *made);
        return made;
      },
      run.sink, default_tuning(3), run.stop);
}

// Rank 0 hears of it late, when rank 2 has heard nothing of rank 0 for long.
TEST(Faults, WhatBrokeComesBeforeTheSilenceOfWhoIsSlow) {
  const RunOutcome outcome = run_with_devices([](int rank, FailingDevice& device) {
    if (rank == 0) device.begin_ns = 2 * kPatience;
    if (rank == 1) device.begin_error = Error{"no room"};
  });
  EXPECT_EQ(outcome.end, RunEnd::kFault);
  EXPECT_EQ(outcome.why, "rank 1: no room");
  EXPECT_EQ(outcome.waiting, (std::vector<std::string>{"rank 0 was ready for iteration 0",
                                                       "rank 1 could not get ready for iteration 0",
                                                       "rank 2 was ready for iteration 0"}));
}

// The other way round: who fails late was taken for lost before.
TEST(Faults, WhatBrokeComesBeforeItsOwnSilence) {
  const RunOutcome outcome = run_with_devices([](int rank, FailingDevice& device) {
    if (rank != 2) return;
    device.begin_ns = 3 * kPatience / 2;
    device.begin_error = Error{"no room"};
  });
  EXPECT_EQ(outcome.end, RunEnd::kFault);
  EXPECT_EQ(outcome.why, "rank 2: no room");
}

TEST(Faults, SilenceIsSaidToBeOfSomebodyWhoGetsReady) {
  const RunOutcome outcome = run_with_devices([](int rank, FailingDevice& device) {
    if (rank == 1) device.begin_ns = 3 * kPatience / 2;
  });
  EXPECT_EQ(outcome.end, RunEnd::kFault);
  EXPECT_EQ(outcome.why.find("rank 1 has not answered for "), 0U) << outcome.why;
  EXPECT_NE(outcome.why.find(" ms, while getting ready for iteration 0"), std::string::npos)
      << outcome.why;
}

// Lets the letters that end a run leave only when it is flushed.
class LateTransport final : public CudaCarriedTransport {
 public:
  LateTransport(Transport& below, std::atomic<int>& inside)
      : CudaCarriedTransport(below, 0), inside_(inside) {}
  void tell(const Letter& letter) override { control().tell(letter); }
  void send(const Letter& letter, Payload payload) override {
    if (letter.tag != Tag::kEnd) return control().send(letter, std::move(payload));
    kept_.push_back({letter, std::move(payload)});
    ++inside_;
  }
  bool poll(Delivery& delivery) override { return control().poll(delivery); }
  void receive(const Letter& announced) override { control().receive(announced); }
  bool flushed() override {
    for (auto& [letter, payload] : kept_) control().send(letter, std::move(payload));
    inside_ -= static_cast<int>(kept_.size());
    kept_.clear();
    return control().flushed();
  }

 private:
  bool idle() const override { return true; }
  std::vector<std::pair<Letter, Payload>> kept_;
  std::atomic<int>& inside_;
};

// A device may take its time to stop, and nobody hears of its worker meanwhile.
TEST(Faults, TheLastLettersLeaveBeforeADeviceIsStopped) {
  TestRun run;
  run.prepare(chain_case(2, 2, false, 100 * kMicrosecond));
  std::atomic<int> inside{0};
  std::atomic<int> at_stop{-1};
  const auto device = [&](const Place& place) -> std::unique_ptr<Device> {
    auto made = std::make_unique<FailingDevice>(place.rank == 0);
    if (place.rank == 0) made->on_stop = [&] { at_stop = std::max(at_stop.load(), inside.load()); };
    return made;
  };
  const auto transport = [&](const Place&, Transport& control) -> std::unique_ptr<Transport> {
    return std::make_unique<LateTransport>(control, inside);
  };
  const RunOutcome outcome =
      run_on_threads(run.plan, device, run.sink, default_tuning(2), run.stop, transport);
  EXPECT_EQ(outcome.end, RunEnd::kFault);
  EXPECT_EQ(at_stop.load(), 0) << "letters that had yet to leave; -1: it was not stopped";
}

}  // namespace
}  // namespace rrfp
