#include "executor/cuda_partition.h"

#include <algorithm>

#include "executor/cuda_error.h"

namespace rrfp {

namespace {

Result<int> count_sms(int device) {
  int sms = 0;
  Result<void> asked =
      check_cuda("cudaDeviceGetAttribute",
                 cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
  if (!asked.ok()) return asked.error();
  return std::max(sms, 1);
}

#if RRFP_CUDA_GREEN_CONTEXTS
// On sm_90 partitions are of at least 8 SMs, in multiples of 8; coarser is allowed everywhere.
constexpr unsigned kSmStep = 8;

struct Share {
  std::vector<CUdevResource> resources;
  unsigned sms = 0;
};

// Empty where the driver will not cut the device into so many parts.
Share split(const CudaDriver& driver, int device, int count) {
  CUdevResource all{};
  if (driver.get_resource(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) return {};
  Share share;
  share.sms = all.sm.smCount / static_cast<unsigned>(count) / kSmStep * kSmStep;
  if (share.sms == 0) return {};
  auto groups = static_cast<unsigned>(count);
  share.resources.resize(groups);
  CUdevResource rest{};
  const CUresult code =
      driver.split_sms(share.resources.data(), &groups, &all, &rest, 0, share.sms);
  if (code != CUDA_SUCCESS || groups < static_cast<unsigned>(count)) return {};
  share.sms = share.resources.front().sm.smCount;
  return share;
}
#endif

}  // namespace

// Priorities are from the least to the most, which is the lesser number.
Result<int> highest_stream_priority() {
  int least = 0;
  int most = 0;
  Result<void> asked = check_cuda("cudaDeviceGetStreamPriorityRange",
                                  cudaDeviceGetStreamPriorityRange(&least, &most));
  if (!asked.ok()) return asked.error();
  return most;
}

CudaPartition::~CudaPartition() {
  for (cudaStream_t stream : {compute_, copies_}) {
    if (stream != nullptr) cudaStreamSynchronize(stream);
  }
  compute_marks_.reset();
  copy_marks_.reset();
  for (cudaStream_t stream : {compute_, copies_}) {
    if (stream != nullptr) cudaStreamDestroy(stream);
  }
#if RRFP_CUDA_GREEN_CONTEXTS
  if (context_ != nullptr) cuda_driver().destroy_context(context_);
#endif
}

Result<void> CudaPartition::complete() {
  Result<CudaPinnedWord> fault = CudaPinnedWord::create();
  if (!fault.ok()) return fault.error();
  fault_ = std::move(*fault);
  Result<std::unique_ptr<CudaMarks>> of_compute = CudaMarks::create(compute_);
  if (!of_compute.ok()) return of_compute.error();
  Result<std::unique_ptr<CudaMarks>> of_copies = CudaMarks::create(copies_);
  if (!of_copies.ok()) return of_copies.error();
  compute_marks_ = std::move(*of_compute);
  copy_marks_ = std::move(*of_copies);
  return {};
}

Result<CudaDevicePartitions> CudaDevicePartitions::create(int device, int count) {
  CudaDevicePartitions made;
  Result<void> chosen = check_cuda("cudaSetDevice", cudaSetDevice(device));
  if (!chosen.ok()) return chosen.error();
  Result<bool> cut = made.cut_into_contexts(device, count);
  if (!cut.ok()) return cut.error();
  made.contexts_ = *cut;
  if (!made.contexts_) {
    made.partitions_.clear();
    if (Result<void> plain = made.cut_into_streams(device, count); !plain.ok()) {
      return plain.error();
    }
  }
  for (const auto& partition : made.partitions_) {
    partition->device_ = device;
    if (Result<void> added = partition->complete(); !added.ok()) return added.error();
  }
  return made;
}

// False where that is not to be had here; nothing is left behind then.
Result<bool> CudaDevicePartitions::cut_into_contexts([[maybe_unused]] int device,
                                                     [[maybe_unused]] int count) {
#if RRFP_CUDA_GREEN_CONTEXTS
  const CudaDriver& driver = cuda_driver();
  if (count == 1 || !driver.has_green_contexts()) return false;
  // The primary context, which all green contexts of the device share.
  if (Result<void> ready = check_cuda("cudaFree", cudaFree(nullptr)); !ready.ok()) {
    return ready.error();
  }
  const Result<int> priority = highest_stream_priority();
  if (!priority.ok()) return priority.error();
  Share share = split(driver, device, count);
  if (share.resources.empty()) return false;
  for (CUdevResource& resource : share.resources) {
    CUdevResourceDesc described = nullptr;
    partitions_.emplace_back(new CudaPartition);
    CudaPartition& made = *partitions_.back();
    made.sms_ = static_cast<int>(share.sms);
    if (driver.describe_resource(&described, &resource, 1) != CUDA_SUCCESS) return false;
    if (driver.create_context(&made.context_, described, device, CU_GREEN_CTX_DEFAULT_STREAM) !=
        CUDA_SUCCESS) {
      return false;
    }
    if (driver.create_stream(&made.compute_, made.context_, CU_STREAM_NON_BLOCKING, 0) !=
            CUDA_SUCCESS ||
        driver.create_stream(&made.copies_, made.context_, CU_STREAM_NON_BLOCKING, *priority) !=
            CUDA_SUCCESS) {
      return false;
    }
  }
  return true;
#else
  return false;
#endif
}

Result<void> CudaDevicePartitions::cut_into_streams(int device, int count) {
  const Result<int> sms = count_sms(device);
  if (!sms.ok()) return sms.error();
  const Result<int> priority = highest_stream_priority();
  if (!priority.ok()) return priority.error();
  for (int index = 0; index < count; ++index) {
    partitions_.emplace_back(new CudaPartition);
    CudaPartition& made = *partitions_.back();
    made.sms_ = std::max(1, *sms / count);
    Result<void> compute =
        check_cuda("cudaStreamCreateWithPriority",
                   cudaStreamCreateWithPriority(&made.compute_, cudaStreamNonBlocking, 0));
    if (!compute.ok()) return compute;
    Result<void> copies =
        check_cuda("cudaStreamCreateWithPriority",
                   cudaStreamCreateWithPriority(&made.copies_, cudaStreamNonBlocking, *priority));
    if (!copies.ok()) return copies;
  }
  return {};
}

std::string CudaDevicePartitions::describe() const {
  const std::size_t count = partitions_.size();
  const std::string sms = std::to_string(partitions_.front()->sms()) + " SMs";
  std::string text = std::to_string(count) + (count == 1 ? " partition of " : " partitions of ") +
                     sms + (contexts_ ? " (green contexts)" : " (plain streams)");
  if (partitions_.front()->compute_marks_->uses_events()) text += ", completion by events";
  return text;
}

}  // namespace rrfp
