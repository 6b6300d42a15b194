// Policies x points of a grid x iterations. A piece of work is one iteration
// of one point: its world is drawn once and every policy meets it, so a sweep
// that was cut short still compares all policies on the same worlds.
//
// Invariants
//  1. What a run gives depends on the scenario alone: any number of threads,
//     and any number of interruptions, lead to the same runs.
//  2. An iteration is done for all policies of its point or for none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "executor/calibration.h"
#include "scheduler_core/result.h"
#include "traces/scenario_file.h"

namespace rrfp {

/// One run of one policy in one world.
struct SweepRun {
  bool completed = false;
  std::int64_t iteration_ns = 0;  ///< with gradient synchronisation and optimizer
  std::int64_t busy_ns = 0;       ///< of all ranks of all replicas
  /// Of the rank that comes to the most: its peak of activations and its peak
  /// of the inbox, together and the latter alone.
  std::int64_t peak_bytes = 0;
  std::int64_t peak_inbox_bytes = 0;
  std::int64_t all_ranks_bytes = 0;  ///< the same sum over the ranks of a replica

  friend bool operator==(const SweepRun&, const SweepRun&) = default;
};

/// The runs of one point.
struct SweepPoint {
  std::vector<JsonValue> values;  ///< one per axis
  Scenario scenario;
  std::vector<bool> done;                   ///< [iteration]
  std::vector<std::vector<SweepRun>> runs;  ///< [policy][iteration]

  bool complete() const;
  int iterations_done() const;
};

struct Sweep {
  std::vector<GridAxis> axes;
  std::vector<SweepPoint> points;
  /// Worlds are as this machine would run them.
  std::optional<Calibration> calibration;

  bool complete() const;
};

/// An iteration is held in memory with all its replicas. The error names the
/// numbers that make it larger than what a machine holds.
Result<void> check_iteration_size(const Scenario& scenario);

/// All points of a scenario file, nothing done. `iterations` overrides that of
/// the file where it is above 0.
Result<Sweep> plan_sweep(const JsonDocument& document, int iterations);

struct SweepControl {
  int threads = 1;
  std::function<bool()> interrupted;    ///< asked by all threads between two pieces
  std::function<void()> on_piece_done;  ///< called by all threads
};

/// Iterations not yet done, over all points.
std::size_t pieces_left(const Sweep& sweep);

/// Does what is not done, until it is or `interrupted` says so. The error is
/// that of the first piece that has one, and names its policy.
Result<void> run_sweep(Sweep& sweep, const SweepControl& control);

}  // namespace rrfp
