// Division of task numbers by the number of microbatches, by multiplication:
// it stands in the path of every task, where a division would be the longest
// single instruction.
#pragma once

#include <cstdint>

namespace rrfp {

class Divider {
 public:
  /// REQUIRES: by >= 1.
  explicit Divider(int by)
      : factor_((std::uint64_t{1} << 63) / static_cast<std::uint64_t>(by) + 1) {}

  /// value / by. Exact: the factor is less than 1 above 2^63 / by, and
  /// value * by is below 2^63. REQUIRES: value >= 0.
  int operator()(std::int32_t value) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<int>((Wide{factor_} * static_cast<std::uint32_t>(value)) >> 63);
  }

 private:
  std::uint64_t factor_;
};

}  // namespace rrfp
