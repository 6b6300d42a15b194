// Device memory for tensors, cut into blocks that are used again and again:
// allocating from the driver stops the device, so it happens only while more
// blocks are out than ever before (in the first iteration, as a rule).
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

  /// REQUIRES: bytes > 0. The error says how much is out already.
  Result<void*> take(std::size_t bytes);
  void give_back(void* block);

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<void*>> free_;  // by size
  std::map<void*, std::size_t> size_of_;            // of all blocks
  std::size_t allocated_ = 0;
};

}  // namespace rrfp
