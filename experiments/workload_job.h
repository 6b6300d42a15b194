// A training job as a person describes it on the command line of `rrfp init`:
// a model by name or a measured profile, what it runs on, and how it is spread.
//
// Thread safety: pure functions but for the profile that is read.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "experiments/options.h"
#include "experiments/variability_option.h"
#include "traces/workload.h"

namespace rrfp {

/// How the lengths of sequences differ from microbatch to microbatch.
enum class LengthKind : std::uint8_t {
  kNone,
  kLongTail,  ///< each sequence a share of the longest, Beta(.257, 1.067): a production job's
  kFile,      ///< lengths of a file, packed one after the other
  kImages,    ///< the number of images: often none, seldom all
};

struct Lengths {
  LengthKind kind = LengthKind::kNone;
  std::string file;
  std::string column;  ///< empty: the file has one
};

struct WorkloadJob {
  std::string command;  ///< that makes the same scenario again
  std::string title;    ///< "Llama 3 8B"
  std::string source;   ///< of the shape, or the path of the profile
  bool profiled = false;
  MicrobatchShape batch;          ///< of a model, at its longest
  std::int64_t image_tokens = 0;  ///< of one image
  Lengths lengths;
  Machine machine;
  WorkloadRequest request;
  Workload workload;
  int microbatches = 1;
  int iterations = 1;
  double latency_us = 0;
  double network_gbit = 0;      ///< of one GPU
  bool ignores_memory = false;  ///< GPUs that it does not fit have no limit
  /// Worlds to compare in, each a list of presets; empty: one that is assumed.
  Worlds worlds;
};

/// The options that only such a job has, as rows for the table of a command.
inline constexpr std::array kWorkloadOptions = {
    OptionRow{"model", "NAME", "a model by name (`rrfp models` lists them)"},
    OptionRow{"layer-profile", "FILE", "or a layer graph as PipeDream's profiler writes it"},
    OptionRow{"gpu", "NAME", "a100, a100-40gb, h100 or h200 (default h100)"},
    OptionRow{"efficiency", "X", "of the GPU's bf16 peak while it computes (default 0.5)"},
    OptionRow{"tp", "T", "tensor-parallel size up to 8, with sequence parallelism (default 1)"},
    OptionRow{"dp", "D", "data-parallel replicas (default 1)"},
    OptionRow{"virtual-pipeline", "V", "stages per rank, interleaved (default 1)"},
    OptionRow{"micro-batch-size", "B", "sequences of a microbatch (default 1)"},
    OptionRow{"seq-length", "S", "tokens of a sequence, its images included (default 4096)"},
    OptionRow{"attention", "WORD", "flash, or full: the score matrix is kept (default flash)"},
    OptionRow{"ignore-memory", "", "write a job that does not fit, without limits on memory"},
    OptionRow{"layout", "WORD", "even, balanced, or as Megatron-LM: 'Et*3|(tt|)*2tL'"},
    OptionRow{"gradients", "WORD", "fp32 (18 bytes of state per parameter) or bf16 (16)"},
    OptionRow{"use-distributed-optimizer", "", "replicas share the optimizer's state"},
    OptionRow{"images", "N", "images of a sequence, for a model with an encoder (default 0)"},
    OptionRow{"image-size", "PIXELS", "side of an image (default 448)"},
    OptionRow{"encoder", "WORD", "chain: stages before the language model's; side-by-side: copies"},
    OptionRow{"encoder-ranks", "N", "ranks of the encoder (default 1; balanced: where it falls)"},
    OptionRow{"frozen", "WORD,...", "not trained: encoder, language"},
    OptionRow{"lengths", "WORD",
              "tokens differ: longtail, up to --seq-length; or FILE[:COLUMN], packed"},
    OptionRow{"image-counts", "WORD", "burst: images differ, from none to --images (modelled)"},
    OptionRow{"network-gbit", "G", "network of one GPU, Gbit/s (default: the GPU's usual)"},
    OptionRow{"weight-share", "X", "of a profile's backward, the weight gradient (default 0.5)"},
    OptionRow{"iterations", "N", "worlds that every policy meets (default 20)"},
};

/// Whether the command line describes such a job. Otherwise the error names an
/// option that only such a job has.
Result<bool> describes_workload(const Options& options);

/// The error names the option. REQUIRES: describes_workload(options) is true; the
/// options are those of `command`, "rrfp init", whose rows are `rows`.
Result<WorkloadJob> read_workload_job(const Options& options, std::span<const OptionRow> rows);

}  // namespace rrfp
