#include "executor/cuda_figures.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>

#include "executor/clock.h"
#include "executor/cuda_launchers.h"
#include "executor/cuda_memory.h"
#include "executor/cuda_stopwatch.h"

namespace rrfp {

namespace {

constexpr int kBlocksPerSm = 2;
constexpr int kLeadProducts = 64;     // some hundred microseconds on a device
constexpr int kLaunchesAtATime = 10;  // far fewer than a stream holds
constexpr int kLooks = 100;
constexpr std::int64_t kLongestLookNs = 10'000'000'000;
constexpr int kChain = 1024;  // products: milliseconds on a device
constexpr int kBusyRounds = 5;
constexpr std::size_t kLeastLarge = std::size_t{1} << 20;
constexpr std::size_t kMostLarge = std::size_t{64} << 20;
constexpr std::int64_t kMostBytesPerUs = 1'000'000'000;

Result<void> wait_for(cudaStream_t stream) {
  return check_cuda("cudaStreamSynchronize", cudaStreamSynchronize(stream));
}

cudaError_t launch_chain(CudaPartition& partition, int products) {
  return launch_matrix_chain(kBlocksPerSm * partition.sms(), products, {partition.fault().get(), 1},
                             partition.compute());
}

Result<std::int64_t> measure_launch_ns(CudaPartition& partition) {
  std::vector<std::int64_t> all;
  for (int round = -kFigureWarmUps; round < kFigureRounds; ++round) {
    for (int launch = 0; launch < kLaunchesAtATime; ++launch) {
      const std::int64_t begin_ns = MonotonicClock::read_ns();
      Result<void> launched = check_cuda("launch of a kernel", launch_chain(partition, 0));
      if (!launched.ok()) return launched.error();
      if (round >= 0) all.push_back(MonotonicClock::read_ns() - begin_ns);
    }
    if (Result<void> idle = wait_for(partition.compute()); !idle.ok()) return idle.error();
  }
  return median_of(std::move(all));
}

Result<std::int64_t> measure_flag_ns(CudaPartition& partition) {
  std::vector<std::int64_t> all;
  CudaMarks& marks = partition.compute_marks();
  for (int look = -kFigureWarmUps; look < kLooks; ++look) {
    const Result<std::int64_t> took_ns =
        passed_after_ns(marks, MonotonicClock::read_ns(), kLongestLookNs);
    if (!took_ns.ok()) return took_ns;
    if (look >= 0) all.push_back(*took_ns);
  }
  return median_of(std::move(all));
}

template <typename Launch>
Result<double> median_ns(CudaPartition& partition, cudaStream_t stream, Launch&& launch) {
  CudaStopwatch watch;
  if (Result<void> ready = watch.prepare(); !ready.ok()) return ready.error();
  std::vector<double> all;
  for (int round = -kFigureWarmUps; round < kFigureRounds; ++round) {
    Result<void> led = launch_lead(partition, stream);
    if (!led.ok()) return led.error();
    if (Result<void> begun = watch.start(stream, launch); !begun.ok()) return begun.error();
    const Result<double> ns = watch.ns();
    if (!ns.ok()) return ns.error();
    if (round >= 0) all.push_back(*ns);
  }
  return median_of(std::move(all));
}

Result<double> measure_kernel_ns(CudaPartition& partition) {
  return median_ns(partition, partition.compute(),
                   [&](cudaStream_t) { return launch_chain(partition, 0); });
}

// How long a chain takes on each of `busy` while all of them work: before each chain that is
// measured and after it comes one that is not, so that no stream is idle beside it.
Result<void> add_chain_ns(std::span<CudaPartition* const> busy, std::vector<double>& to) {
  std::deque<CudaStopwatch> watches(busy.size());  // which do not move
  for (CudaStopwatch& watch : watches) {
    if (Result<void> ready = watch.prepare(); !ready.ok()) return ready;
  }
  const auto launch_all = [busy] {
    for (CudaPartition* partition : busy) {
      Result<void> launched = check_cuda("launch of a kernel", launch_chain(*partition, kChain));
      if (!launched.ok()) return launched;
    }
    return Result<void>();
  };
  if (Result<void> before = launch_all(); !before.ok()) return before;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    Result<void> started = watches[i].start(
        busy[i]->compute(), [&](cudaStream_t) { return launch_chain(*busy[i], kChain); });
    if (!started.ok()) return started;
  }
  if (Result<void> after = launch_all(); !after.ok()) return after;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const Result<double> ns = watches[i].ns();
    if (!ns.ok()) return ns.error();
    to.push_back(*ns);
    if (Result<void> idle = wait_for(busy[i]->compute()); !idle.ok()) return idle;
  }
  return {};
}

