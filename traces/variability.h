// What varies from run to run, as models that a scenario lists. A model says
// what it acts on, over what one draw is shared, when it holds, and what the
// draw is distributed as. Presets and fits are lists of these.
//
// Everything is in base units: ns, bytes, factors. Thread safety: values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler_core/task.h"
#include "traces/distribution.h"

namespace rrfp {

/// Over what one draw is shared.
enum class ComputeScope : std::uint8_t {
  kOperation,   ///< each F, B, I and W of each stage and microbatch
  kMicrobatch,  ///< one factor for all tasks of a microbatch
  kRank,        ///< one factor for all tasks of a rank in an iteration
};

/// Durations times a lognormal factor of mean 1.
struct LognormalCompute {
  ComputeScope scope = ComputeScope::kOperation;
  double cv = 0;       ///< standard deviation over mean
  bool known = false;  ///< known beforehand: it is in expected_ns

  friend bool operator==(const LognormalCompute&, const LognormalCompute&) = default;
};

/// Each message's latency times a lognormal factor of mean 1.
struct LognormalLatency {
  double cv = 0;

  friend bool operator==(const LognormalLatency&, const LognormalLatency&) = default;
};

/// Now and then a message takes longer.
struct LatencySpikes {
  double probability = 0;
  std::int64_t extra_ns = 0;

  friend bool operator==(const LatencySpikes&, const LatencySpikes&) = default;
};

/// Where a model comes from, so that every output can name it.
struct ModelOrigin {
  std::string preset;     ///< its name; empty: written by hand
  bool modelled = false;  ///< no public measurement stands behind it

  friend bool operator==(const ModelOrigin&, const ModelOrigin&) = default;
};

/// What a model acts on.
enum class DrawTarget : std::uint8_t {
  kCompute,    ///< durations of tasks
  kLatency,    ///< latencies of messages
  kTransfer,   ///< factors only: on transmission and latency of messages
  kBandwidth,  ///< factors only: of the network's bytes per second
  kInput,      ///< extra times only: when microbatches are there to be read
};

bool is_on_messages(DrawTarget target);

enum class DrawEffect : std::uint8_t {
  kFactor,  ///< times the draw
  kExtra,   ///< plus the draw, ns
  kHold,    ///< of messages, in episodes: nothing passes before the episode ends
};

/// Over what one draw is shared. Microbatches, stages and links belong to one
/// replica of the pipeline unless it says otherwise.
enum class DrawScope : std::uint8_t {
  kOperation,   ///< one task; where kinds have distributions of their own, all tasks of one stage
                ///< and microbatch
  kMessage,     ///< one message of one lane
  kMicrobatch,  ///< all tasks or messages of a microbatch
  kStage,       ///< a stage, in all replicas
  kRank,        ///< a rank, in all replicas
  kGpu,         ///< a rank of one replica
  kLink,        ///< a directed pair of ranks
  kReplica,     ///< a replica
  kIteration,   ///< everything
};

/// Both ends are included.
struct IterationRange {
  int first = 0;
  std::optional<int> last;  ///< empty: to the end

  friend bool operator==(const IterationRange&, const IterationRange&) = default;
};

/// Of ranks.
struct Link {
  int from = 0;
  int to = 0;

  friend auto operator<=>(const Link&, const Link&) = default;
};

/// To what a model is confined. An empty list: to nothing, all are meant.
struct Selection {
  std::vector<Kind> kinds;  ///< "B" stands for I and W as well where the backward is split
  std::vector<int> stages;
  std::vector<int> ranks;
  std::vector<int> replicas;
  std::vector<Link> links;
  IterationRange iterations;
  bool first_of_iteration = false;  ///< each rank's forward of microbatch 0 on its lowest stage

  friend bool operator==(const Selection&, const Selection&) = default;
};

/// Holds in one iteration of about `every`, each `spread` apart from that at
/// most: iteration phase + k * every + jitter. Garbage collection is such.
struct RepeatedSteps {
  int every = 1;
  int spread = 0;
  bool same = true;  ///< all draws of the scope at the same steps; false: phases of their own

