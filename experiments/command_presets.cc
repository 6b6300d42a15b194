// rrfp presets: the library of what varies, with parameters and sources.
#include <array>
#include <ostream>

#include "experiments/command.h"
#include "experiments/preset_report.h"
#include "traces/json_writer.h"

namespace rrfp {

namespace {

constexpr std::array kOptions = {
    OptionRow{"json", "", "print what programs read"},
};

Result<ExitStatus> run(const Options& options, Terminal& terminal) {
  const bool json = options.flag("json");
  if (options.operands().empty()) {
    if (json) {
      terminal.out << to_text(presets_to_json(), JsonLayout::kReadable) << "\n";
    } else {
      terminal.out << list_presets();
    }
    return ExitStatus::kDone;
  }
  const Result<const Preset*> preset = named_preset(options.operands().front());
  if (!preset.ok()) return preset.error();
  if (json) {
    terminal.out << to_text(preset_to_json(**preset), JsonLayout::kReadable) << "\n";
  } else {
    terminal.out << describe_preset(**preset);
  }
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kPresetsCommand;
const Command kPresetsCommand = {
    "presets",
    "lists named, sourced descriptions of what varies; with a name, one in full",
    "[NAME]",
    "A preset stands in a scenario's \"variability\": \"healthy-dedicated\", or with parameters\n"
    "{\"preset\": \"slow-worker\", \"rank\": 3}. It is short for the models that NAME shows.",
    "rrfp presets slow-worker",
    kOptions,
    1,
    run,
};

}  // namespace rrfp
