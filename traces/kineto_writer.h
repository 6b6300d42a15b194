// Writes a trace as the PyTorch profiler would have recorded it: one file per
// rank, so that importers can be tried on jobs whose truth is known.
//
// What a file holds of its rank
//  - ProfilerStep#N for each iteration, and in it, in the order of the GPU,
//    the annotations of tasks, sends, receives and spans. The CPU launches an
//    iteration ahead of the GPU, in no time to speak of.
//  - Each task as kernels, one behind the other; those of a backward are launched by a second
//    thread, as autograd does. Each end of a message and each collective is
//    one NCCL kernel on a stream of its own.
//  - A collective states its process group. An optimizer that waits for its
//    group is nccl:all_reduce, until all have come, and the optimizer.
//  - Times to the nanosecond, as microseconds with three decimals, counted
//    from baseTimeNanoseconds.
//
// Thread safety: one writer, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/native_trace.h"
#include "traces/trace_steps.h"

namespace rrfp {

/// How tasks and messages are named.
enum class KinetoNames : std::uint8_t {
  kTorch,     ///< PP:3F0, PP:3SEND_F0
  kMegatron,  ///< forward_step, backward_step, nccl:send 3->4
};

struct KinetoWriterOptions {
  KinetoNames names = KinetoNames::kTorch;
  bool gzip = false;
  /// The clock of each rank but the first is off by a draw within this.
  std::int64_t clock_skew_ns = 0;
  /// Each rank's base time is this much after that of the rank before it.
  std::int64_t base_shift_ns = 0;
  int cpu_operators = 0;  ///< of each task, that say nothing about the pipeline
  int kernels = 2;        ///< of each task, one behind the other
};

class KinetoWriter {
 public:
  /// Makes the folder where it is absent. The error names it, or what these
  /// names cannot express: stages that form no chain, lanes, and for Megatron
  /// several stages on a rank or a split backward.
  static Result<KinetoWriter> create(const std::string& folder, const TraceHeader& header,
                                     const KinetoWriterOptions& options);

  KinetoWriter(KinetoWriter&&) noexcept;
  KinetoWriter& operator=(KinetoWriter&&) noexcept;
  /// Without finish() no file is left behind.
  ~KinetoWriter();

  /// Iterations in the order in which they ran.
  void add(const TraceStep& step);
  Result<void> finish();

  /// What was added to the clock of that rank of the job.
  std::int64_t clock_offset_ns(int job_rank) const;

 private:
  struct State;
  explicit KinetoWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rrfp