  friend bool operator==(const RepeatedSteps&, const RepeatedSteps&) = default;
};

enum class EpisodeElement : std::uint8_t { kAll, kRank, kGpu, kLinkPair };

/// Holds in episodes in time: quiet (off), then an episode (on), over and over;
/// after a number of cycles a longer rest. A draw of the model holds for one
/// episode. See time_axis.h for what time is.
struct Episodes {
  Distribution on_ns;
  Distribution off_ns;
  /// Cycles until a rest, both ends included; 0: no rests.
  int least_cycles = 0;
  int most_cycles = 0;
  Distribution rest_ns;
  /// Of these elements, among those selected, as many are hit in one episode.
  EpisodeElement element = EpisodeElement::kAll;
  int least_hit = 1;
  int most_hit = 1;

  friend bool operator==(const Episodes&, const Episodes&) = default;
};

using DrawTiming = std::variant<std::monostate, RepeatedSteps, Episodes>;

/// The general model: a factor or an extra time, drawn once for each element of
/// `scope` and iteration (or episode).
struct DrawModel {
  DrawTarget target = DrawTarget::kCompute;
  DrawEffect effect = DrawEffect::kFactor;
  DrawScope scope = DrawScope::kOperation;
  /// kRank, kGpu: so many neighbouring ranks share a draw (a host, a switch).
  int group = 1;
  bool is_static = false;  ///< drawn once for the job, not for each iteration
  Selection selection;
  DrawTiming timing;
  /// With what probability there is a draw at all; else nothing happens.
  double probability = 1;
  /// Of all tasks or messages; unless by_kind is given.
  Distribution distribution;
  /// By Kind, all taken at the same uniform draw, so that they are comonotone.
  /// Kinds without one are left alone, but I and W follow B.
  std::array<std::optional<Distribution>, 4> by_kind;
  /// Known to schedulers beforehand: expected times have the draw in them.
  /// Otherwise they have the mean in the long run, over the iterations selected.
  bool known = false;
  ModelOrigin origin;

  bool has_kinds() const { return by_kind[0] || by_kind[1] || by_kind[2] || by_kind[3]; }

  friend bool operator==(const DrawModel&, const DrawModel&) = default;
};

/// A factor constant + linear * L + quadratic * Q on some tasks.
struct LengthCost {
  std::vector<Kind> kinds;  ///< empty: all; "B" as in Selection
  std::vector<int> stages;  ///< empty: all
  double constant = 0;
  double linear = 0;
  double quadratic = 0;

  friend bool operator==(const LengthCost&, const LengthCost&) = default;
};

/// Lengths of the sequences in each microbatch, drawn per microbatch and shared
/// by all stages. With u = `unit` and lengths s of one microbatch, L is the sum
/// of s / u and Q the sum of (s / u)^2: attention is the quadratic part.
struct MicrobatchLengths {
  Distribution length;
  double unit = 1;
  /// Sequences of a microbatch; 0: as many as fill `unit`, the last one cut, so
  /// that L is 1 (packing).
  int samples = 1;
  /// The first that fits a task counts; others are left alone.
  std::vector<LengthCost> costs;
  bool messages = false;  ///< bytes of messages times L
  bool known = true;
  ModelOrigin origin;

  friend bool operator==(const MicrobatchLengths&, const MicrobatchLengths&) = default;
};

/// A factor 1 + amplitude * sin(2 pi (t / period + phase)) on all durations.
struct ComputeWave {
  double amplitude = 0;
  std::int64_t period_ns = 1;
  double phase = 0;  ///< in periods
  bool known = false;
  ModelOrigin origin;

  friend bool operator==(const ComputeWave&, const ComputeWave&) = default;
};

/// One entry of "variability". Adding a model adds an alternative here, a branch
/// to variability_reader.cc and variability_writer.cc, and a class to
/// variability_draws.cc.
using VariabilityModel = std::variant<LognormalCompute, LognormalLatency, LatencySpikes, DrawModel,
                                      MicrobatchLengths, ComputeWave>;

/// Whether it changes how long messages take.
bool acts_on_messages(const VariabilityModel& model);

/// The model's origin; null for one that can have none.
const ModelOrigin* origin_of(const VariabilityModel& model);

}  // namespace rrfp