Result<std::int64_t> measure_contention_permille(CudaDevicePartitions& partitions) {
  std::vector<CudaPartition*> all;
  for (int i = 0; i < partitions.count(); ++i) all.push_back(&partitions.partition(i));
  std::vector<double> alone_ns;
  std::vector<double> together_ns;
  for (int round = 0; round < kBusyRounds; ++round) {
    for (CudaPartition* const& one : all) {
      if (Result<void> added = add_chain_ns({&one, 1}, alone_ns); !added.ok()) {
        return added.error();
      }
    }
    if (Result<void> added = add_chain_ns(all, together_ns); !added.ok()) return added.error();
  }
  const double ratio = median_of(std::move(together_ns)) / median_of(std::move(alone_ns));
  return std::max<std::int64_t>(1'000, std::llround(ratio * 1'000));
}

Result<double> measure_copy_ns(CudaPartition& to, const CudaMemory& memory, std::size_t bytes) {
  return median_ns(to, to.copies(), [&](cudaStream_t stream) {
    return cudaMemcpyAsync(memory.data() + bytes, memory.data(), bytes, cudaMemcpyDeviceToDevice,
                           stream);
  });
}

}  // namespace

std::size_t large_message(std::size_t message_bytes) {
  return std::clamp(message_bytes, kLeastLarge, kMostLarge);
}

Result<void> launch_lead(CudaPartition& partition, cudaStream_t stream) {
  return check_cuda("launch of a kernel",
                    launch_matrix_chain(1, kLeadProducts, {partition.fault().get(), 1}, stream));
}

Result<std::int64_t> passed_after_ns(CudaMarks& marks, std::int64_t begin_ns,
                                     std::int64_t most_ns) {
  const Result<std::int64_t> mark = marks.leave();
  if (!mark.ok()) return mark;
  while (true) {
    const Result<std::int64_t> reached = marks.reached();
    if (!reached.ok()) return reached;
    const std::int64_t took_ns = MonotonicClock::read_ns() - begin_ns;
    if (*reached >= *mark) return took_ns;
    if (took_ns > most_ns) {
      return Error{"the end of what is in a stream was not seen within " +
                   std::to_string(most_ns / 1'000'000'000) + " s"};
    }
  }
}

Result<DeviceTimes> measure_times(CudaDevicePartitions& partitions) {
  CudaPartition& one = partitions.partition(0);
  const Result<std::int64_t> launch_ns = measure_launch_ns(one);
  if (!launch_ns.ok()) return launch_ns.error();
  const Result<std::int64_t> flag_ns = measure_flag_ns(one);
  if (!flag_ns.ok()) return flag_ns.error();
  const Result<double> kernel_ns = measure_kernel_ns(one);
  if (!kernel_ns.ok()) return kernel_ns.error();
  const Result<std::int64_t> contention_permille = measure_contention_permille(partitions);
  if (!contention_permille.ok()) return contention_permille.error();
  for (int i = 0; i < partitions.count(); ++i) {
    if (partitions.partition(i).fault().load() != 0) {
      return Error{"the device computes wrong results"};
    }
  }
  return DeviceTimes{*launch_ns, *flag_ns, std::llround(*kernel_ns), *contention_permille};
}

Result<std::vector<LinkFigures>> measure_copies(CudaDevicePartitions& partitions,
                                                std::span<const std::pair<int, int>> channels,
                                                std::size_t message_bytes) {
  std::vector<LinkFigures> links;
  if (channels.empty()) return links;
  const std::size_t large = large_message(message_bytes);
  const Result<CudaMemory> memory = CudaMemory::create(2 * large, "the measuring of copies");
  if (!memory.ok()) return memory.error();
  for (const auto& channel : channels) {
    CudaPartition& to = partitions.partition(channel.second);
    const Result<double> small_ns = measure_copy_ns(to, *memory, kSmallMessage);
    if (!small_ns.ok()) return small_ns.error();
    const Result<double> large_ns = measure_copy_ns(to, *memory, large);
    if (!large_ns.ok()) return large_ns.error();
    links.push_back(fit_link(channel, *small_ns, large, *large_ns));
  }
  return links;
}

LinkFigures fit_link(std::pair<int, int> channel, double small_ns, std::size_t large_bytes,
                     double large_ns) {
  const double more_bytes = static_cast<double>(large_bytes - kSmallMessage);
  // Where noise has the larger one be no slower, the link is as fast as can be told.
  const double ns_per_byte = std::max(1e3 / kMostBytesPerUs, (large_ns - small_ns) / more_bytes);
  const double latency_ns = small_ns - ns_per_byte * static_cast<double>(kSmallMessage);
  return {channel.first, channel.second, std::llround(std::clamp(latency_ns, 0.0, 1e9)),
          std::clamp<std::int64_t>(std::llround(1e3 / ns_per_byte), 1, kMostBytesPerUs)};
}

}  // namespace rrfp
