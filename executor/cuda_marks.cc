#include "executor/cuda_marks.h"

#include <string>

#include "executor/cuda_driver.h"
#include "executor/cuda_error.h"

namespace rrfp {

namespace {

constexpr int kLooksPerQuery = 64;

CUdeviceptr device_address(std::uint32_t* word) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(word));
}

}  // namespace

Result<std::unique_ptr<CudaMarks>> CudaMarks::create(cudaStream_t stream) {
  std::unique_ptr<CudaMarks> marks(new CudaMarks(stream));
  if (Result<void> prepared = marks->prepare(); !prepared.ok()) return prepared.error();
  return marks;
}

CudaMarks::~CudaMarks() {
  for (cudaEvent_t event : pending_) cudaEventDestroy(event);
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
}

// The first mark is left and waited for, to see whether the driver does it.
Result<void> CudaMarks::prepare() {
  if (cuda_driver().write_value == nullptr) return {};
  Result<CudaPinnedWord> word = CudaPinnedWord::create();
  if (!word.ok()) return word.error();
  word_ = std::move(*word);
  const Result<std::int64_t> mark = leave();
  const cudaError_t code = cudaStreamSynchronize(stream_);
  if (mark.ok() && code == cudaSuccess && word_.load() == *mark) return {};
  static_cast<void>(cudaGetLastError());
  word_ = CudaPinnedWord();
  left_ = 0;
  return {};
}

Result<std::int64_t> CudaMarks::leave() {
  const std::int64_t mark = left_ + 1;
  if (uses_events()) {
    if (Result<void> left = leave_event(); !left.ok()) return left.error();
  } else {
    const CUresult code =
        cuda_driver().write_value(reinterpret_cast<CUstream>(stream_), device_address(word_.get()),
                                  static_cast<std::uint32_t>(mark), CU_STREAM_WRITE_VALUE_DEFAULT);
    if (code != CUDA_SUCCESS) {
      const char* text = nullptr;
      if (cuda_driver().error_string != nullptr) cuda_driver().error_string(code, &text);
      return Error{"cuStreamWriteValue32: " +
                   (text != nullptr ? std::string(text) : "error " + std::to_string(code))};
    }
  }
  left_ = mark;
  return mark;
}

Result<std::int64_t> CudaMarks::reached() {
  if (reached_ == left_) return reached_;
  if (uses_events()) {
    if (Result<void> passed = pass_events(); !passed.ok()) return passed.error();
    return reached_;
  }
  const std::int64_t before = reached_;
  // Fewer than 2^31 marks are on their way, so the difference of the low bits is that of the marks.
  reached_ += word_.load() - static_cast<std::uint32_t>(reached_);
  if (reached_ != before) return reached_;
  // A stream that has failed writes nothing any more, but asking it costs more than a look.
  if (++looks_ % kLooksPerQuery != 0) return reached_;
  const cudaError_t code = cudaStreamQuery(stream_);
  if (code != cudaSuccess && code != cudaErrorNotReady) return cuda_error("cudaStreamQuery", code);
  static_cast<void>(cudaGetLastError());  // cudaErrorNotReady is kept as if it were one
  return reached_;
}

Result<void> CudaMarks::leave_event() {
  cudaEvent_t event = nullptr;
  if (spare_.empty()) {
    Result<void> made = check_cuda("cudaEventCreateWithFlags",
                                   cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    if (!made.ok()) return made;
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  pending_.push_back(event);
  return check_cuda("cudaEventRecord", cudaEventRecord(event, stream_));
}

Result<void> CudaMarks::pass_events() {
  while (!pending_.empty()) {
    const cudaError_t code = cudaEventQuery(pending_.front());
    if (code == cudaErrorNotReady) break;
    if (code != cudaSuccess) return cuda_error("cudaEventQuery", code);
    spare_.push_back(pending_.front());
    pending_.pop_front();
    ++reached_;
  }
  static_cast<void>(cudaGetLastError());  // cudaErrorNotReady is kept as if it were one
  return {};
}

}  // namespace rrfp
