#include "executor/cuda_blocks.h"

#include <cuda_runtime_api.h>

#include <set>
#include <string>

#include "executor/cuda_error.h"
#include "executor/cuda_launchers.h"
#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr std::size_t kAlignment = 512;

std::size_t rounded(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::string mebibytes(std::size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

CudaBlocks::~CudaBlocks() {
  for (const auto& [block, size] : size_of_) cudaFree(block);
}

// REQUIRES: the lock is held.
Result<void*> CudaBlocks::allocate(std::size_t size) {
  void* block = nullptr;
  const cudaError_t code = cudaMalloc(&block, size);
  if (code != cudaSuccess) {
    return Error{"cudaMalloc of " + mebibytes(size) + " for a tensor, beside " +
                 mebibytes(allocated_) + " of this rank: " + cudaGetErrorString(code) +
                 "; --payload-bytes makes messages smaller"};
  }
  size_of_[block] = size;
  allocated_ += size;
  return block;
}

Result<void*> CudaBlocks::take(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  void* block = nullptr;
  if (const auto spare = free_.lower_bound(size); spare != free_.end()) {
    block = spare->second;
    free_.erase(spare);
  } else {
    const Result<void*> made = allocate(size);
    if (!made.ok()) return made;
    block = *made;
  }
  note_block_taken(block, size_of_[block]);
  return block;
}

Result<void> CudaBlocks::reserve(const std::vector<std::size_t>& sizes) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::multiset<std::size_t> there;
  for (const auto& [size, block] : free_) there.insert(size);
  std::size_t left = 0;
  std::size_t all = 0;
  Result<void> asked = check_cuda("cudaMemGetInfo", cudaMemGetInfo(&left, &all));
  if (!asked.ok()) return asked;
  left /= 2;
  for (const std::size_t bytes : sizes) {
    const std::size_t size = rounded(bytes);
    if (const auto fits = there.lower_bound(size); fits != there.end()) {
      there.erase(fits);
      continue;
    }
    if (size > left) break;
    left -= size;
    const Result<void*> block = allocate(size);
    if (!block.ok()) return block.error();
    free_.emplace(size, *block);
  }
  return {};
}

void CudaBlocks::give_back(void* block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = size_of_.find(block);
  RRFP_CHECK(found != size_of_.end());
  note_block_returned(block);
  free_.emplace(found->second, block);
}

}  // namespace rrfp
