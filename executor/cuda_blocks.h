// Device memory for tensors, in blocks that are used again and again. Allocating
// from the driver stops the device: so an iteration's blocks are reserved before
// it, and then none is allocated later. They must be wherever a transfer may wait
// on the device for another process, which may wait in the same way; without, one
// is allocated whenever more are out than ever before.
//
// Invariants
//  1. A block is out to one owner, from take() to give_back().
//  2. give_back() comes after all work that uses the block has been seen to
//     finish: the next owner may write to it at once, in another stream.
//  3. Reserved: of the sizes that were reserved each may be taken once until the
//     next reserve(), whichever are out and in whatever order they come, and has
//     a block. (For every size there are as many blocks at least as large as
//     sizes. A small one takes a block of a larger size only while as many other
//     small ones are out as there are small blocks; so those that ever do are no
//     more than there are small sizes beyond the small blocks, which is what the
//     large blocks have to spare.)
//  4. Reserved memory is as much as the largest reserve() took: with no block
//     out it is cut anew. Otherwise what is missing is added, until the next.
//
// Thread safety: any; the receiver of a message gives back the sender's block.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "executor/cuda_memory.h"
#include "scheduler_core/result.h"

namespace rrfp {

class CudaBlocks {
 public:
  CudaBlocks() = default;
  CudaBlocks(const CudaBlocks&) = delete;
  CudaBlocks& operator=(const CudaBlocks&) = delete;

  /// The smallest that is large enough. REQUIRES: bytes > 0. The error says what
  /// the device lacks; after reserve(), that there is none.
  Result<void*> take(std::size_t bytes);
  /// From now on, see invariant 3. A block that is still out is not counted on.
  /// REQUIRES: the device may be waited for.
  Result<void> reserve(std::vector<std::size_t> sizes);
  /// From now on, until the next reserve(), take() may allocate.
  void allocate_as_needed();
  /// Of all blocks.
  std::size_t bytes();
  void give_back(void* block);

 private:
  Result<void> allocate(const std::vector<std::size_t>& sizes);
  void cut(const CudaMemory& piece, const std::vector<std::size_t>& sizes);
  Result<void> cut_anew(const std::vector<std::size_t>& sizes);
  std::vector<std::size_t> missing(const std::vector<std::size_t>& sizes) const;

  std::mutex mutex_;
  std::vector<CudaMemory> pieces_;          // the first is the largest, where reserved
  std::multimap<std::size_t, void*> free_;  // by size
  std::map<void*, std::size_t> size_of_;    // of all blocks
  bool reserved_ = false;
};

}  // namespace rrfp
