#include "experiments/commands.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ostream>
#include <sstream>
#include <thread>

#include "executor/launcher.h"
#include "experiments/guarded.h"
#include "experiments/job_command.h"
#include "experiments/output_file.h"
#include "experiments/text_list.h"
#include "experiments/version.h"
#include "scheduler_core/nearest.h"
#include "scheduler_core/suggestion.h"

namespace rrfp {

// Each stands in command_<name>.cc.
extern const Command kSimulateCommand;
extern const Command kSweepCommand;
extern const Command kScheduleCommand;
extern const Command kInfoCommand;
extern const Command kImportCommand;
extern const Command kReplayCommand;
extern const Command kFitCommand;
extern const Command kExportCommand;
extern const Command kInitCommand;
extern const Command kPresetsCommand;
extern const Command kModelsCommand;
extern const Command kRunCommand;
extern const Command kTrainCommand;
extern const Command kValidateCommand;
extern const Command kCalibrateCommand;
extern const Command kReplayLogCommand;
extern const Command kDevicesCommand;

namespace {

constexpr std::array kCommands = {
    &kSimulateCommand,  &kSweepCommand,   &kScheduleCommand, &kInfoCommand,     &kImportCommand,
    &kReplayCommand,    &kFitCommand,     &kExportCommand,   &kInitCommand,     &kPresetsCommand,
    &kModelsCommand,    &kRunCommand,     &kTrainCommand,    &kValidateCommand, &kCalibrateCommand,
    &kReplayLogCommand, &kDevicesCommand,
};

std::string overview() {
  std::string text =
      "rrfp: simulates and compares schedules of pipeline-parallel training\n\n"
      "usage: rrfp COMMAND [argument...]\n\ncommands:\n";
  std::size_t width = 0;
  for (const Command* command : kCommands) width = std::max(width, command->name.size());
  for (const Command* command : kCommands) {
    std::string line = "  " + std::string(command->name);
    line.append(width + 4 - line.size(), ' ');
    text += line + std::string(command->summary) + "\n";
  }
  return text +
         "\n`rrfp COMMAND --help` says more, with an example. `rrfp --version` prints the "
         "version.\nExit status: 0; 1 a run that broke; 2 wrong usage or input; 3 a run that "
         "blocked; 130 Ctrl-C.\n";
}

std::string help_of(const Command& command) {
  std::string text = "rrfp " + std::string(command.name) + ": " + std::string(command.summary) +
                     "\n\nusage: rrfp " + std::string(command.name) +
                     (command.operands.empty() ? "" : " " + std::string(command.operands)) +
                     " [option...]\n\noptions:\n" + describe_options(command.options);
  if (!command.details.empty()) text += "\n" + std::string(command.details) + "\n";
  return text + "\nexample:\n  " + std::string(command.example) + "\n";
}

Error unknown_command(const std::string& found) {
  std::vector<std::string_view> known;
  for (const Command* command : kCommands) known.push_back(command->name);
  std::string list;
  for (const std::string_view name : known) add_to_list(list, name);
  return Error{"unknown command " + in_quotes(found) + suggestion(found, known) +
               " Allowed: " + list};
}

bool asks_for_help(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == "--help" || argument == "-h") return true;
  }
  return false;
}

bool runs_as_job(const Command& command) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [](const OptionRow& row) { return row.name == kTransportRow.name; });
}

// That the command replaces nothing that it reads.
Result<void> check_files(const Command& command, const Options& options) {
  std::vector<NamedFile> read;
  std::vector<NamedFile> replaced;
  std::istringstream words{std::string(command.operands)};
  for (const std::string& path : options.operands()) {
    std::string word;
    words >> word;
    if (word == "FILE") read.push_back({word, path});
    if (word == "OUT") replaced.push_back({word, path});
  }
  for (const OptionRow& row : command.options) {
    const std::optional<std::string> path = options.text(row.name);
    if (!path || row.file == OptionRow::File::kNone) continue;
    const bool reads = row.file == OptionRow::File::kRead;
    (reads ? read : replaced).push_back({"--" + std::string(row.name), *path});
  }
  return check_files_apart(read, replaced);
}

