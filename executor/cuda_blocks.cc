#include "executor/cuda_blocks.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <string>

#include "executor/cuda_launchers.h"
#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr std::size_t kAlignment = 512;

// Up. More than there are multiples of is as much as no device has.
std::size_t rounded(std::size_t bytes) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / kAlignment * kAlignment;
  return bytes > kMost ? kMost : (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t sum_of(const std::vector<std::size_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
}

}  // namespace

// Here and below, REQUIRES: the lock is held; sizes are rounded.
Result<void> CudaBlocks::allocate(const std::vector<std::size_t>& sizes) {
  Result<CudaMemory> memory = CudaMemory::create(
      sum_of(sizes), "tensors on their way",
      "smaller messages (rrfp run --payload-bytes N), fewer microbatches, or fewer ranks on this "
      "GPU need less");
  if (!memory.ok()) return memory.error();
  pieces_.push_back(std::move(*memory));
  cut(pieces_.back(), sizes);
  return {};
}

void CudaBlocks::cut(const CudaMemory& piece, const std::vector<std::size_t>& sizes) {
  std::byte* next = piece.data();
  for (const std::size_t size : sizes) {
    free_.emplace(size, next);
    size_of_[next] = size;
    next += size;
  }
}

// REQUIRES: no block is out.
Result<void> CudaBlocks::cut_anew(const std::vector<std::size_t>& sizes) {
  free_.clear();
  size_of_.clear();
  const bool enough = !pieces_.empty() && sum_of(sizes) <= pieces_.front().bytes();
  pieces_.resize(enough ? 1 : 0);
  if (!enough) return allocate(sizes);
  cut(pieces_.front(), sizes);
  return {};
}

// Of sizes in descending order: the others have a block that is there.
std::vector<std::size_t> CudaBlocks::missing(const std::vector<std::size_t>& sizes) const {
  std::multiset<std::size_t> there;
  for (const auto& [size, block] : free_) there.insert(size);
  std::vector<std::size_t> missing;
  for (const std::size_t size : sizes) {
    if (const auto fits = there.lower_bound(size); fits != there.end()) {
      there.erase(fits);
    } else {
      missing.push_back(size);
    }
  }
  return missing;
}

Result<void*> CudaBlocks::take(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  auto spare = free_.lower_bound(size);
  if (spare == free_.end()) {
    if (reserved_) {
      return Error{"no block of " + std::to_string(bytes) +
                   " bytes is left: it is for none of the iteration's tensors, for which all "
                   "memory was allocated before"};
    }
    if (Result<void> allocated = allocate({size}); !allocated.ok()) return allocated.error();
    spare = free_.lower_bound(size);
  }
  void* const block = spare->second;
  free_.erase(spare);
  note_block_taken(block, size_of_[block]);
  return block;
}

// What was sent last may not have been seen to leave.
Result<void> CudaBlocks::reserve(std::vector<std::size_t> sizes) {
  for (std::size_t& size : sizes) size = rounded(size);
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  const std::lock_guard<std::mutex> lock(mutex_);
  reserved_ = true;
  if (free_.size() == size_of_.size()) return cut_anew(sizes);
  const std::vector<std::size_t> more = missing(sizes);
  return more.empty() ? Result<void>{} : allocate(more);
}

void CudaBlocks::allocate_as_needed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  reserved_ = false;
}

std::size_t CudaBlocks::bytes() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::size_t sum = 0;
  for (const CudaMemory& piece : pieces_) sum += piece.bytes();
  return sum;
}

void CudaBlocks::give_back(void* block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = size_of_.find(block);
  RRFP_CHECK(found != size_of_.end());
  note_block_returned(block);
  free_.emplace(found->second, block);
}

}  // namespace rrfp
