// What is on its way to one rank, in order of arrival. Most entries come in
// order, so that inserting is appending; the front is at a moving index, and
// the memory in use stays at the beginning of the buffer.
//
// No allocation once the capacity has been reached. Not thread safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/next_event_tree.h"

namespace rrfp {

/// Entry is trivial and has a member std::int64_t time_ns. Entries of equal
/// time keep the order in which they were inserted.
template <typename Entry>
class Inbox {
 public:
  void clear() { front_ = back_ = 0; }

  void insert(const Entry& entry) {
    if (back_ == entries_.size()) make_room();
    Entry* const entries = entries_.data();
    std::uint32_t i = back_++;
    for (; i > front_ && entries[i - 1].time_ns > entry.time_ns; --i) entries[i] = entries[i - 1];
    entries[i] = entry;
  }

  bool empty() const { return front_ == back_; }
  std::int64_t next_ns() const {
    return empty() ? NextEventTree::kNever : entries_[front_].time_ns;
  }

  /// Calls `take(entry)` for every entry up to and including `now_ns`.
  /// REQUIRES: `take` does not insert here.
  template <typename Take>
  void drain(std::int64_t now_ns, const Take& take) {
    while (front_ != back_ && entries_[front_].time_ns <= now_ns) take(entries_[front_++]);
    if (front_ == back_) clear();
  }

 private:
  void make_room() {
    if (front_ > entries_.size() / 2) {
      std::copy(entries_.begin() + static_cast<std::ptrdiff_t>(front_), entries_.end(),
                entries_.begin());
      back_ -= front_;
      front_ = 0;
    } else {
      entries_.resize(std::max<std::size_t>(16, 2 * entries_.size()));
    }
  }

  std::vector<Entry> entries_;  // [front_, back_) are in use
  std::uint32_t front_ = 0;
  std::uint32_t back_ = 0;
};

}  // namespace rrfp
