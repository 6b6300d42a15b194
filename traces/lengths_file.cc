#include "traces/lengths_file.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "scheduler_core/check.h"
#include "scheduler_core/nearest.h"
#include "traces/line_source.h"

namespace rrfp {

namespace {

// Spreadsheets begin a CSV in UTF-8 with it.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::size_t kMostLengths = 50'000'000;

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_in(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !(number >= 0) || number > 1e12) {
    return std::nullopt;
  }
  return number;
}

Result<std::size_t> column_of(const LineSource& source, std::string_view head,
                              const std::string& column) {
  const std::vector<std::string_view> names = fields_of(head);
  const auto found = std::find(names.begin(), names.end(), column);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  return source.error("there is no column " + in_quotes(column) + "; the nearest is " +
                      in_quotes(nearest(column, names)));
}

}  // namespace

Quantiles quantiles_of(std::vector<double> values) {
  RRFP_CHECK(values.size() >= 2);
  std::sort(values.begin(), values.end());
  const std::size_t gaps = values.size() - 1;
  const std::size_t steps = std::min<std::size_t>(kLengthSteps, gaps);
  Quantiles out;
  for (std::size_t i = 0; i <= steps; ++i) {
    const std::size_t place = i * gaps;  // in steps of 1 / steps
    const std::size_t below = place / steps;
    const double share = static_cast<double>(place % steps) / static_cast<double>(steps);
    const double above = values[std::min(below + 1, gaps)];
    out.values.push_back(values[below] + (above - values[below]) * share);
  }
  return out;
}

Result<Quantiles> read_lengths(const std::string& path, const std::string& column) {
  Result<LineSource> source = LineSource::open(path);
  if (!source.ok()) return source.error();
  std::vector<double> values;
  std::optional<std::size_t> place;
  if (column.empty()) place = 0;
  std::string_view line;
  bool first = true;
  while (true) {
    const Result<bool> more = source->next(&line);
    if (!more.ok()) return more.error();
    if (!*more) break;
    if (std::exchange(first, false) && line.starts_with(kByteOrderMark)) {
      line.remove_prefix(kByteOrderMark.size());
    }
    if (line.empty()) continue;
    if (!place) {
      const Result<std::size_t> found = column_of(*source, line, column);
      if (!found.ok()) return found.error();
      place = *found;
      continue;
    }
    const std::vector<std::string_view> fields = fields_of(line);
    const std::optional<double> number =
        *place < fields.size() ? number_in(fields[*place]) : std::nullopt;
    if (!number) {
      return source->error("found " + in_quotes(*place < fields.size() ? fields[*place] : line) +
                           "; expected a length" +
                           (column.empty() ? " (where the first line names columns, \"column\" "
                                             "says which one to take)"
                                           : ""));
    }
    values.push_back(*number);
    if (values.size() > kMostLengths) {
      return source->error("more than " + std::to_string(kMostLengths) + " lengths");
    }
  }
  if (values.size() < 2) return Error{path + ": fewer than two lengths"};
  if (*std::max_element(values.begin(), values.end()) <= 0) {
    return Error{path + ": all lengths are 0; at least one must be above"};
  }
  return quantiles_of(std::move(values));
}

}  // namespace rrfp
