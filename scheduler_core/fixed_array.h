// An array that is sized once. Half the size of a std::vector and indexed by
// the int that positions and task numbers are, it keeps the state of a rank
// in few cache lines.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

namespace rrfp {

/// Asks for the cache line after that of `entry`. Microbatches pass through a
/// table roughly in order, but the tables of a large program are hundreds,
/// each visited too seldom for the processor to see the pattern: without this,
/// a third of a simulation with 128 ranks is spent waiting for them.
inline void prefetch_ahead(const void* entry) {
#if defined(__GNUC__)
  __builtin_prefetch(static_cast<const char*>(entry) + 64);
#else
  static_cast<void>(entry);
#endif
}

template <typename T>
class FixedArray {
 public:
  FixedArray() = default;
  explicit FixedArray(int size)
      : entries_(std::make_unique<T[]>(static_cast<std::size_t>(size))), size_(size) {}
  FixedArray(int size, const T& value) : FixedArray(size) { std::fill(begin(), end(), value); }
  explicit FixedArray(const std::vector<T>& from) : FixedArray(static_cast<int>(from.size())) {
    std::copy(from.begin(), from.end(), begin());
  }

  int size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](int index) { return entries_[index]; }
  const T& operator[](int index) const { return entries_[index]; }
  T* begin() { return entries_.get(); }
  T* end() { return entries_.get() + size_; }
  const T* begin() const { return entries_.get(); }
  const T* end() const { return entries_.get() + size_; }

 private:
  std::unique_ptr<T[]> entries_;
  int size_ = 0;
};

}  // namespace rrfp
