#include "executor/cuda_blocks.h"

#include <cuda_runtime_api.h>

#include <string>

#include "executor/cuda_launchers.h"
#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr std::size_t kAlignment = 512;

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

CudaBlocks::~CudaBlocks() {
  for (const auto& [block, size] : size_of_) cudaFree(block);
}

Result<void*> CudaBlocks::take(std::size_t bytes) {
  const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<void*>& spare = free_[size];
  void* block = nullptr;
  if (!spare.empty()) {
    block = spare.back();
    spare.pop_back();
  } else {
    const cudaError_t code = cudaMalloc(&block, size);
    if (code != cudaSuccess) {
      return Error{"cudaMalloc of " + mebibytes(size) + " for a tensor, beside " +
                   mebibytes(allocated_) + " of this rank: " + cudaGetErrorString(code) +
                   "; --payload-bytes makes messages smaller"};
    }
    size_of_[block] = size;
    allocated_ += size;
  }
  note_block_taken(block, size);
  return block;
}

void CudaBlocks::give_back(void* block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = size_of_.find(block);
  RRFP_CHECK(found != size_of_.end());
  note_block_returned(block);
  free_[found->second].push_back(block);
}

}  // namespace rrfp
