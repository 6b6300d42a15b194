// A set of hint positions as a bitmap with one summary level: bit i of the
// summary says that word i is not empty. Finding the lowest member is two
// find-first-set instructions for up to 4096 positions.
//
// No allocation after construction. Not thread safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace rrfp {

class PositionSet {
 public:
  /// What first() and next() return where there is no such member: larger
  /// than any position.
  static constexpr int kNone = std::numeric_limits<int>::max();
  static constexpr int kWordBits = 64;

  PositionSet() = default;
  /// An empty set over the positions 0 to size - 1.
  explicit PositionSet(int size)
      : words_(words_for(size), 0), summary_(words_for(static_cast<int>(words_.size())), 0) {}

  void clear() {
    for (std::size_t block = 0; block < summary_.size(); ++block) {
      for (std::uint64_t bits = summary_[block]; bits != 0; bits &= bits - 1) {
        words_[block * kWordBits + static_cast<std::size_t>(std::countr_zero(bits))] = 0;
      }
      summary_[block] = 0;
    }
  }

  void insert(int position) {
    const std::size_t word = word_of(position);
    words_[word] |= bit_of(position);
    summary_[word / kWordBits] |= std::uint64_t{1} << (word % kWordBits);
  }

  void erase(int position) {
    const std::size_t word = word_of(position);
    words_[word] &= ~bit_of(position);
    const std::uint64_t emptied = words_[word] == 0 ? 1 : 0;
    summary_[word / kWordBits] &= ~(emptied << (word % kWordBits));
  }

  bool contains(int position) const { return (words_[word_of(position)] & bit_of(position)) != 0; }

  bool empty() const { return first() == kNone; }

  /// The lowest member.
  int first() const {
    for (std::size_t block = 0; block < summary_.size(); ++block) {
      if (summary_[block] != 0) return lowest_in(block, summary_[block]);
    }
    return kNone;
  }

  /// The lowest member at or above `position`.
  int next(int position) const {
    std::size_t word = word_of(position);
    if (word >= words_.size()) return kNone;
    const std::uint64_t rest = words_[word] >> (position % kWordBits);
    if (rest != 0) return position + std::countr_zero(rest);
    if (++word == words_.size()) return kNone;
    std::size_t block = word / kWordBits;
    std::uint64_t bits = summary_[block] & (~std::uint64_t{0} << (word % kWordBits));
    while (bits == 0) {
      if (++block == summary_.size()) return kNone;
      bits = summary_[block];
    }
    return lowest_in(block, bits);
  }

  /// The members in [64 * word, 64 * word + 63], as bits.
  std::uint64_t word(int index) const { return words_[static_cast<std::size_t>(index)]; }

 private:
  static std::size_t words_for(int size) {
    return static_cast<std::size_t>((size + kWordBits - 1) / kWordBits);
  }
  static std::size_t word_of(int position) {
    return static_cast<std::size_t>(position) / kWordBits;
  }
  static std::uint64_t bit_of(int position) {
    return std::uint64_t{1} << (static_cast<unsigned>(position) % kWordBits);
  }
  int lowest_in(std::size_t block, std::uint64_t summary_bits) const {
    const std::size_t word =
        block * kWordBits + static_cast<std::size_t>(std::countr_zero(summary_bits));
    return static_cast<int>(word * kWordBits) + std::countr_zero(words_[word]);
  }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> summary_;
};

}  // namespace rrfp
