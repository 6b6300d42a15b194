// The median and other percentiles of any number of times in fixed memory, to
// a relative 1/4096.
//
// Thread safety: as a container.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace rrfp {

class MedianCount {
 public:
  /// REQUIRES: ns >= 0.
  void add(std::int64_t ns) {
    const std::size_t bucket = bucket_of(static_cast<std::uint64_t>(ns));
    if (bucket >= counts_.size()) counts_.resize(bucket + 1);
    ++counts_[bucket];
    ++total_;
  }

  /// The middle of the middle values' buckets; 0 where nothing was added.
  std::int64_t median() const {
    if (total_ == 0) return 0;
    return (value_at((total_ - 1) / 2) + value_at(total_ / 2)) / 2;
  }

  /// The nearest-rank percentile; 0 where nothing was added.
  /// REQUIRES: 0 < percent <= 100.
  std::int64_t percentile(int percent) const {
    return total_ == 0 ? 0 : value_at((total_ * percent + 99) / 100 - 1);
  }

 private:
  // Up to 2^(kBits + 1) each value has a bucket; above, each power of two is
  // cut into 2^kBits.
  static constexpr int kBits = 12;

  static std::size_t bucket_of(std::uint64_t value) {
    const int shift = std::max(0, static_cast<int>(std::bit_width(value)) - kBits - 1);
    return (static_cast<std::size_t>(shift) << kBits) + static_cast<std::size_t>(value >> shift);
  }

  std::int64_t value_at(std::int64_t rank) const {
    std::size_t bucket = 0;
    for (std::int64_t below = counts_[0]; below <= rank; below += counts_[bucket]) ++bucket;
    if (bucket < (std::size_t{2} << kBits)) return static_cast<std::int64_t>(bucket);
    const std::size_t shift = (bucket >> kBits) - 1;
    const std::size_t base = bucket - (shift << kBits);
    return static_cast<std::int64_t>((base << shift) + ((std::size_t{1} << shift) >> 1));
  }

  std::vector<std::int64_t> counts_;
  std::int64_t total_ = 0;
};

}  // namespace rrfp
