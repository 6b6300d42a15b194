// Goal: workers whose clocks differ by seconds agree on one time line: the
// measured offsets are right within the stated error, and a run over them is
// lawful across ranks.
#include <gtest/gtest.h>

#include <thread>

#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(std::int64_t skew_ns) : skew_ns_(skew_ns) {}
  std::int64_t now_ns() const override { return MonotonicClock::read_ns() + skew_ns_; }

 private:
  std::int64_t skew_ns_;
};

// A transport whose waits are on the skewed clock.
class SkewedTransport final : public Transport {
 public:
  SkewedTransport(Transport& base, std::int64_t skew_ns) : base_(base), skew_ns_(skew_ns) {}
  int endpoint() const override { return base_.endpoint(); }
  int endpoints() const override { return base_.endpoints(); }
  bool shares_clock() const override { return false; }
  void tell(const Letter& letter) override { base_.tell(letter); }
  void send(const Letter& letter, Payload payload) override {
    base_.send(letter, std::move(payload));
  }
  bool poll(Delivery& delivery) override { return base_.poll(delivery); }
  void receive(const Letter& announced) override { base_.receive(announced); }
  void wait(std::int64_t until_ns) override {
    base_.wait(until_ns == kNever ? kNever : until_ns - skew_ns_);
  }
  void wake() override { base_.wake(); }
  bool flushed() override { return base_.flushed(); }
  Result<void> status() const override { return base_.status(); }

 private:
  Transport& base_;
  std::int64_t skew_ns_;
};

TEST(ClockSync, OffsetsAreRightWithinTheStatedError) {
  TestRun run;
  run.prepare(chain_case(3, 4, true, 300 * kMicrosecond), 2);
  const std::int64_t skews_ns[] = {0, 7'000'000'000, -3'000'000'000};
  ThreadsNetwork network(3, pairs_that_talk(*run.plan), ThreadsTuning{});
  std::vector<WorkerEnd> ends(3);
  std::vector<std::thread> threads;
  for (int endpoint = 0; endpoint < 3; ++endpoint) {
    threads.emplace_back([&, endpoint] {
      const SkewedClock clock(skews_ns[endpoint]);
      SkewedTransport transport(network.transport(endpoint), skews_ns[endpoint]);
      EmulatedDevice device(1, 64);
      Worker worker(*run.plan, transport, device, clock, endpoint == 0 ? run.sink.get() : nullptr,
                    *run.stop);
      ends[static_cast<std::size_t>(endpoint)] = worker.run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const WorkerEnd& end : ends) ASSERT_EQ(end.end, RunEnd::kCompleted) << end.why;
  for (int i = 0; i < 2; ++i) expect_lawful(run, i);
  for (int endpoint = 1; endpoint < 3; ++endpoint) {
    const WorkerRecord& worker = run.worker(1, endpoint);
    EXPECT_GT(worker.clock_error_ns, 0);
    EXPECT_LE(std::abs(worker.clock_offset_ns + skews_ns[endpoint]), worker.clock_error_ns);
  }
}

}  // namespace
}  // namespace rrfp
