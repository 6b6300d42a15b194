// Device memory for tensors, in blocks that are used again and again:
// allocating from the driver stops the device, so it happens only while more
// blocks are out than ever before (in the first iteration, as a rule), or
// beforehand, by reserve(). Where a transfer may wait on the device for another
// process it must be beforehand, for that process may wait in the same way.
//
// Invariants
//  1. A block is out to one owner, from take() to give_back().
//  2. give_back() comes after all work that uses the block has been seen to
//     finish: the next owner may write to it at once, in another stream.
//
// Thread safety: any; the receiver of a message gives back the sender's block.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "scheduler_core/result.h"

namespace rrfp {

class CudaBlocks {
 public:
  CudaBlocks() = default;
  ~CudaBlocks();
  CudaBlocks(const CudaBlocks&) = delete;
  CudaBlocks& operator=(const CudaBlocks&) = delete;

  /// The smallest that is large enough. REQUIRES: bytes > 0. The error says how
  /// much is out already.
  Result<void*> take(std::size_t bytes);
  /// So that blocks of all these sizes can be out at a time and take() has none
  /// to allocate; but of the device's free memory no more than half is taken,
  /// for the sizes that come first. REQUIRES: no block is out.
  Result<void> reserve(const std::vector<std::size_t>& sizes);
  void give_back(void* block);

 private:
  Result<void*> allocate(std::size_t size);

  std::mutex mutex_;
  std::multimap<std::size_t, void*> free_;  // by size
  std::map<void*, std::size_t> size_of_;    // of all blocks
  std::size_t allocated_ = 0;
};

}  // namespace rrfp
