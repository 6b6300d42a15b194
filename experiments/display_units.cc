#include "experiments/display_units.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace rrfp {

namespace {

__extension__ using Wide = __int128;

template <std::size_t kCount>
DisplayUnit largest_unit(const std::array<DisplayUnit, kCount>& units, std::int64_t largest) {
  DisplayUnit chosen = units.front();
  for (const DisplayUnit& unit : units) {
    if (largest / 10 >= unit.size) chosen = unit;
  }
  return chosen;
}

// numerator / denominator with `decimals` digits, rounded half up.
std::string ratio(Wide numerator, Wide denominator, int decimals) {
  Wide scale = 1;
  for (int i = 0; i < decimals; ++i) scale *= 10;
  const Wide rounded = (2 * numerator * scale + denominator) / (2 * denominator);
  std::string text = std::to_string(static_cast<std::int64_t>(rounded / scale));
  if (decimals == 0) return text;
  const std::string digits = std::to_string(static_cast<std::int64_t>(rounded % scale));
  text += ".";
  text.append(static_cast<std::size_t>(decimals) - digits.size(), '0');
  return text + digits;
}

}  // namespace

DisplayUnit time_unit(std::int64_t largest_ns) {
  constexpr std::array<DisplayUnit, 4> kUnits = {
      {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
  return largest_unit(kUnits, largest_ns);
}

DisplayUnit byte_unit(std::int64_t largest_bytes) {
  constexpr std::array<DisplayUnit, 4> kUnits = {
      {{"B", 1}, {"kB", 1'000}, {"MB", 1'000'000}, {"GB", 1'000'000'000}}};
  return largest_unit(kUnits, largest_bytes);
}

std::string in_unit(std::int64_t value, const DisplayUnit& unit) {
  return ratio(value, unit.size, unit.size == 1 ? 0 : 3);
}

std::string with_unit(std::int64_t value, const DisplayUnit& unit) {
  return in_unit(value, unit) + " " + std::string(unit.name);
}

std::string time_with_unit(std::int64_t ns) { return with_unit(ns, time_unit(ns)); }

std::string bytes_with_unit(std::int64_t bytes) { return with_unit(bytes, byte_unit(bytes)); }

std::string percent(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return "-";
  return ratio(Wide{part} * 100, whole, 1) + " %";
}

std::string fixed(double value, int decimals) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", decimals, value);
  return text.data();
}

}  // namespace rrfp
