// One recorded iteration of all replicas as a graph that can be run again with
// other durations: the recorded order, what depends on what, and who waits for
// whom. Launch delay is left out: everything starts as soon as it can.
//
//  - The tasks and spans of a rank run one after another, as recorded.
//  - A task waits for the receives of its inputs, a send for its task; sends
//    of one kind follow each other on a rank, and so do receives.
//  - The two ends of a message, and the spans of a collective, start together
//    when the last of them can. Each then takes its own time.
//  - Recorded time: of a task or a span of its own, its length; of one that
//    waits for others, end - latest start among them, at least 0.
//
// Thread safety: immutable after create(); share freely.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/native_trace.h"
#include "traces/trace_steps.h"

namespace rrfp {

/// Names for what operations are, shared by the steps of a trace.
class ReplayTypes {
 public:
  // The types that every trace has; spans follow, by name.
  static constexpr int kTasks = 0;     ///< + Kind: F, B, I, W
  static constexpr int kMessages = 4;  ///< F send, F receive, B send, B receive

  ReplayTypes();

  int size() const { return static_cast<int>(names_.size()); }
  const std::string& name(int type) const { return names_[static_cast<std::size_t>(type)]; }
  int span_type(const std::string& name);

 private:
  std::vector<std::string> names_;
  std::map<std::string, int> spans_;
};

struct ReplayOperation {
  int type = 0;
  int replica = 0;
  int stage = 0;       ///< of a span: the lowest stage of its rank
  bool waits = false;  ///< for others: a message or a collective
  std::int64_t recorded_ns = 0;
};

class ReplayStep {
 public:
  /// The error names the iteration whose recorded order contradicts itself.
  static Result<ReplayStep> create(const TraceHeader& header, const TraceStep& step,
                                   ReplayTypes* types);

  int iteration() const { return iteration_; }
  /// From the origin of the iteration to the latest recorded end.
  std::int64_t measured_ns() const { return measured_ns_; }
  std::span<const ReplayOperation> operations() const { return operations_; }

  /// The end of the last operation when they take `duration_ns`, by index of
  /// operations(). `end_ns`, of the same size, receives every end unless empty.
  std::int64_t run(std::span<const std::int64_t> duration_ns,
                   std::span<std::int64_t> end_ns = {}) const;

 private:
  friend class ReplayStepBuilder;

  int iteration_ = 0;
  std::int64_t measured_ns_ = 0;
  // Operations stand in an order in which all that one waits for is before it;
  // those that start together stand together.
  std::vector<ReplayOperation> operations_;
  std::vector<int> unit_ends_;         ///< end of each run of operations that start together
  std::vector<int> predecessors_;      ///< flattened
  std::vector<int> predecessor_ends_;  ///< by operation, into predecessors_
};

}  // namespace rrfp
