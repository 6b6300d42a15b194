// rrfp models: lists the models and GPUs that `rrfp init` knows by name.
#include <array>
#include <ostream>

#include "experiments/command.h"
#include "experiments/display_units.h"
#include "experiments/text_table.h"
#include "traces/workload_machine.h"
#include "traces/workload_model.h"

namespace rrfp {

namespace {

std::string billions(std::int64_t count) { return fixed(static_cast<double>(count) / 1e9, 2); }

std::string models_text() {
  TextTable table({"model", "layers", "hidden", "heads", "kv", "ffn", "experts", "vocabulary",
                   "language [B]", "vision [B]", "source"});
  for (const ModelShape& model : named_models()) {
    const TransformerShape& shape = model.language;
    const std::string experts = shape.experts == 0 ? "-"
                                                   : std::to_string(shape.experts_per_token) +
                                                         " of " + std::to_string(shape.experts);
    table.add({std::string(model.name), std::to_string(shape.layers), std::to_string(shape.hidden),
               std::to_string(shape.heads), std::to_string(shape.kv_heads),
               std::to_string(shape.ffn), experts, std::to_string(model.vocabulary),
               billions(language_parameters(model)),
               model.vision ? billions(vision_parameters(model)) : "-", std::string(model.source)});
  }
  return table.text();
}

std::string gpus_text() {
  TextTable table({"GPU", "bf16 [TFLOP/s]", "memory [GB]", "memory [TB/s]", "NVLink [GB/s]",
                   "network [Gbit/s]", "source"});
  for (const Gpu& gpu : named_gpus()) {
    table.add({std::string(gpu.name), fixed(gpu.flops / 1e12, 0), fixed(gpu.memory_bytes / 1e9, 0),
               fixed(gpu.memory_bytes_per_second / 1e12, 2),
               fixed(gpu.peer_bytes_per_second / 1e9, 0),
               fixed(gpu.network_bytes_per_second * 8 / 1e9, 0), std::string(gpu.source)});
  }
  return table.text();
}

Result<ExitStatus> run(const Options&, Terminal& terminal) {
  terminal.out << models_text() << "\n" << gpus_text();
  return ExitStatus::kDone;
}

}  // namespace

extern const Command kModelsCommand;
const Command kModelsCommand = {
    "models",
    "lists the models and GPUs that init knows by name",
    "",
    "Parameters are counted from the shape. Links are of one GPU, in one direction.",
    "rrfp models",
    {},
    0,
    run,
};

}  // namespace rrfp
