// The options of one command line, declared as a table and asked for by name.
// Boost.Program_options reads the line; its exceptions end here.
//
// Thread safety: immutable once parsed.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_core/result.h"

namespace rrfp {

/// One option as help lists it.
struct OptionRow {
  /// What the processes of a job must have alike, see job_command.h.
  enum class Alike : std::uint8_t {
    kValue,
    kWhetherGiven,  ///< names a file of this process
    kNot,           ///< concerns this process alone, or what process 0 prints
  };
  /// What a command does with the file that it names, see check_files_apart().
  enum class File : std::uint8_t { kNone, kRead, kReplaced };
  std::string_view name;      ///< without the dashes
  std::string_view argument;  ///< what stands for it in help ("MS"); empty: a flag
  std::string_view help;
  Alike alike = Alike::kValue;
  File file = File::kNone;
};

/// All of `text` as a whole number within both ends, in digits alone.
std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t least,
                                         std::int64_t most);

class Options {
 public:
  /// The error names the option, and the known one nearest to it.
  static Result<Options> parse(std::span<const OptionRow> rows, int max_operands,
                               const std::vector<std::string>& arguments);

  std::span<const OptionRow> rows() const { return rows_; }

  // REQUIRES of all below: `name` is one of the rows.
  bool flag(std::string_view name) const;
  std::optional<std::string> text(std::string_view name) const;
  std::string text_or(std::string_view name, std::string_view otherwise) const;
  /// A whole number within both ends; none where the option is not given.
  Result<std::optional<std::int64_t>> integer(
      std::string_view name, std::int64_t least = 0,
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  Result<std::int64_t> integer_or(
      std::string_view name, std::int64_t otherwise, std::int64_t least = 0,
      std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  /// A number of at least `least` (or above it), finite.
  Result<std::optional<double>> number(std::string_view name, double least) const;
  Result<double> number_or(std::string_view name, double otherwise, double least) const;
  /// The parts of a comma-separated list; none is empty.
  Result<std::vector<std::string>> list(std::string_view name) const;
  /// One of a few words, or `otherwise` where the option is not given.
  Result<std::string> word_or(std::string_view name, std::string_view otherwise,
                              std::span<const std::string_view> words) const;

  const std::vector<std::string>& operands() const { return operands_; }
  /// The one operand. The error says what is missing.
  Result<std::string> operand(std::string_view what) const;

 private:
  std::span<const OptionRow> rows_;
  std::map<std::string, std::string, std::less<>> given_;
  std::vector<std::string> operands_;
};

/// The error for `found` where one of `words` is needed: lists them, and names
/// the nearest.
Error not_one_of(const std::string& field, std::string_view found,
                 std::span<const std::string_view> words);

/// The rows as help prints them, one a line, indented by two.
std::string describe_options(std::span<const OptionRow> rows);

}  // namespace rrfp