Result<ExitStatus> run_command(const Command& command, const std::vector<std::string>& arguments,
                               Terminal& terminal) {
  if (asks_for_help(arguments)) {
    terminal.out << help_of(command);
    return ExitStatus::kDone;
  }
  const Result<Options> options = Options::parse(command.options, command.max_operands, arguments);
  const Result<void> able = options.ok() ? check_files(command, *options) : options.error();
  if (!able.ok() && runs_as_job(command)) {
    return fail_as_job(command.name, transport_in(arguments), able.error(), terminal);
  }
  if (!able.ok()) return able.error();
  return command.run(*options, terminal);
}

Result<ExitStatus> run_table(const std::vector<std::string>& arguments, Terminal& terminal,
                             std::string& prefix) {
  if (arguments.empty()) return Error{"a command is missing; `rrfp --help` lists them"};
  const std::string& first = arguments.front();
  if (first == "--help" || first == "-h" || first == "help") {
    terminal.out << overview();
    return ExitStatus::kDone;
  }
  if (first == "--version") {
    terminal.out << "rrfp " << version_text() << "\n";
    return ExitStatus::kDone;
  }
  for (const Command* command : kCommands) {
    if (command->name != first) continue;
    prefix += " " + first;
    return run_command(*command, {arguments.begin() + 1, arguments.end()}, terminal);
  }
  if (first.starts_with("-")) {
    return Error{"unknown option " + in_quotes(first) + "; allowed before a command: --help, " +
                 "--version"};
  }
  return unknown_command(first);
}

// Which process of a job this is; 0 where nobody says.
int process_of_job() {
  const Result<Launch> launch = find_launch(environment);
  return launch.ok() ? launch->process : 0;
}

// One whose end makes the launcher end the others, and whose errors come out beside theirs.
bool is_of_mpi() {
  const Result<Launch> launch = find_launch(environment);
  return launch.ok() && launch->by != Launch::By::kNobody && launch->by != Launch::By::kTorchrun;
}

// mpirun needs a second or so to end the others.
constexpr std::chrono::seconds kLauncherTime(3);

bool is_first(const std::vector<std::string>& arguments, std::string_view word) {
  return !arguments.empty() && arguments.front() == word;
}

// What every process of a job would print alike.
bool is_for_one_process(const std::vector<std::string>& arguments) {
  return asks_for_help(arguments) || is_first(arguments, "help") ||
         is_first(arguments, "--version");
}

extern "C" void leave_as_wrong(int) { std::_Exit(static_cast<int>(ExitStatus::kWrong)); }

// An error before processes could meet. What all of them find is told once: by
// process 0, upon whose end the launcher ends the others. One that lives on
// speaks of what it alone has found.
void tell_error(const std::string& prefix, const std::string& message, Terminal& terminal) {
  const int process = process_of_job();
  if (process == 0 || !is_of_mpi()) {
    terminal.err << prefix + ": " + message + "\n";
    return;
  }
  std::signal(SIGTERM, leave_as_wrong);
  std::this_thread::sleep_for(kLauncherTime);
  terminal.err << prefix + ": process " + std::to_string(process) + ": " + message + "\n";
}

}  // namespace

std::span<const Command* const> command_table() { return kCommands; }

ExitStatus run_program(const std::vector<std::string>& arguments, Terminal& terminal) {
  if (is_for_one_process(arguments) && process_of_job() > 0) return ExitStatus::kDone;
  std::string prefix = "rrfp";
  const Result<ExitStatus> status =
      without_exceptions([&] { return run_table(arguments, terminal, prefix); });
  if (!status.ok()) {
    tell_error(prefix, status.error().message, terminal);
    return ExitStatus::kWrong;
  }
  if (!terminal.out.flush()) {
    terminal.err << prefix << ": cannot write standard output\n";
    return ExitStatus::kWrong;
  }
  return *status;
}

}  // namespace rrfp
