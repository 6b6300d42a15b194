// Members of communicators of the double of NCCL, for tests. One thread may be
// several of them, as long as nothing blocks.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/clock.h"
#include "executor/cuda_double_streams.h"
#include "executor/cuda_nccl_functions.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {

inline const CudaNcclFunctions& nccl() {
  static const CudaNcclFunctions functions = *load_cuda_nccl();
  return functions;
}

inline ncclUniqueId new_nccl_id() {
  ncclUniqueId id;
  EXPECT_EQ(nccl().unique_id(&id), ncclSuccess);
  return id;
}

/// What it gives once it is no longer in progress, or after 5 s at most.
inline ncclResult_t settle(ncclComm_t comm) {
  const std::int64_t give_up_ns = MonotonicClock::read_ns() + 5'000 * kMillisecond;
  ncclResult_t state = ncclInProgress;
  while (MonotonicClock::read_ns() < give_up_ns) {
    nccl().async_error(comm, &state);
    if (state != ncclInProgress) return state;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return state;
}

/// Makes calls that wait for the device on one that has no member, while others'
/// may be waiting for each other.
class OnIdleDevice {
 public:
  OnIdleDevice() {
    cudaGetDevice(&before_);
    cudaSetDevice(7);
  }
  ~OnIdleDevice() { cudaSetDevice(before_); }
  OnIdleDevice(const OnIdleDevice&) = delete;
  OnIdleDevice& operator=(const OnIdleDevice&) = delete;

 private:
  int before_ = 0;
};

/// Device memory, which the host may touch in the double.
class NcclBuffer {
 public:
  explicit NcclBuffer(std::size_t count, float first = 0) : count_(count) {
    const OnIdleDevice idle;
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, count * sizeof(float)), cudaSuccess);
    data_ = static_cast<float*>(memory);
    std::iota(data_, data_ + count, first);
  }
  ~NcclBuffer() {
    const OnIdleDevice idle;
    cudaFree(data_);
  }
  NcclBuffer(const NcclBuffer&) = delete;
  NcclBuffer& operator=(const NcclBuffer&) = delete;

  float* data() const { return data_; }
  std::size_t count() const { return count_; }
  /// Whether its numbers from `at` on count up from `first`.
  bool counts_from(float first, std::size_t at, std::size_t count) const {
    for (std::size_t i = 0; i < count; ++i) {
      if (data_[at + i] != first + static_cast<float>(i)) return false;
    }
    return true;
  }
  bool counts_from(float first) const { return counts_from(first, 0, count_); }

 private:
  std::size_t count_;
  float* data_ = nullptr;
};

/// On a stream of its own. Aborts, if nothing else was done with it.
class NcclMember {
 public:
  /// On the device of its rank.
  NcclMember(const ncclUniqueId& id, int rank, int members) : NcclMember(id, rank, members, rank) {}
  NcclMember(const ncclUniqueId& id, int rank, int members, int device) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    EXPECT_EQ(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0), cudaSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    EXPECT_EQ(nccl().init(&comm_, members, id, rank, &config), ncclInProgress);
  }
  ~NcclMember() {
    abort();
    cudaStreamDestroy(stream_);
  }
  NcclMember(const NcclMember&) = delete;
  NcclMember& operator=(const NcclMember&) = delete;

  ncclComm_t comm() const { return comm_; }
  cudaStream_t stream() const { return stream_; }

  ncclResult_t send(const NcclBuffer& from, int peer) {
    return nccl().send(from.data(), from.count(), ncclFloat32, peer, comm_, stream_);
  }
  ncclResult_t receive(const NcclBuffer& to, int peer) {
    return nccl().receive(to.data(), to.count(), ncclFloat32, peer, comm_, stream_);
  }
  ncclResult_t all_gather(const NcclBuffer& from, const NcclBuffer& to) {
    return nccl().all_gather(from.data(), to.data(), from.count(), ncclFloat32, comm_, stream_);
  }
  ncclResult_t ask() {
    ncclResult_t state = ncclSuccess;
    nccl().async_error(comm_, &state);
    return state;
  }
  ncclResult_t settle() { return rrfp::settle(comm_); }
  void abort() {
    if (comm_ != nullptr) nccl().abort(comm_);
    comm_ = nullptr;
  }
  /// The communicator is somebody else's business now.
  ncclComm_t let_go() { return std::exchange(comm_, nullptr); }

  bool idle() const { return cudaStreamQuery(stream_) == cudaSuccess; }
  /// Whether the stream gets there within 5 s.
  bool ends() const { return becomes_idle(5'000); }
  /// Whether it is still at it, 30 ms later.
  bool hangs() const { return !becomes_idle(30); }

 private:
  // Not by cudaStreamQuery, which fails once something has been objected to.
  bool becomes_idle(int patience_ms) const {
    const std::int64_t give_up_ns = MonotonicClock::read_ns() + patience_ms * kMillisecond;
    while (MonotonicClock::read_ns() < give_up_ns) {
      if (reinterpret_cast<DoubleStream*>(stream_)->idle()) return true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return false;
  }

  cudaStream_t stream_ = nullptr;
  ncclComm_t comm_ = nullptr;
};

/// A device for every member, and nothing left of the test before.
class NcclTest : public testing::Test {
 protected:
  static constexpr std::size_t kSmall = 1000;                  // numbers
  static constexpr std::size_t kLarge = std::size_t{1} << 16;  // too many for a ring

  void SetUp() override {
    DoubleMachine::get().reset();
    setenv("RRFP_DOUBLE_DEVICES", "8", 1);
  }
  void TearDown() override {
    unsetenv("RRFP_DOUBLE_DEVICES");
    unsetenv("RRFP_DOUBLE_WITH");
    DoubleMachine::get().reset();
  }

  static void expect_objection(const std::string& part) {
    const std::string objection = DoubleMachine::get().objection();
    EXPECT_NE(objection.find(part), std::string::npos) << "the objection: " << objection;
  }
  static void expect_none() { EXPECT_EQ(DoubleMachine::get().objection(), ""); }
  static void expect_last_error(const std::string& part) {
    const std::string text = nccl().last_error(nullptr);
    EXPECT_NE(text.find(part), std::string::npos) << "the last error: " << text;
  }
};

}  // namespace rrfp
