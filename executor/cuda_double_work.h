// How the double's launchers say what their work touches, and enqueue it.
//
// Thread safety: any.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "executor/cuda_double_loading.h"
#include "executor/cuda_double_streams.h"

namespace rrfp {

/// Of `count` numbers or bytes.
template <typename Number>
DoubleAccess reads(const Number* from, std::size_t count) {
  return {reinterpret_cast<const std::byte*>(from), count * sizeof(Number), false};
}
template <typename Number>
DoubleAccess writes(const Number* to, std::size_t count) {
  return {reinterpret_cast<const std::byte*>(to), count * sizeof(Number), true};
}

/// How work takes its time: asleep, for the cores are shared by all streams and
/// by the host code, and work that computed would slow other work as on no
/// device.
void take_time(std::int64_t ns);

/// Of a kernel that the caller has loaded.
inline cudaError_t enqueue_loaded(cudaStream_t stream, DoubleWork work, std::function<void()> run) {
  reinterpret_cast<DoubleStream*>(stream)->enqueue(std::move(work), std::move(run));
  return DoubleMachine::get().objection().empty() ? cudaSuccess : cudaErrorAssert;
}

inline cudaError_t enqueue(cudaStream_t stream, DoubleWork work, std::function<void()> run) {
  load_kernel(work.name);
  return enqueue_loaded(stream, std::move(work), std::move(run));
}

}  // namespace rrfp
