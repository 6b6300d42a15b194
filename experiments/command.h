// What a subcommand of `rrfp` is. A new one is one file that defines a
// `const Command`, and one row of the table in commands.cc.
#pragma once

#include <iosfwd>
#include <span>
#include <string_view>

#include "experiments/options.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// Where a command reads and writes, so that tests can stand in for a shell.
struct Terminal {
  std::istream& in;
  std::ostream& out;  ///< what was asked for, and nothing else
  std::ostream& err;  ///< notes, progress, and the one message of an error
};

/// The exit status of the program.
enum class ExitStatus : int {
  kDone = 0,
  kFailed = 1,         ///< a run that broke, or a comparison that differs
  kWrong = 2,          ///< wrong usage or input, or a result that cannot be written
  kBlocked = 3,        ///< a run that came to a stop before its end
  kInterrupted = 130,  ///< by Ctrl-C; what was done is written
};

struct Command {
  std::string_view name;
  std::string_view summary;  ///< one line of `rrfp --help`
  /// "FILE", or empty where it takes none. FILE is read and OUT is replaced;
  /// other words are neither.
  std::string_view operands;
  std::string_view details;  ///< a paragraph of its own --help; may be empty
  std::string_view example;  ///< a command line that works
  std::span<const OptionRow> options;
  int max_operands = 0;
  /// An error is wrong usage or input: it is printed after "rrfp <name>: ".
  Result<ExitStatus> (*run)(const Options& options, Terminal& terminal) = nullptr;
};

}  // namespace rrfp
