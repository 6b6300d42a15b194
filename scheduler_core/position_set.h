// A set of hint positions as a bitmap under one or two levels of summary: a bit
// of a summary says that the word below it is not empty. The lowest member is
// two find-first-set instructions away, or three where there are more than
// 4095 positions: the second level is only there when the first needs it, for
// most ranks do without and every level is a load in the path of a decision.
//
// The position one past the last is always a member, so that a search ends
// there and needs no test for emptiness: it is what "none" looks like.
// Nothing here branches on the content, which no branch predictor can guess.
//
// No allocation after construction. Not thread safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "scheduler_core/check.h"
#include "scheduler_core/fixed_array.h"

namespace rrfp {

class PositionSet {
 public:
  static constexpr int kWordBits = 64;
  static constexpr int kMostPositions = kWordBits * kWordBits * kWordBits - 1;

  PositionSet() : PositionSet(0) {}
  /// An empty set over the positions 0 to size - 1.
  /// REQUIRES: 0 <= size <= kMostPositions.
  explicit PositionSet(int size)
      : none_(size), blocks_(blocks_for(size)), bits_(blocks_ + above(size) + 1, 0) {
    RRFP_CHECK(size >= 0 && size <= kMostPositions);
    insert(none_);
  }

  /// What searches return where there is no member: the size.
  int none() const { return none_; }

  void clear() {
    std::fill(bits_.begin(), bits_.end(), 0);
    top_ = 0;
    insert(none_);
  }

  void insert(int position) {
    const int word = above(position);
    bits_[blocks_ + word] |= bit(position);
    if (blocks_ == 0) {
      top_ |= bit(word);
      return;
    }
    const int block = above(word);
    bits_[block] |= bit(word);
    top_ |= bit(block);
  }

  void erase(int position) {
    const int word = above(position);
    const std::uint64_t members = bits_[blocks_ + word] &= ~bit(position);
    if (blocks_ == 0) {
      top_ &= ~bit_if(members == 0, word);
      return;
    }
    const int block = above(word);
    const std::uint64_t words = bits_[block] &= ~bit_if(members == 0, word);
    top_ &= ~bit_if(words == 0, block);
  }

  bool empty() const { return first() == none_; }
  bool contains(int position) const { return (word(above(position)) & bit(position)) != 0; }

  /// The lowest member, or none().
  int first() const {
    const int lowest = std::countr_zero(top_);
    return blocks_ == 0 ? lowest_in(lowest) : lowest_under(lowest);
  }

  /// The lowest member at or above `position`, or none().
  /// REQUIRES: 0 <= position <= none().
  int next(int position) const {
    const int index = above(position);
    if (const std::uint64_t rest = word(index) & from(position); rest != 0) {
      return index * kWordBits + std::countr_zero(rest);
    }
    if (blocks_ == 0) return lowest_in(std::countr_zero(top_ & from(index) & ~bit(index)));
    const int block = above(index);
    const std::uint64_t later = bits_[block] & from(index) & ~bit(index);
    if (later != 0) return lowest_in(block * kWordBits + std::countr_zero(later));
    return lowest_under(std::countr_zero(top_ & from(block) & ~bit(block)));
  }

  /// The members in [64 * index, 64 * index + 63], as bits; none() is one.
  std::uint64_t word(int index) const { return bits_[blocks_ + index]; }

 private:
  static int blocks_for(int size) {
    return size < kWordBits * kWordBits ? 0 : above(above(size)) + 1;
  }
  // The index of the word that holds bit `index`.
  static int above(int index) { return static_cast<int>(static_cast<unsigned>(index) / kWordBits); }
  // That bit in it.
  static std::uint64_t bit(int index) { return bit_if(true, index); }
  static std::uint64_t bit_if(bool set, int index) {
    return static_cast<std::uint64_t>(set) << (static_cast<unsigned>(index) % kWordBits);
  }
  // The bits of a word from that of `index` up.
  static std::uint64_t from(int index) {
    return ~std::uint64_t{0} << (static_cast<unsigned>(index) % kWordBits);
  }
  int lowest_in(int index) const { return index * kWordBits + std::countr_zero(word(index)); }
  int lowest_under(int block) const {
    return lowest_in(block * kWordBits + std::countr_zero(bits_[block]));
  }

  std::uint64_t top_ = 0;           // the summary of the summary, or of the words
  int none_ = 0;                    // the size
  int blocks_ = 0;                  // words of the summary; 0: top_ is of the words
  FixedArray<std::uint64_t> bits_;  // the summary of the words, then the words
};

}  // namespace rrfp
