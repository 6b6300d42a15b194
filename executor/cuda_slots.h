// How much memory is enough for blocks that come and go in any order, where
// whoever takes them keeps to a budget. As much as the budget is not: blocks of
// different lengths leave holes that are too small, and however they are placed
// what is needed grows with the logarithm of largest / smallest (J. M. Robson,
// Bounds for some functions concerning dynamic storage allocation, J. ACM 21,
// 1974). So blocks lie in slots, and slots of one length are a class: what takes
// one is no longer than it, and longer than the slots of the class before.
//
// A class has as many slots as blocks of its lengths can be out at a time: no
// more than the order in which they come and go allows, where that is known, nor
// than the budget lets through. Which lengths share a class is chosen so that all
// slots together take the least memory.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace rrfp {

/// At which moments a block may be out: `from`, at which it is taken, to before
/// `until`. Where nothing is known, all blocks are out at one moment.
struct Moments {
  int from = 0;
  int until = 1;
};

/// A block that is taken once.
struct SlotDemand {
  std::size_t bytes = 0;
  /// At least so much of the budget is in use while it is out.
  std::int64_t counted_bytes = 0;
  Moments out = {};
};

struct SlotClass {
  std::size_t bytes = 0;
  std::size_t slots = 0;
};

/// In ascending order of bytes. Whichever blocks are out, each at moments of its
/// own: where what they count is within the budget, every one that still fits the
/// budget finds a slot in the first class that is long enough.
/// REQUIRES: bytes > 0, counted_bytes > 0, 0 <= from < until.
std::vector<SlotClass> slot_classes(std::vector<SlotDemand> demands,
                                    std::optional<std::int64_t> budget_bytes);

}  // namespace rrfp
