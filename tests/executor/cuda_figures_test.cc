// Goal: what is measured of a device is what it does: on a double that is slow
// in a known place, that figure is as much worse, and no other.
#include "executor/cuda_figures.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "executor/cuda_double_streams.h"

namespace rrfp {
namespace {

class CudaFigures : public testing::Test {
 protected:
  void SetUp() override { DoubleMachine::get().reset(); }
  void TearDown() override {
    unsetenv("RRFP_DOUBLE_SLOW_COPIES");
    unsetenv("RRFP_DOUBLE_CONTENTION_PERCENT");
    EXPECT_EQ(DoubleMachine::get().objection(), "");
  }
  static CudaDevicePartitions partitions(int count) {
    Result<CudaDevicePartitions> made = CudaDevicePartitions::create(0, count);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }
  static DeviceTimes times(int count) {
    CudaDevicePartitions all = partitions(count);
    const Result<DeviceTimes> measured = measure_times(all);
    EXPECT_TRUE(measured.ok()) << measured.error().message;
    return measured.ok() ? *measured : DeviceTimes();
  }
};

TEST_F(CudaFigures, AreThereAndNotAbsurd) {
  const DeviceTimes measured = times(3);
  for (const std::int64_t ns : {measured.launch_ns, measured.flag_ns, measured.kernel_ns}) {
    EXPECT_GT(ns, 0);
    EXPECT_LT(ns, 5'000'000);
  }
}

// Sleeping partitions slow nobody; asked to, each takes twice as long beside others.
TEST_F(CudaFigures, ContentionIsThatOfThePartitions) {
  const std::int64_t none_permille = times(3).contention_permille;
  EXPECT_GE(none_permille, 1'000);
  EXPECT_LT(none_permille, 1'500);
  setenv("RRFP_DOUBLE_CONTENTION_PERCENT", "100", 1);
  EXPECT_GT(times(3).contention_permille, 1'500);
  EXPECT_LT(times(1).contention_permille, 1'500) << "one partition has none beside it";
}

TEST_F(CudaFigures, ASlowLinkIsTheOnlyOneThatIsSlow) {
  CudaDevicePartitions all = partitions(3);
  // Partition 1 has streams 2 and 3.
  setenv("RRFP_DOUBLE_SLOW_COPIES", "3,3000000,2000", 1);
  const std::vector<std::pair<int, int>> channels = {{0, 1}, {1, 0}, {1, 2}, {2, 1}};
  const Result<std::vector<LinkFigures>> links = measure_copies(all, channels, 4 << 20);
  ASSERT_TRUE(links.ok()) << links.error().message;
  ASSERT_EQ(links->size(), channels.size());
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const LinkFigures& link = (*links)[i];
    EXPECT_EQ(std::pair(link.from, link.to), channels[i]);
    if (link.to == 1) {
      EXPECT_GE(link.latency_ns, 2'500'000);
      EXPECT_LE(link.bytes_per_us, 600);  // 1024 bytes in 2 us
    } else {
      EXPECT_LT(link.latency_ns, 2'000'000);
      EXPECT_GT(link.bytes_per_us, 600);
    }
  }
}

TEST_F(CudaFigures, ALinkIsALineThroughTwoSizes) {
  const LinkFigures link = fit_link({3, 4}, 1'500, kSmallMessage + 1'000'000, 11'500);
  EXPECT_EQ(link.from, 3);
  EXPECT_EQ(link.to, 4);
  EXPECT_EQ(link.latency_ns, 1'459);  // 4096 of the bytes take 41 ns
  EXPECT_EQ(link.bytes_per_us, 100'000);
  // What noise turns around stays a link that a calibration may hold.
  const LinkFigures noisy = fit_link({0, 1}, 1'500, kSmallMessage + 1'000'000, 1'400);
  EXPECT_EQ(noisy.latency_ns, 1'500);
  EXPECT_EQ(noisy.bytes_per_us, 1'000'000'000);
  const LinkFigures slow = fit_link({0, 1}, 10, kSmallMessage + 1'000'000, 1e13);
  EXPECT_EQ(slow.latency_ns, 0);
  EXPECT_EQ(slow.bytes_per_us, 1);
}

}  // namespace
}  // namespace rrfp
