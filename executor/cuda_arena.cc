#include "executor/cuda_arena.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "executor/cuda_launchers.h"
#include "scheduler_core/check.h"

namespace rrfp {

Result<CudaArena> CudaArena::create(std::size_t bytes) {
  CudaArena arena;
  if (bytes == 0) return arena;
  if (Result<void> added = arena.add_piece(rounded(bytes)); !added.ok()) return added.error();
  return arena;
}

Result<void> CudaArena::add_piece(std::size_t bytes) {
  Result<CudaMemory> memory = CudaMemory::create(bytes, "activations");
  if (!memory.ok()) {
    return Error{memory.error().message + ", beside " + std::to_string(reserved_bytes() >> 20) +
                 " MiB of this rank that hold " + std::to_string(held_bytes_ >> 20) +
                 " MiB; a smaller memory budget needs less"};
  }
  Piece piece;
  piece.holes.emplace(memory->data(), bytes);
  piece.memory = std::move(*memory);
  pieces_.push_back(std::move(piece));
  return {};
}

// The first hole that is large enough, from the beginning of the piece.
std::byte* CudaArena::take_from(std::size_t piece, std::size_t bytes) {
  std::map<std::byte*, std::size_t>& holes = pieces_[piece].holes;
  const auto hole = std::find_if(holes.begin(), holes.end(),
                                 [&](const auto& entry) { return entry.second >= bytes; });
  if (hole == holes.end()) return nullptr;
  const auto [block, size] = *hole;
  holes.erase(hole);
  if (size > bytes) holes.emplace(block + bytes, size - bytes);
  blocks_.emplace(block, Block{piece, bytes});
  return block;
}

Result<std::byte*> CudaArena::take(std::size_t bytes) {
  RRFP_CHECK(bytes > 0);
  const std::size_t size = rounded(bytes);
  std::byte* block = nullptr;
  for (std::size_t piece = 0; piece < pieces_.size() && block == nullptr; ++piece) {
    block = take_from(piece, size);
  }
  if (block == nullptr) {
    if (Result<void> added = add_piece(size); !added.ok()) return added.error();
    block = take_from(pieces_.size() - 1, size);
  }
  note_block_taken(block, size);
  held_bytes_ += static_cast<std::int64_t>(size);
  high_water_bytes_ = std::max(high_water_bytes_, held_bytes_);
  return block;
}

void CudaArena::give_back(std::byte* block) {
  const auto found = blocks_.find(block);
  RRFP_CHECK(found != blocks_.end());
  const auto [piece, bytes] = found->second;
  blocks_.erase(found);
  note_block_returned(block);
  held_bytes_ -= static_cast<std::int64_t>(bytes);
  std::map<std::byte*, std::size_t>& holes = pieces_[piece].holes;
  auto hole = holes.emplace(block, bytes).first;
  const auto next = std::next(hole);
  if (next != holes.end() && hole->first + hole->second == next->first) {
    hole->second += next->second;
    holes.erase(next);
  }
  if (hole == holes.begin()) return;
  const auto before = std::prev(hole);
  if (before->first + before->second != hole->first) return;
  before->second += hole->second;
  holes.erase(hole);
}

std::int64_t CudaArena::reserved_bytes() const {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.memory.bytes();
  return static_cast<std::int64_t>(bytes);
}

}  // namespace rrfp
