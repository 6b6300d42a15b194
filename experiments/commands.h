// The subcommands of `rrfp`, and the program as a function.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/command.h"

namespace rrfp {

/// All subcommands, in the order in which help lists them.
std::span<const Command* const> command_table();

/// Runs the program; `arguments` are those after its name. Whatever goes wrong
/// is one message on terminal.err.
ExitStatus run_program(const std::vector<std::string>& arguments, Terminal& terminal);

}  // namespace rrfp
