#include "experiments/options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <cmath>

#include "experiments/text_list.h"
#include "scheduler_core/check.h"
#include "scheduler_core/nearest.h"
#include "scheduler_core/suggestion.h"

namespace rrfp {

namespace {

namespace po = boost::program_options;

constexpr const char* kOperands = "operands";

std::string dashed(std::string_view name) { return "--" + std::string(name); }

Error unknown_option(const std::string& found, std::span<const OptionRow> rows) {
  std::vector<std::string_view> known;
  for (const OptionRow& row : rows) known.push_back(row.name);
  known.push_back("help");
  std::string bare = found;
  bare.erase(0, std::min(bare.find_first_not_of('-'), bare.size()));
  bare = bare.substr(0, bare.find('='));
  std::string list;
  for (const std::string_view name : known) add_to_list(list, dashed(name));
  return Error{"unknown option " + in_quotes(found) + suggestion(bare, known, "--") +
               " Allowed: " + list};
}

po::options_description describe(std::span<const OptionRow> rows) {
  po::options_description description;
  for (const OptionRow& row : rows) {
    const std::string name(row.name);
    if (row.argument.empty()) {
      description.add_options()(name.c_str(), po::bool_switch());
    } else {
      description.add_options()(name.c_str(), po::value<std::string>());
    }
  }
  description.add_options()(kOperands, po::value<std::vector<std::string>>());
  return description;
}

template <typename T>
std::optional<T> read_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
  return value;
}

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), end);
}

}  // namespace

Error not_one_of(const std::string& field, std::string_view found,
                 std::span<const std::string_view> words) {
  std::string list;
  for (const std::string_view word : words) add_to_list(list, word);
  return Error{field + ": unknown " + in_quotes(found) + suggestion(found, words) +
               " Allowed: " + list};
}

std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t least,
                                         std::int64_t most) {
  const std::optional<std::int64_t> number = read_number<std::int64_t>(text);
  return number && *number >= least && *number <= most ? number : std::nullopt;
}

Result<Options> Options::parse(std::span<const OptionRow> rows, int max_operands,
                               const std::vector<std::string>& arguments) {
  Options options;
  options.rows_ = rows;
  try {
    // "--operands" is the name that the positional arguments have inside Boost; a user who
    // writes it means an option that does not exist.
    for (const std::string& argument : arguments) {
      if (argument == "--") break;
      if (argument == dashed(kOperands) || argument.starts_with(dashed(kOperands) + "=")) {
        return unknown_option(argument, rows);
      }
    }
    const po::options_description description = describe(rows);
    po::positional_options_description positions;
    positions.add(kOperands, -1);
    namespace style = po::command_line_style;
    const po::parsed_options parsed = po::command_line_parser(arguments)
                                          .options(description)
                                          .positional(positions)
                                          .style(style::default_style & ~style::allow_guessing)
                                          .run();
    po::variables_map values;
    po::store(parsed, values);
    for (const OptionRow& row : rows) {
      const po::variable_value& value = values[std::string(row.name)];
      if (row.argument.empty()) {
        if (value.as<bool>()) options.given_.emplace(row.name, "");
      } else if (!value.empty()) {
        options.given_.emplace(row.name, value.as<std::string>());
      }
    }
    if (values.count(kOperands) > 0) {
      options.operands_ = values[kOperands].as<std::vector<std::string>>();
    }
  } catch (const po::unknown_option& unknown) {
    return unknown_option(unknown.get_option_name(), rows);
  } catch (const po::error& wrong) {
    return Error{wrong.what()};
  }
  if (options.operands_.size() > static_cast<std::size_t>(max_operands)) {
    return Error{"unexpected argument " +
                 in_quotes(options.operands_[static_cast<std::size_t>(max_operands)]) + "; " +
                 (max_operands == 0 ? "none is allowed here"
                                    : "at most " + std::to_string(max_operands) + " is allowed")};
  }
  return options;
}

bool Options::flag(std::string_view name) const { return text(name).has_value(); }

std::optional<std::string> Options::text(std::string_view name) const {
  RRFP_CHECK(std::any_of(rows_.begin(), rows_.end(),
                         [name](const OptionRow& row) { return row.name == name; }));
  const auto found = given_.find(name);
  if (found == given_.end()) return std::nullopt;
  return found->second;
}

std::string Options::text_or(std::string_view name, std::string_view otherwise) const {
  return text(name).value_or(std::string(otherwise));
}

Result<std::optional<std::int64_t>> Options::integer(std::string_view name, std::int64_t least,
                                                     std::int64_t most) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::optional<std::int64_t>{};
  const std::optional<std::int64_t> value = read_number<std::int64_t>(*given);
  if (value && *value >= least && *value <= most) return value;
  const bool bounded = most != std::numeric_limits<std::int64_t>::max();
  return Error{dashed(name) + ": found " + in_quotes(*given) + "; expected a whole number " +
               (bounded ? "from " + std::to_string(least) + " to " + std::to_string(most)
                        : "of at least " + std::to_string(least))};
}

Result<std::int64_t> Options::integer_or(std::string_view name, std::int64_t otherwise,
                                         std::int64_t least, std::int64_t most) const {
  const Result<std::optional<std::int64_t>> value = integer(name, least, most);
  if (!value.ok()) return value.error();
  return value->value_or(otherwise);
}

Result<std::optional<double>> Options::number(std::string_view name, double least) const {
  const std::optional<std::string> given = text(name);
  if (!given) return std::optional<double>{};
  const std::optional<double> value = read_number<double>(*given);
  if (value && std::isfinite(*value) && *value >= least) return value;
  return Error{dashed(name) + ": found " + in_quotes(*given) + "; expected a number of at least " +
               shortest(least)};
}

Result<double> Options::number_or(std::string_view name, double otherwise, double least) const {
  const Result<std::optional<double>> value = number(name, least);
  if (!value.ok()) return value.error();
  return value->value_or(otherwise);
}

Result<std::vector<std::string>> Options::list(std::string_view name) const {
  std::vector<std::string> parts;
  const std::optional<std::string> given = text(name);
  if (!given) return parts;
  std::size_t begin = 0;
  while (begin <= given->size()) {
    const std::size_t comma = std::min(given->find(',', begin), given->size());
    parts.push_back(given->substr(begin, comma - begin));
    if (parts.back().empty()) {
      return Error{dashed(name) + ": found " + in_quotes(*given) +
                   "; expected words with a comma between each two"};
    }
    begin = comma + 1;
  }
  return parts;
}

Result<std::string> Options::word_or(std::string_view name, std::string_view otherwise,
                                     std::span<const std::string_view> words) const {
  std::string word = text_or(name, otherwise);
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  return not_one_of(dashed(name), word, words);
}

Result<std::string> Options::operand(std::string_view what) const {
  if (operands_.size() == 1) return operands_.front();
  return Error{std::string(what) + " is missing"};
}

std::string describe_options(std::span<const OptionRow> rows) {
  const auto left = [](const OptionRow& row) {
    return "  --" + std::string(row.name) +
           (row.argument.empty() ? "" : " " + std::string(row.argument));
  };
  std::size_t width = 0;
  for (const OptionRow& row : rows) width = std::max(width, left(row).size());
  std::string text;
  for (const OptionRow& row : rows) {
    std::string line = left(row);
    line.append(width + 2 - line.size(), ' ');
    text += line + std::string(row.help) + "\n";
  }
  return text;
}

}  // namespace rrfp
