// Where the variance of durations comes from: how much of it is shared by a
// microbatch, a device, a replica, an iteration, and how much is left.
//
// Model, for column a (a kind on a stage, on rank k), iteration i, replica r and
// microbatch m, of durations relative to the mean of their column:
//
//   y = (1 + iteration_i) (1 + replica_r) (1 + gpu_kr)
//       (1 + replica-iteration_ir) (1 + gpu-iteration_kir)
//       (1 + load_a z_irm) (1 + own_a w_irm) (1 + residual_airm)
//
// where z is common to all tasks of a microbatch, w to those of one kind.
//
// The scale is linear, not logarithmic. What a microbatch costs is a constant
// plus a multiple of its length, with constants and multiples of their own by
// kind and stage: affine in one z, which logarithms would bend. And a critical
// path adds up times, so it is the variance of times that shares should tell.
//
// Estimates
//  - Effects of devices, replicas and iterations: analysis of variance of the
//    balanced design, on the mean of all ranks and on each rank's difference
//    from it. Expected mean squares are solved from the inside out, so that what
//    microbatches add to the mean of a replica is not taken for the replica's.
//    An effect whose F test does not reject 0 at kSignificance is left out.
//  - load_a, at least 0: one common factor of the covariances between columns
//    within replicas (minimum residuals, Harman and Jones 1966); own_a: the same
//    of what that leaves, for each kind; residual: the rest.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "experiments/duration_table.h"
#include "scheduler_core/result.h"

namespace rrfp {

inline constexpr double kSignificance = 0.05;
/// Of common factors: of chance alone, the fit of their loads makes a mess.
inline constexpr double kFactorSignificance = 0.001;

enum class VarianceSource : std::uint8_t {
  kIteration,         ///< all durations of an iteration
  kReplica,           ///< of a replica, throughout
  kReplicaIteration,  ///< of a replica in an iteration
  kGpu,               ///< of a rank of a replica, throughout
  kGpuIteration,      ///< of a rank of a replica in an iteration
};
inline constexpr int kVarianceSources = 5;
inline constexpr std::array<std::string_view, kVarianceSources> kVarianceSourceNames = {
    "iteration", "replica", "replica in iteration", "gpu", "gpu in iteration"};

struct EffectEstimate {
  bool estimable = false;  ///< the trace has two or more of what it is over
  double p_value = 1;      ///< of as much, if there were no such effect
  double variance = 0;     ///< unbiased, at least 0; 0 where it is left out
  /// What share of the observed deviations is the effect's; the rest is what
  /// averages over few draws come to.
  double reliability = 0;
  /// As observed: [iteration], [replica], [iteration][replica], [rank][replica],
  /// [rank][iteration][replica], the last index fastest.
  std::vector<double> deviations;

  bool significant() const { return variance > 0; }
  /// The best guess of each: deviations times reliability.
  std::vector<double> best() const;
  /// With the effect's own variance, to draw from.
  std::vector<double> to_draw_from() const;
};

/// What the tasks of a microbatch have in common.
struct CommonFactor {
  double p_value = 1;          ///< of as much, if there were no such factor
  std::vector<double> load;    ///< by column: its standard deviation there
  std::vector<double> scores;  ///< by row, mean 0 and variance 1; empty: there is no factor

  bool found() const { return !scores.empty(); }
};

struct VarianceComponents {
  std::vector<int> ranks;  ///< that have tasks: [rank] in deviations is an index into these
  std::array<EffectEstimate, kVarianceSources> effects;
  CommonFactor microbatch;            ///< of all kinds and stages
  std::vector<CommonFactor> of_kind;  ///< by kind, in order of Kind: besides, of that kind alone

  // By column.
  std::vector<double> mean_ns;
  std::vector<double> variance;                ///< of durations relative to their mean
  std::vector<double> residual_variance;       ///< of its factor
  std::vector<std::vector<double>> residuals;  ///< deviations, by row, of that variance
  /// By stage, of F and B (or I) of one microbatch, beyond what it has in common;
  /// 0 where a stage has no backward.
  std::vector<double> residual_correlation;

  const EffectEstimate& effect(VarianceSource which) const {
    return effects[static_cast<std::size_t>(which)];
  }
};

/// The error says how many iterations or microbatches are needed. A column of
/// zeros varies by nothing.
Result<VarianceComponents> decompose_variance(const DurationTable& durations);

}  // namespace rrfp
