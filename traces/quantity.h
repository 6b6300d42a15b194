// Quantities of scenario files. The unit is the end of the key and the number
// may have a fraction: "forward_ms": 18.522 is 18,522,000 ns. The conversion is
// exact decimal arithmetic, rounded to the nearest (half up) ns or byte.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/json_cursor.h"

namespace rrfp {

/// The end of a key, and how many of the base unit one of it is.
struct Unit {
  std::string_view suffix;
  std::int64_t scale;
};

/// ns, us, ms, s. Base: ns.
std::span<const Unit> time_units();
/// bytes, kb, mb, gb (powers of 1000), kib, mib, gib (of 1024). Base: bytes.
std::span<const Unit> size_units();
/// bytes_per_second, mbit_per_second, gbit_per_second, gbyte_per_second.
std::span<const Unit> rate_units();

/// The largest quantity that is taken, in the base unit.
inline constexpr std::int64_t kMostQuantity = std::int64_t{1} << 61;

/// `text`, a JSON number, times `scale`. The error says what is allowed.
Result<std::int64_t> scaled(std::string_view text, std::int64_t scale);

/// One value for all stages, one per stage, or one per stage and microbatch.
struct StageTable {
  enum class Shape : std::uint8_t { kUniform, kPerStage, kPerMicrobatch };

  Shape shape = Shape::kUniform;
  std::vector<std::int64_t> values = {0};  ///< 1, stages, or [stage][microbatch] flattened
  int microbatches = 0;

  std::int64_t at(int stage, int microbatch) const;
  bool zero() const { return *this == StageTable(); }

  friend bool operator==(const StageTable&, const StageTable&) = default;
};

/// Element by element; sums stay below 2^63.
StageTable sum(const StageTable& a, const StageTable& b, int stages, int microbatches);

/// The keys of one object, with quantities under each of their units.
class KnownKeys {
 public:
  explicit KnownKeys(std::initializer_list<std::string_view> plain);
  KnownKeys& with(std::string_view quantity, std::span<const Unit> units);
  KnownKeys& with(std::string_view plain);
  void check(const JsonCursor& in) const;

 private:
  std::vector<std::string> keys_;
};

/// A member found under one of its units.
struct Quantity {
  JsonCursor in;
  std::int64_t scale;

  std::int64_t value() const;
  /// [stages], or one value for all of them.
  StageTable per_stage(int stages) const;
  /// The same, or [stages][microbatches].
  StageTable table(int stages, int microbatches) const;
};

/// Nothing where it is absent; an error where it is given in two units.
std::optional<Quantity> find_quantity(const JsonCursor& in, std::string_view name,
                                      std::span<const Unit> units);

/// The error says under which keys it may stand.
Quantity need_quantity(const JsonCursor& in, std::string_view name, std::span<const Unit> units);

/// Its value in the base unit, or `otherwise`.
std::int64_t quantity_or(const JsonCursor& in, std::string_view name, std::span<const Unit> units,
                         std::int64_t otherwise);

/// A number from `least`, which is not negative, to `most`, such as a probability.
double read_fraction(const JsonCursor& in, double most, double least = 0);

/// The shortest text that reads back as the same double.
JsonValue json_fraction(double value);

JsonValue stage_table_to_json(const StageTable& table);

}  // namespace rrfp
