// What other policies, arrangements and networks would have made of the
// durations that a job recorded.
//
// Each replica of each iteration is a case (sim/replay_case.h); a variant
// changes its policy and network, and nothing else. What stands around the
// pipeline (collectives, optimizer) is kept as recorded, so that a row is the
// time of whole iterations. All variants meet the same durations and
// transfers, a microbatch keeping its own wherever it is arranged.
//
// Memory is counted in activations of a rank (a trace does not know bytes) and
// in messages that were received and not yet used.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/idle_cause.h"
#include "scheduler_core/policy.h"
#include "scheduler_core/result.h"
#include "traces/case.h"
#include "traces/trace_source.h"

namespace rrfp {

inline constexpr std::string_view kRecordedHint = "recorded";

struct WhatIfVariant {
  std::string hint{kRecordedHint};  ///< or the name of a schedule
  int window = 1;
  std::optional<Anticipation> anticipation;
  Arrangement arrangement = Arrangement::kGiven;
  NetworkMode network = NetworkMode::kEager;

  friend bool operator==(const WhatIfVariant&, const WhatIfVariant&) = default;
};

/// "recorded, ready+wait, hill"; the network is not told.
std::string describe(const WhatIfVariant& variant);

/// How many activations a rank may hold.
struct WhatIfBudget {
  enum class Kind : std::uint8_t { kNone, kRecorded, kEven, kSchedule, kNumbers };
  Kind kind = Kind::kRecorded;        ///< what the recorded order comes to, rank by rank;
                                      ///< kEven: on each rank what it comes to on its fullest
  std::string schedule;               ///< as many as this schedule comes to
  std::vector<std::int64_t> numbers;  ///< one for all, or by rank
};

struct WhatIfOptions {
  std::vector<WhatIfVariant> variants;  ///< the first is what others are compared with
  WhatIfBudget budget;
  /// A recorded B counts as I and W where a schedule needs a split backward;
  /// W is this share of it. An assumption: the trace does not say.
  std::optional<double> split_fraction;
  std::int64_t message_ns = 0;  ///< of a transfer in launch-queue mode
};

struct WhatIfRow {
  WhatIfVariant variant;
  std::vector<std::int64_t> step_ns;  ///< by iteration; of a blocked one -1
  int blocked = 0;                    ///< iterations
  std::int64_t peak_activations = 0;  ///< of the rank with the most
  std::int64_t peak_inbox = 0;        ///< messages, likewise
  std::int64_t all_ranks = 0;         ///< activations of all ranks of a replica
  bool split_assumed = false;
  std::string error;  ///< why it could not be run at all; else empty

  bool ran() const { return error.empty() && blocked == 0; }
  double mean_ns() const;
};

/// Where the time of a rank went in the first variant, all iterations and
/// replicas together.
struct WhatIfRank {
  std::int64_t busy_ns = 0;
  IdleTimes idle_ns{};         ///< until the end of its replica's pipeline
  std::int64_t around_ns = 0;  ///< before and after: collectives, optimizer, other replicas
};

struct WhatIf {
  std::vector<WhatIfRow> rows;
  /// By iteration: perfect balance across the replicas (sim/balance_bound.h).
  std::vector<std::int64_t> bound_ns;
  std::vector<std::int64_t> work_bound_ns;  ///< the same without fill and drain
  std::vector<int> iterations;
  std::vector<WhatIfRank> ranks;
  std::string recorded_as;  ///< the schedule that every rank kept to; empty: none that has a name
  DroppedRecords dropped;   ///< iterations that no case could be made of
};

/// Goes through the trace from its beginning, an iteration in memory at a
/// time. The error is that of the file or of a budget, or says that no
/// iteration could be used.
Result<WhatIf> what_if(TraceSource& source, const WhatIfOptions& options);

/// The variants that `rrfp replay --what-if` shows unless asked for others.
std::vector<WhatIfVariant> usual_variants(bool split);

}  // namespace rrfp
