#include "traces/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "traces/json_writer.h"

namespace rrfp {

namespace {

__extension__ using Wide = __int128;

constexpr std::array<Unit, 4> kTimeUnits = {
    {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}}};
constexpr std::array<Unit, 7> kSizeUnits = {{{"bytes", 1},
                                             {"kb", 1'000},
                                             {"mb", 1'000'000},
                                             {"gb", 1'000'000'000},
                                             {"kib", 1 << 10},
                                             {"mib", 1 << 20},
                                             {"gib", 1 << 30}}};
constexpr std::array<Unit, 4> kRateUnits = {{{"bytes_per_second", 1},
                                             {"mbit_per_second", 125'000},
                                             {"gbit_per_second", 125'000'000},
                                             {"gbyte_per_second", 1'000'000'000}}};

constexpr int kMostDigits = 18;

/// digits * 10^exponent.
struct Parsed {
  std::int64_t digits = 0;
  int exponent = 0;
};

// Nothing where `text` has more than 18 significant digits or a sign.
std::optional<Parsed> parse(std::string_view text) {
  Parsed parsed;
  std::string digits;
  const std::size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view exponent = text.substr(e + 1);
    if (exponent.starts_with('+')) exponent.remove_prefix(1);
    // Beyond this the value is 0 or too large whatever the digits.
    constexpr int kFar = 100'000'000;
    const char* const end = exponent.data() + exponent.size();
    if (std::from_chars(exponent.data(), end, parsed.exponent).ec != std::errc()) {
      parsed.exponent = exponent.starts_with('-') ? -kFar : kFar;
    }
    parsed.exponent = std::clamp(parsed.exponent, -kFar, kFar);
  }
  const std::string_view mantissa = text.substr(0, e);
  const std::size_t point = mantissa.find('.');
  for (const char c : mantissa) {
    if (c == '-') return std::nullopt;
    if (c != '.') digits += c;
  }
  if (point != std::string_view::npos) {
    parsed.exponent -= static_cast<int>(mantissa.size() - point - 1);
  }
  while (!digits.empty() && digits.back() == '0') {
    digits.pop_back();
    ++parsed.exponent;
  }
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.size() > kMostDigits) return std::nullopt;
  for (const char c : digits) parsed.digits = parsed.digits * 10 + (c - '0');
  return parsed;
}

// Whole numbers as such; others shortest. REQUIRES: below 2^63.
std::string text_of(double number) {
  const auto whole = static_cast<std::int64_t>(number);
  if (static_cast<double>(whole) == number) return std::to_string(whole);
  return json_fraction(number).decimal()->text;
}

JsonValue integers_or_one(std::span<const std::int64_t> values, StageTable::Shape shape) {
  return shape == StageTable::Shape::kUniform ? JsonValue(values[0]) : json_integers(values);
}

}  // namespace

std::span<const Unit> time_units() { return kTimeUnits; }
std::span<const Unit> size_units() { return kSizeUnits; }
std::span<const Unit> rate_units() { return kRateUnits; }

Result<std::int64_t> scaled(std::string_view text, std::int64_t scale) {
  const Error wrong{"a number from 0 to " + std::to_string(kMostQuantity / scale) +
                    " with at most 18 significant digits"};
  const std::optional<Parsed> parsed = parse(text);
  if (!parsed) return wrong;
  if (parsed->digits == 0) return std::int64_t{0};
  Wide value = Wide{parsed->digits} * scale;
  for (int i = 0; i < parsed->exponent; ++i) {
    if (value > kMostQuantity) return wrong;
    value *= 10;
  }
  Wide divisor = 1;
  for (int i = 0; i > parsed->exponent; --i) {
    // value is below 2^90, so that it is 0 from here on.
    if (divisor > Wide{1} << 100) return std::int64_t{0};
    divisor *= 10;
  }
  value = (2 * value + divisor) / (2 * divisor);
  if (value > kMostQuantity) return wrong;
  return static_cast<std::int64_t>(value);
}

std::int64_t StageTable::at(int stage, int microbatch) const {
  switch (shape) {
    case Shape::kUniform:
      return values[0];
    case Shape::kPerStage:
      return values[static_cast<std::size_t>(stage)];
    case Shape::kPerMicrobatch:
      break;
  }
  return values[static_cast<std::size_t>(stage) * static_cast<std::size_t>(microbatches) +
                static_cast<std::size_t>(microbatch)];
}

StageTable sum(const StageTable& a, const StageTable& b, int stages, int microbatches) {
  using Shape = StageTable::Shape;
  StageTable out{std::max(a.shape, b.shape), {}, 0};
  const int rows = out.shape == Shape::kUniform ? 1 : stages;
  const int columns = out.shape == Shape::kPerMicrobatch ? microbatches : 1;
  if (out.shape == Shape::kPerMicrobatch) out.microbatches = microbatches;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      out.values.push_back(a.at(row, column) + b.at(row, column));
    }
  }
  return out;
}

KnownKeys::KnownKeys(std::initializer_list<std::string_view> plain)
    : keys_(plain.begin(), plain.end()) {}

KnownKeys& KnownKeys::with(std::string_view quantity, std::span<const Unit> units) {
  for (const Unit& unit : units) {
    keys_.push_back(std::string(quantity) + "_" + std::string(unit.suffix));
  }
  return *this;
}

KnownKeys& KnownKeys::with(std::string_view plain) {
  keys_.emplace_back(plain);
  return *this;
}

void KnownKeys::check(const JsonCursor& in) const {
  const std::vector<std::string_view> views(keys_.begin(), keys_.end());
  in.only_keys(views);
}

std::int64_t Quantity::value() const {
  if (!in.ok()) return 0;
  const std::int64_t* integer = in.value().integer();
  const Decimal* decimal = in.value().decimal();
  if (integer == nullptr && decimal == nullptr) {
    in.expected("a number");
    return 0;
  }
  const Result<std::int64_t> result =
      scaled(integer != nullptr ? std::to_string(*integer) : decimal->text, scale);
  if (result.ok()) return *result;
  in.expected(result.error().message);
  return 0;
}

StageTable Quantity::per_stage(int stages) const {
  StageTable out;
  if (in.value().array() == nullptr) {
    out.values = {value()};
    return out;
  }
  out.shape = StageTable::Shape::kPerStage;
  out.values.clear();
  for (const JsonCursor& item : in.items(static_cast<std::size_t>(stages), "stage")) {
    out.values.push_back(Quantity{item, scale}.value());
  }
  return out;
}

StageTable Quantity::table(int stages, int microbatches) const {
  const JsonArray* rows = in.value().array();
  if (rows == nullptr || rows->empty() || rows->front().array() == nullptr) {
    return per_stage(stages);
  }
  StageTable out{StageTable::Shape::kPerMicrobatch, {}, microbatches};
  for (const JsonCursor& row : in.items(static_cast<std::size_t>(stages), "stage")) {
    for (const JsonCursor& item : row.items(static_cast<std::size_t>(microbatches), "microbatch")) {
      out.values.push_back(Quantity{item, scale}.value());
    }
  }
  return out;
}

std::optional<Quantity> find_quantity(const JsonCursor& in, std::string_view name,
                                      std::span<const Unit> units) {
  std::optional<Quantity> found;
  for (const Unit& unit : units) {
    const auto member = in.find(std::string(name) + "_" + std::string(unit.suffix));
    if (!member) continue;
    if (found) member->fail("\"" + std::string(name) + "\" is given in two units; give it in one");
    found.emplace(Quantity{*member, unit.scale});
  }
  return found;
}

Quantity need_quantity(const JsonCursor& in, std::string_view name, std::span<const Unit> units) {
  if (const auto found = find_quantity(in, name, units)) return *found;
  std::string keys;
  for (const Unit& unit : units) {
    keys +=
        (keys.empty() ? "\"" : ", \"") + std::string(name) + "_" + std::string(unit.suffix) + "\"";
  }
  in.fail("one of the keys " + keys + " is needed");
  return Quantity{in, 1};
}

std::int64_t quantity_or(const JsonCursor& in, std::string_view name, std::span<const Unit> units,
                         std::int64_t otherwise) {
  const auto found = find_quantity(in, name, units);
  return found ? found->value() : otherwise;
}

double read_fraction(const JsonCursor& in, double most, double least) {
  if (!in.ok()) return 0;
  double number = -1;
  if (const std::int64_t* integer = in.value().integer()) {
    number = static_cast<double>(*integer);
  } else if (const Decimal* decimal = in.value().decimal()) {
    const std::string& text = decimal->text;
    // Too small for a double is as good as 0.
    if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc()) {
      number = 0;
    }
  }
  if (number >= least && number <= most) return number;
  in.expected("a number from " + text_of(least) + " to " + text_of(most));
  return 0;
}

JsonValue json_fraction(double value) {
  std::array<char, 40> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  std::string shortest(text.data(), end);
  if (shortest.find_first_of(".e") == std::string::npos) shortest += ".0";
  return JsonValue(Decimal{std::move(shortest)});
}

JsonValue stage_table_to_json(const StageTable& table) {
  if (table.shape != StageTable::Shape::kPerMicrobatch) {
    return integers_or_one(table.values, table.shape);
  }
  JsonArray rows;
  const auto columns = static_cast<std::size_t>(table.microbatches);
  for (std::size_t first = 0; first < table.values.size(); first += columns) {
    rows.push_back(json_integers(std::span(table.values).subspan(first, columns)));
  }
  return JsonValue(std::move(rows));
}

}  // namespace rrfp
