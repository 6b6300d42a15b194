// A training run of a pipeline: from a model, a text and a pipeline to the plan
// of a run with cpu devices, and from what the run tells to losses and weights.
//
//   Result<TrainingRun> run = prepare_training(setup, text, case_of);
//   Result<RunOutcome> outcome = job.run(run->prepared, run->devices(exchange_of), run->sink);
//   run->sink->result();                      // losses and weights
//   train_serially(run->training->spec, ...)  // what they have to be
//
// Thread safety: as noted.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/cpu_device.h"
#include "executor/run_setup.h"
#include "executor/threads_run.h"
#include "executor/training_case.h"

namespace rrfp {

struct TrainingSetup {
  TrainingSpec spec;  ///< its model's lanes and longest are taken from elsewhere
  int steps = 1;
  int replicas = 1;
  bool paced = false;  ///< see CpuTraining
  TrainingFootprint footprint;
};

/// Collects losses and weights at endpoint 0, hands every iteration on, and
/// holds the run to two promises: copies of a weight (of replicas and lanes)
/// are equal bit for bit, and no rank held more bytes than its scheduler knew.
class TrainingSink final : public IterationSink {
 public:
  /// `next`: may be null. `on_loss(step, loss)`: may be empty.
  TrainingSink(std::shared_ptr<const RunPlan> plan, std::shared_ptr<const CpuTraining> training)
      : plan_(std::move(plan)), training_(std::move(training)) {}

  void set_next(std::shared_ptr<IterationSink> next) { next_ = std::move(next); }
  void set_on_loss(std::function<void(int step, Real loss)> on_loss) {
    on_loss_ = std::move(on_loss);
  }

  Result<void> on_iteration(IterationRecord record) override;
  /// Weights are there once the last step is.
  const Training& result() const { return result_; }
  /// The most that the stashes of a rank and lane have held.
  std::int64_t most_stash_bytes() const { return most_stash_bytes_; }

 private:
  Result<void> take(const WorkerRecord& worker, std::vector<Real>& losses);

  std::shared_ptr<const RunPlan> plan_;
  std::shared_ptr<const CpuTraining> training_;
  std::shared_ptr<IterationSink> next_;
  std::function<void(int, Real)> on_loss_;
  Training result_;
  std::int64_t most_stash_bytes_ = 0;
};

/// The collective of a place's lanes, see Job::lane_exchange.
using ExchangeOf = std::function<std::shared_ptr<LaneExchange>(const Place& place)>;

struct TrainingRun {
  PreparedRun prepared;
  std::shared_ptr<const CpuTraining> training;
  std::shared_ptr<TrainingSink> sink;
  /// As the plan arranges its microbatches: for train_serially.
  Arrangements arrangements;

  const RunPlan& plan() const { return *prepared.plan; }
  const Program& program() const { return plan().world(0, 0).program(); }
  DeviceMaker devices(const ExchangeOf& exchange_of) const;
};

/// The pipeline of one step and replica; all have the same program.
using CaseOf = std::function<Result<Case>(int step, int replica)>;

/// The error says what cannot be run or trained.
Result<TrainingRun> prepare_training(const TrainingSetup& setup, std::string text,
                                     const CaseOf& case_of);

/// A number for all weights: equal weights have equal digests.
std::uint64_t digest(const std::map<std::string, Matrix>& weights);

}  // namespace rrfp
