#include "executor/cuda_double_nccl_errors.h"

#include <mutex>

#include "executor/cuda_double_driver.h"
#include "executor/cuda_double_streams.h"

namespace rrfp {

namespace {

struct LastFailure {
  std::mutex mutex;
  std::string text;
};

LastFailure& last() {
  static LastFailure* const failure = new LastFailure;
  return *failure;
}

}  // namespace

ncclResult_t nccl_failure(ncclResult_t code, const std::string& text) {
  const std::lock_guard<std::mutex> lock(last().mutex);
  last().text = text;
  return code;
}

ncclResult_t nccl_objection(const std::string& text) {
  DoubleMachine::get().check([&](DoubleChecks& checks) { checks.object(text); });
  return nccl_failure(ncclInvalidUsage, text);
}

ncclResult_t nccl_verdict() {
  return DoubleMachine::get().objection().empty() ? ncclSuccess : ncclUnhandledCudaError;
}

const char* last_nccl_failure() {
  if (nccl_verdict() != ncclSuccess) return double_objection_text();
  thread_local std::string text;
  const std::lock_guard<std::mutex> lock(last().mutex);
  text = last().text;
  return text.c_str();
}

const char* nccl_error_text(ncclResult_t code) {
  switch (code) {
    case ncclSuccess:
      return "no error";
    case ncclInProgress:
      return "NCCL operation in progress";
    default:
      break;
  }
  if (nccl_verdict() != ncclSuccess) return double_objection_text();
  switch (code) {
    case ncclInvalidArgument:
      return "invalid argument (ncclGetLastError says which)";
    case ncclInvalidUsage:
      return "invalid usage (ncclGetLastError says of what)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error";
    case ncclSystemError:
      return "unhandled system error";
    default:
      return "unknown result code";
  }
}

}  // namespace rrfp
