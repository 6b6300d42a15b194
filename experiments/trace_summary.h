// What a recorded job holds, counted in one pass and in memory that does not
// grow with the number of its iterations.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "sim/median_count.h"
#include "traces/trace_source.h"

namespace rrfp {

/// Lengths of one kind of record.
class LengthSummary {
 public:
  void add(std::int64_t ns);
  std::int64_t count() const { return count_; }
  double mean_ns() const;
  /// The nearest-rank percentile: exact up to kExact lengths, above that to a
  /// relative 1/4096. REQUIRES: 0 < percent <= 100.
  std::int64_t percentile_ns(int percent) const;

 private:
  static constexpr std::size_t kExact = 1000;

  std::int64_t count_ = 0;
  std::int64_t sum_ns_ = 0;
  std::vector<std::int64_t> exact_;  ///< the first kExact
  MedianCount lengths_;
};

/// Where the time of a rank's devices went, all iterations together.
struct RankSummary {
  std::int64_t tasks_ns = 0;
  std::int64_t spans_ns = 0;  ///< outside tasks
  std::int64_t gaps_ns = 0;   ///< neither: from the start of the iteration to its end
  std::int64_t longest_gap_ns = 0;
};

struct TraceSummary {
  std::int64_t iterations = 0;
  int first_iteration = 0;
  int last_iteration = 0;
  bool ascending = true;
  LengthSummary iteration;  ///< as measured
  std::int64_t tasks = 0;
  std::int64_t messages = 0;
  std::int64_t spans = 0;
  std::map<std::string, LengthSummary> task_kinds;  ///< "F", "B", ...
  std::map<std::string, LengthSummary> transfers;   ///< "F", "B": done - match at the receiver
  std::map<std::string, LengthSummary> span_names;
  std::map<std::string, std::int64_t> collectives;  ///< spans by name that wait for others
  std::vector<RankSummary> ranks;
  std::int64_t longest_overlap_ns = 0;  ///< of two records on one device
  /// What is well formed and yet odd; nothing of it is left out.
  DroppedRecords oddities;
};

/// Reads `source` from where it stands to its end.
Result<TraceSummary> summarize_trace(TraceSource& source);

}  // namespace rrfp
