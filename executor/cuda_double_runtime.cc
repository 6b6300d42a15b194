// The functions of the CUDA runtime that the host code uses, over the double's
// streams. One that is missing here does not link.
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "executor/cuda_double_devices.h"
#include "executor/cuda_double_driver.h"
#include "executor/cuda_double_streams.h"
#include "executor/cuda_double_work.h"

namespace rrfp {

namespace {

constexpr std::size_t kAlignment = 512;

DoubleMachine& machine() { return DoubleMachine::get(); }

DoubleStream& stream_of(cudaStream_t stream) { return *reinterpret_cast<DoubleStream*>(stream); }
using Event = std::shared_ptr<DoubleEvent>;  // which its stream keeps, too
Event& event_of(cudaEvent_t event) { return *reinterpret_cast<Event*>(event); }

// What every call gives once an objection was made.
cudaError_t verdict() { return machine().objection().empty() ? cudaSuccess : cudaErrorAssert; }

// RRFP_DOUBLE_SLOW_COPIES=STREAM,NS,NS_PER_KIB: so much longer do copies in that stream take, of
// those that are there. A partition has two, of which the second copies.
std::int64_t slow_copy_ns(const DoubleStream& stream, std::size_t bytes) {
  const char* found = std::getenv("RRFP_DOUBLE_SLOW_COPIES");
  int slow_stream = 0;
  long long ns = 0;
  long long ns_per_kib = 0;
  if (found == nullptr || std::sscanf(found, "%d,%lld,%lld", &slow_stream, &ns, &ns_per_kib) != 3 ||
      slow_stream != machine().position_of(stream)) {
    return 0;
  }
  return ns + ns_per_kib * static_cast<std::int64_t>(bytes) / 1024;
}

// The device does these once its kernels have ended, or may: one of NCCL's may wait for a peer that
// waits in the same way.
void check_nothing_spins(const char* call) {
  const int device = current_double_device();
  if (spinning_kernels(device) == 0) return;
  machine().check([&](DoubleChecks& checks) {
    checks.object(std::string(call) + " waits for device " + std::to_string(device) +
                  ", on which a kernel of NCCL waits for its peer: allocate before, free after");
  });
}

std::atomic<std::size_t>& allocated() {
  static std::atomic<std::size_t> bytes{0};
  return bytes;
}

}  // namespace

}  // namespace rrfp

using namespace rrfp;  // NOLINT: what follows is the library that the rest of the file stands for

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  check_nothing_spins("cudaMalloc");
  if (bytes > DoubleMachine::kBytes) return cudaErrorMemoryAllocation;  // a sum with it may wrap
  if (allocated().fetch_add(bytes) + bytes > DoubleMachine::kBytes) {
    allocated().fetch_sub(bytes);
    return cudaErrorMemoryAllocation;
  }
  *memory = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  machine().check([&](DoubleChecks& checks) { checks.on_allocated(*memory, bytes); });
  return verdict();
}

cudaError_t cudaMemGetInfo(std::size_t* left, std::size_t* all) {
  *all = DoubleMachine::kBytes;
  *left = *all - allocated().load();
  return verdict();
}

// What else is in streams ends by itself.
cudaError_t cudaDeviceSynchronize() {
  while (spinning_kernels(current_double_device()) > 0) take_time(20'000);
  return verdict();
}

cudaError_t cudaFree(void* memory) {
  if (memory == nullptr) return cudaSuccess;
  check_nothing_spins("cudaFree");
  machine().check([&](DoubleChecks& checks) {
    allocated().fetch_sub(checks.bytes_of(memory));
    checks.on_freed(memory);
  });
  std::free(memory);
  return verdict();
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  check_nothing_spins("cudaHostAlloc");
  *memory = std::malloc(bytes);
  return verdict();
}

cudaError_t cudaFreeHost(void* memory) {
  check_nothing_spins("cudaFreeHost");
  std::free(memory);
  return verdict();
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* most) {
  *least = 0;
  *most = -5;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  *stream = reinterpret_cast<cudaStream_t>(machine().add_stream());
  return verdict();
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  forget_double_stream(&stream_of(stream));
  machine().remove_stream(&stream_of(stream));
  return verdict();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  stream_of(stream).wait_until_idle();
  return verdict();
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t code = verdict(); code != cudaSuccess) return code;
  return stream_of(stream).idle() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new Event(std::make_shared<DoubleEvent>()));
  return verdict();
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }

// Returns at once, whatever is still to reach it.
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete &event_of(event);
  return verdict();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  machine().record(event_of(event), stream_of(stream));
  return verdict();
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t code = verdict(); code != cudaSuccess) return code;
  return machine().reached(*event_of(event)) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  machine().wait_for(*event_of(event));
  return verdict();
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>(event_of(end)->time_ns - event_of(begin)->time_ns) / 1e6F;
  return verdict();
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  DoubleWork work{"a copy", {}};
  // Memory of the host is nobody's business but the host's.
  if (kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDeviceToHost) {
    work.accesses.push_back({static_cast<const std::byte*>(from), bytes, false});
  }
  if (kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyHostToDevice) {
    work.accesses.push_back({static_cast<const std::byte*>(to), bytes, true});
  }
  if (work.accesses.empty()) return cudaErrorInvalidMemcpyDirection;
  const std::int64_t slow_ns =
      kind == cudaMemcpyDeviceToDevice ? slow_copy_ns(stream_of(stream), bytes) : 0;
  stream_of(stream).enqueue(work, [=] {
    std::memcpy(to, from, bytes);
    if (slow_ns > 0) take_time(slow_ns);
  });
  return verdict();
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  const DoubleWork work{"a memset", {{static_cast<const std::byte*>(to), bytes, true}}};
  stream_of(stream).enqueue(work, [=] { std::memset(to, value, bytes); });
  return verdict();
}

// Errors are kept nowhere but in the objection.
cudaError_t cudaGetLastError() { return verdict(); }

const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return "no error";
    case cudaErrorAssert:
      return double_objection_text();
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInvalidConfiguration:
      return "RRFP_DOUBLE_DEVICES is not a number from 0 to 64";
    default:
      return "an error of the runtime";
  }
}

#if CUDART_VERSION >= 12050
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
#else
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
#endif
  *function = double_driver_function(name);
  *status = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // extern "C"
