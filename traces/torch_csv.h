// The schedule file of torch.distributed.pipelining: one row per rank, cells
// in the order in which the rank runs them, in either dialect (compute only,
// or compute and communication).
//
//   action  := stage op [microbatch]    op: F | I | B | W | UNSHARD | RESHARD | REDUCE_GRAD
//                                           | SEND_F | RECV_F | SEND_B | RECV_B
//   overlap := "(" action (";" action)* ")" "OVERLAP_F_B"
//
// Invariants of a TorchSchedule that was read:
//  1. A stage stands on one row only, and stages are 0 to S-1 without a gap.
//  2. Every stage has each microbatch 0 to M-1: one F, then one B, or one I
//     and after it one W.
//  3. SEND and RECV name one of these microbatches, each at most once.
//
// An error names file, row, column and cell, and what is allowed. Hostile
// input costs time and memory in proportion to its size, which is limited.
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_core/policy.h"
#include "scheduler_core/program.h"
#include "scheduler_core/result.h"
#include "scheduler_core/schedule.h"
#include "traces/json_reader.h"

namespace rrfp {

enum class TorchOp : std::uint8_t {
  kForward,
  kInputGradient,
  kBackward,
  kWeightGradient,
  kUnshard,
  kReshard,
  kReduceGrad,
  kSendForward,   ///< the activation, to the stage after the named one
  kRecvForward,   ///< the activation, for the named stage
  kSendBackward,  ///< the gradient, to the stage before the named one
  kRecvBackward,  ///< the gradient, for the named stage
};

/// "F", "SEND_F", ...
std::string_view name(TorchOp op);

/// F, I, B or W: what becomes a Task.
constexpr bool is_compute(TorchOp op) { return op <= TorchOp::kWeightGradient; }
/// SEND or RECV.
constexpr bool is_message(TorchOp op) { return op >= TorchOp::kSendForward; }

/// SEND_F and RECV_F move the activation, SEND_B and RECV_B the gradient.
/// REQUIRES: is_message(op).
constexpr bool sends(TorchOp op) {
  return op == TorchOp::kSendForward || op == TorchOp::kSendBackward;
}
TorchOp message_op(bool sends, Kind tensor);

/// One action of a row. Actions of one overlapped cell share their column.
struct TorchAction {
  int stage = 0;
  TorchOp op = TorchOp::kForward;
  bool overlapped = false;  ///< it stands in an OVERLAP_F_B cell
  int microbatch = -1;      ///< -1: none is named (UNSHARD, RESHARD, REDUCE_GRAD)
  int column = 0;           ///< from 0

  friend bool operator==(const TorchAction&, const TorchAction&) = default;
};

/// "3F0", "0SEND_F1", "2UNSHARD".
std::string to_string(const TorchAction& action);
/// Reads what to_string writes; the text must match in full.
Result<TorchAction> parse_torch_action(std::string_view text);

/// What one rank does. A column without an action is an idle slot.
struct TorchRow {
  std::vector<TorchAction> actions;  ///< ascending column
  int columns = 0;                   ///< idle slots at the end included

  friend bool operator==(const TorchRow&, const TorchRow&) = default;
};

struct TorchSchedule {
  std::vector<TorchRow> rows;  ///< [rank]

  friend bool operator==(const TorchSchedule&, const TorchSchedule&) = default;
};

/// In torch B is the whole backward. The zero-bubble papers and their tools
/// write B for the input gradient alone: I here.
enum class BMeans : std::uint8_t { kFull, kInput };

/// "full" or "input".
Result<BMeans> parse_b_means(std::string_view word);

struct TorchCsvOptions {
  BMeans b_means = BMeans::kFull;
  std::size_t limit_bytes = kDefaultFileLimitBytes;
};

/// Reads and checks a schedule (the invariants above). `file` only stands in
/// messages. Lines end in LF or CRLF; empty lines at the end are dropped. With
/// BMeans::kInput every B is read as I, and the file may have no I of its own.
Result<TorchSchedule> parse_torch_csv(std::string_view text, const std::string& file,
                                      const TorchCsvOptions& options = {});
Result<TorchSchedule> read_torch_csv(const std::string& path, const TorchCsvOptions& options = {});

/// REQUIRES: is_message(action.op).
OrderedMessage to_message(const TorchAction& action, int position);

/// The compute actions as an order, and the chain of stages that they imply,
/// placed as the rows say, with split backwards where any I stands.
/// An overlapped pair gives its actions one after the other.
/// REQUIRES: `torch` was read, so its invariants hold.
struct TorchPlan {
  ProgramSpec program;
  Schedule schedule;
  /// The SEND and RECV cells, per rank; empty where the file has none.
  std::vector<std::vector<OrderedMessage>> messages;
};
TorchPlan to_plan(const TorchSchedule& torch);

/// A schedule in the compute-only dialect, without idle slots.
TorchSchedule to_torch(const Schedule& schedule);

/// The text of a file, lines ending in LF. With BMeans::kInput every I is
/// written as B; the error names a B that would then be mistaken for one.
Result<std::string> to_torch_csv(const TorchSchedule& torch, BMeans b_means = BMeans::kFull);

}  // namespace rrfp
