// Times and bytes for people: one unit for a whole column, chosen from its
// largest value, and exact integers below it wherever they fit. Units are
// decimal, as in scenarios and in what vendors say of a GPU: 1 GB = 10^9 B.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rrfp {

struct DisplayUnit {
  std::string_view name;
  std::int64_t size = 1;  ///< in ns, or in bytes
};

/// ns, us, ms or s: the largest of which `largest_ns` is at least ten.
DisplayUnit time_unit(std::int64_t largest_ns);
/// B, kB, MB or GB, likewise.
DisplayUnit byte_unit(std::int64_t largest_bytes);

/// `value` in `unit` with three decimals, rounded half up; none where the unit
/// is the smallest. REQUIRES: value >= 0.
std::string in_unit(std::int64_t value, const DisplayUnit& unit);

std::string with_unit(std::int64_t value, const DisplayUnit& unit);
/// A time, or a size, alone in the unit that fits it.
std::string time_with_unit(std::int64_t ns);
std::string bytes_with_unit(std::int64_t bytes);

/// "12.3 %": the share of `part` in `whole`, rounded half up; "-" of nothing.
std::string percent(std::int64_t part, std::int64_t whole);

/// `value` with that many decimals, in fixed notation.
std::string fixed(double value, int decimals);

}  // namespace rrfp
