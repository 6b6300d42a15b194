// Where the activations of a rank lie: one piece of device memory, allocated
// before the first task and as large as the budget that the rank's scheduler
// keeps to. What is taken is what the scheduler counts.
//
// Blocks of different lengths may leave holes that are too small, and a rank
// without a budget has no size beforehand: then another piece is allocated, and
// reserved_bytes() says so.
//
// Invariants
//  1. A block is out from take() to give_back().
//  2. give_back() comes after all work that uses the block has been seen to end.
//
// Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "executor/cuda_memory.h"

namespace rrfp {

class CudaArena {
 public:
  /// Blocks begin and end at multiples of this.
  static constexpr std::size_t kAlignment = 256;
  static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  /// Allocates the first piece, where it is not empty.
  static Result<CudaArena> create(std::size_t bytes);
  CudaArena() = default;  ///< without a piece

  /// REQUIRES: bytes > 0. The error says how much is out already.
  Result<std::byte*> take(std::size_t bytes);
  void give_back(std::byte* block);

  std::int64_t held_bytes() const { return held_bytes_; }
  std::int64_t high_water_bytes() const { return high_water_bytes_; }
  /// From now on.
  void forget_high_water() { high_water_bytes_ = held_bytes_; }
  std::int64_t reserved_bytes() const;

 private:
  struct Piece {
    CudaMemory memory;
    std::map<std::byte*, std::size_t> holes;
  };
  struct Block {
    std::size_t piece = 0;
    std::size_t bytes = 0;
  };

  Result<void> add_piece(std::size_t bytes);
  std::byte* take_from(std::size_t piece, std::size_t bytes);

  std::vector<Piece> pieces_;
  std::map<std::byte*, Block> blocks_;  // that are out
  std::int64_t held_bytes_ = 0;
  std::int64_t high_water_bytes_ = 0;
};

}  // namespace rrfp
