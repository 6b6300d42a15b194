#include "executor/cuda_double_driver.h"

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "executor/cuda_double_devices.h"
#include "executor/cuda_double_setting.h"
#include "executor/cuda_double_streams.h"
#include "executor/cuda_driver.h"

namespace rrfp {

namespace {

CUresult CUDAAPI write_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned) {
  if (double_is_set("RRFP_DOUBLE_WITHOUT", "memops")) return CUDA_ERROR_NOT_SUPPORTED;
  auto* word = reinterpret_cast<std::uint32_t*>(static_cast<std::uintptr_t>(address));
  reinterpret_cast<DoubleStream*>(stream)->enqueue({"a mark", {}}, [word, value] {
    std::atomic_ref<std::uint32_t>(*word).store(value, std::memory_order_release);
  });
  return DoubleMachine::get().objection().empty() ? CUDA_SUCCESS : CUDA_ERROR_ASSERT;
}

CUresult CUDAAPI error_string(CUresult code, const char** text) {
  *text = code == CUDA_ERROR_ASSERT ? double_objection_text() : "an error of the driver";
  return CUDA_SUCCESS;
}

// Which green context a stream belongs to.
struct ContextTable {
  std::mutex mutex;
  std::map<const DoubleStream*, const void*> context_of;
};

ContextTable& contexts() {
  static ContextTable* const table = new ContextTable;
  return *table;
}

#if RRFP_CUDA_GREEN_CONTEXTS
constexpr unsigned kSmStep = 8;  // as on sm_90

CUresult CUDAAPI get_resource(CUdevice, CUdevResource* resource, CUdevResourceType) {
  if (!double_is_set("RRFP_DOUBLE_WITH", "green-contexts")) return CUDA_ERROR_NOT_SUPPORTED;
  resource->type = CU_DEV_RESOURCE_TYPE_SM;
  resource->sm.smCount = kDoubleSms;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI split_sms(CUdevResource* parts, unsigned* count, const CUdevResource* all,
                           CUdevResource* rest, unsigned, unsigned least) {
  const unsigned each = (least + kSmStep - 1) / kSmStep * kSmStep;
  if (each == 0 || each > all->sm.smCount) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *count = std::min(*count, all->sm.smCount / each);
  for (unsigned part = 0; part < *count; ++part) {
    parts[part] = *all;
    parts[part].sm.smCount = each;
  }
  *rest = *all;
  rest->sm.smCount = all->sm.smCount - *count * each;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI describe_resource(CUdevResourceDesc* described, CUdevResource* resource,
                                   unsigned) {
  *described = reinterpret_cast<CUdevResourceDesc>(resource);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI create_context(CUgreenCtx* context, CUdevResourceDesc, CUdevice, unsigned flags) {
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  *context = reinterpret_cast<CUgreenCtx>(new int(0));
  return CUDA_SUCCESS;
}

CUresult CUDAAPI create_stream(CUstream* stream, CUgreenCtx context, unsigned flags, int) {
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  DoubleStream* made = DoubleMachine::get().add_stream();
  const std::lock_guard<std::mutex> lock(contexts().mutex);
  contexts().context_of[made] = context;
  *stream = reinterpret_cast<CUstream>(made);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI destroy_context(CUgreenCtx context) {
  const std::lock_guard<std::mutex> lock(contexts().mutex);
  for (const auto& [stream, of] : contexts().context_of) {
    if (of != context) continue;
    DoubleMachine::get().check([](DoubleChecks& checks) { checks.on_context_lost(); });
    return CUDA_ERROR_ASSERT;
  }
  delete reinterpret_cast<int*>(context);
  return CUDA_SUCCESS;
}
#endif

const std::map<std::string, void*>& functions() {
  static const std::map<std::string, void*> all = {
    {"cuStreamWriteValue32", reinterpret_cast<void*>(write_value)},
    {"cuGetErrorString", reinterpret_cast<void*>(error_string)},
#if RRFP_CUDA_GREEN_CONTEXTS
    {"cuDeviceGetDevResource", reinterpret_cast<void*>(get_resource)},
    {"cuDevSmResourceSplitByCount", reinterpret_cast<void*>(split_sms)},
    {"cuDevResourceGenerateDesc", reinterpret_cast<void*>(describe_resource)},
    {"cuGreenCtxCreate", reinterpret_cast<void*>(create_context)},
    {"cuGreenCtxDestroy", reinterpret_cast<void*>(destroy_context)},
    {"cuGreenCtxStreamCreate", reinterpret_cast<void*>(create_stream)},
#endif
  };
  return all;
}

}  // namespace

void* double_driver_function(const std::string& name) {
  const auto found = functions().find(name);
  return found == functions().end() ? nullptr : found->second;
}

void forget_double_stream(const DoubleStream* stream) {
  const std::lock_guard<std::mutex> lock(contexts().mutex);
  contexts().context_of.erase(stream);
}

const char* double_objection_text() {
  thread_local std::string text;
  text = DoubleMachine::get().objection();
  return text.c_str();
}

}  // namespace rrfp
