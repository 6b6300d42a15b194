// The native trace (rrfp.trace/1): what a job did, one record a line. All
// importers write it and all analyses read it.
//
// JSON Lines, plain or compressed with gzip or zstd:
//   line 1   the header, an object (TraceHeader)
//   then     one array per record; its first element is the record's type, the
//            others stand in the order of header.columns[type]
//   last     ["end", number of records so far]; a file without it was cut.
//            Where the header says "checkpoints", the file grew while the job
//            ran: such a line stands behind every iteration, and what stands
//            behind the last one was being written when the job was ended
//
// Invariants of a trace
//  1. Times are int64 ns. Those of one iteration share one origin; with
//     `origin` "iteration" it is the start of that iteration, with "trace" it
//     is the same throughout.
//  2. The records of an iteration stand together, so that one iteration in
//     memory is enough.
//  3. Clocks: time as recorded = true time + offset + drift * true time, within
//     error, per process. Times in records are already corrected.
//
// Thread safety: plain data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler_core/program.h"
#include "scheduler_core/task.h"

namespace rrfp {

inline constexpr std::string_view kTraceSchema = "rrfp.trace/1";

struct ProcessClock {
  int process = 0;
  std::int64_t offset_ns = 0;
  std::int64_t drift_ppb = 0;
  std::int64_t error_ns = 0;
};

struct TraceHeader {
  explicit TraceHeader(Program of_one_replica) : program(std::move(of_one_replica)) {}

  std::string name;
  std::string origin = "iteration";  ///< or "trace"
  Program program;                   ///< of one replica
  int replicas = 1;
  int lanes = 1;
  bool checkpoints = false;                                   ///< see above
  std::vector<ProcessClock> clocks;                           ///< empty: one shared clock
  std::vector<std::pair<std::string, std::string>> versions;  ///< what recorded it
};

struct TraceTask {
  int iteration = 0;
  int replica = 0;
  int rank = 0;
  int lane = 0;
  Task task;
  std::int64_t ready_ns = 0;    ///< its last input was there; as start where not recorded
  std::int64_t decided_ns = 0;  ///< as start where not recorded
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  friend bool operator==(const TraceTask&, const TraceTask&) = default;
};

/// One end of a message.
struct MessageTimes {
  std::int64_t post_ns = 0;
  std::int64_t match_ns = 0;  ///< both ends have posted; their later post where not recorded
  std::int64_t done_ns = 0;

  friend bool operator==(const MessageTimes&, const MessageTimes&) = default;
};

/// An activation (kForward) or a gradient (kBackward).
struct TraceMessage {
  int iteration = 0;
  int replica = 0;
  int lane = 0;
  Kind kind = Kind::kForward;
  int from_stage = 0;
  int to_stage = 0;
  int microbatch = 0;
  std::int64_t bytes = 0;     ///< 0: not recorded
  std::int64_t sequence = 0;  ///< of its edge; the microbatch where not recorded
  MessageTimes send;
  MessageTimes receive;

  friend bool operator==(const TraceMessage&, const TraceMessage&) = default;
};

/// Anything else that holds a rank: collectives, optimizer, garbage
/// collection. Spans of one iteration with equal name and (not empty) group
/// are one collective: none ends before all have started.
struct TraceSpan {
  int iteration = 0;
  int replica = 0;
  int rank = 0;
  int lane = 0;
  std::string name;
  std::string group;  ///< empty: its own
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  friend bool operator==(const TraceSpan&, const TraceSpan&) = default;
};

/// A start notice of anticipation: that message is expected.
struct TraceNotice {
  int iteration = 0;
  int replica = 0;
  Kind kind = Kind::kForward;  ///< of the message, as its stages and microbatch
  int from_stage = 0;
  int to_stage = 0;
  int microbatch = 0;
  std::int64_t sent_ns = 0;
  std::int64_t seen_ns = 0;  ///< by the rank that will get the message
  std::int64_t eta_ns = 0;

  friend bool operator==(const TraceNotice&, const TraceNotice&) = default;
};

/// A receive buffer of an activation's edge is free again: the microbatch that
/// was in it has been decided.
struct TraceCredit {
  int iteration = 0;
  int replica = 0;
  int lane = 0;
  int from_stage = 0;  ///< of the edge: the credit goes the other way
  int to_stage = 0;
  int microbatch = 0;
  std::int64_t sent_ns = 0;
  std::int64_t seen_ns = 0;  ///< by the sender of activations

  friend bool operator==(const TraceCredit&, const TraceCredit&) = default;
};

using TraceRecord = std::variant<TraceTask, TraceMessage, TraceSpan, TraceNotice, TraceCredit>;

/// What was left out and why. Bounded: one line per reason.
struct DroppedRecords {
  struct Reason {
    std::string reason;
    std::int64_t count = 0;
    std::string first;  ///< where, e.g. "line 17"
  };

  void add(const std::string& reason, const std::string& where, std::int64_t times = 1);
  void add(const DroppedRecords& others);
  std::int64_t total() const;

  std::vector<Reason> reasons;  ///< in order of first appearance
};

}  // namespace rrfp
