// All kernels, as functions that host code calls: it holds no <<<>>>, is
// compiled by the host compiler alone, and so is the same in the module for
// devices (these launch kernels) and in its double (these enqueue CPU work).
//
// Every launcher enqueues on `stream` and returns; the error is that of the
// launch. A kernel that finds something wrong writes `fault_code` to `*fault`,
// which is pinned host memory, or leaves it alone.
//
// Thread safety: any; a stream takes work in the order of the calls.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace rrfp {

struct FaultReport {
  std::uint32_t* fault = nullptr;
  std::uint32_t fault_code = 0;
};

/// Work of a wanted length: each of `blocks` blocks multiplies a matrix of its
/// own `products` times by a permutation, and at the end compares it with what
/// it must be, to the bit. Every product takes the one before it, so none can
/// be left out; the matrices stay on their SM, so that partitions of a device
/// do not slow each other through its memory.
cudaError_t launch_matrix_chain(int blocks, int products, FaultReport report, cudaStream_t stream);

/// Fills `to` with the numbers word, word + 1, ... of 8 bytes each; the last
/// may be cut. REQUIRES: aligned to 8 bytes.
cudaError_t launch_fill_pattern(void* to, std::size_t bytes, std::uint64_t word,
                                cudaStream_t stream);
/// Compares `from` with that.
cudaError_t launch_check_pattern(const void* from, std::size_t bytes, std::uint64_t word,
                                 FaultReport report, cudaStream_t stream);

// Not kernels: what the program does that CUDA does not see. Nothing on a
// device; the double checks by them.

/// Memory that the program cuts into blocks by itself changes hands.
void note_block_taken(const void* block, std::size_t bytes);
void note_block_returned(const void* block);
/// `member` of a group has enqueued `work`; all members must enqueue the same
/// in the same order, or a collective among it would never end.
void note_group_work(int group, int member, std::uint64_t work);

}  // namespace rrfp
