// What is on its way to one rank, in order of arrival. Most entries come in
// order, so that inserting is appending; the front is at a moving index, and
// the memory in use stays at the beginning of the buffer.
//
// No allocation once the capacity has been reached. Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/next_event_tree.h"

namespace rrfp {

/// Entry has a member std::int64_t time_ns. Entries of equal time keep the
/// order in which they were inserted.
template <typename Entry>
class Inbox {
 public:
  void reserve(std::size_t capacity) { entries_.reserve(capacity); }

  void clear() {
    entries_.clear();
    front_ = 0;
  }

  void insert(const Entry& entry) {
    entries_.push_back(entry);
    std::size_t i = entries_.size() - 1;
    for (; i > front_ && entries_[i - 1].time_ns > entry.time_ns; --i) {
      entries_[i] = entries_[i - 1];
    }
    entries_[i] = entry;
  }

  std::int64_t next_ns() const {
    return front_ < entries_.size() ? entries_[front_].time_ns : NextEventTree::kNever;
  }

  /// Calls `take(entry)` for every entry up to and including `now_ns`.
  template <typename Take>
  void drain(std::int64_t now_ns, const Take& take) {
    while (front_ < entries_.size() && entries_[front_].time_ns <= now_ns) {
      take(entries_[front_]);
      ++front_;
    }
    if (front_ == entries_.size()) {
      clear();
    } else if (front_ > kMostSpent) {
      entries_.erase(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(front_));
      front_ = 0;
    }
  }

 private:
  static constexpr std::size_t kMostSpent = 64;

  std::vector<Entry> entries_;
  std::size_t front_ = 0;
};

}  // namespace rrfp
