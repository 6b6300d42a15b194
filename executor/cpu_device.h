// A device that trains: its tasks are the passes of the model's stages, on the
// worker's own thread, and payloads are their tensors.
//
// Invariants
//  1. What a task computes depends on its inputs and on its stage's weights
//     alone; weight gradients add up in the order in which they are launched.
//  2. A start is reported before the work, an end at the first look after it,
//     so that whatever hangs on an instant sees the real one.
//  3. Where something is wrong (a loss that is not a number, a tensor of the
//     wrong shape, a lane that is gone) nothing more is computed, and the next
//     call that can says so.
//
// With lanes, tasks contain all-reduces, and a lane waits in them for the
// others; so it begins a task only once all lanes have started it.
//
// Not thread safe; what devices share is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/device.h"
#include "executor/exchange_lane_sum.h"
#include "executor/grid.h"
#include "executor/model_stage.h"
#include "executor/training_serial.h"

namespace rrfp {

/// What all devices of a training run are told. Immutable.
struct CpuTraining {
  TrainingSpec spec;
  TrainingData data;
  Grid grid;
  int steps = 0;
  /// A task takes at least its length in the case, so that a world with slow
  /// ranks and jitter can be staged around a small model.
  bool paced = false;
};

class CpuDevice final : public Device {
 public:
  /// `exchange`: of the rank's lanes; not used with one lane.
  CpuDevice(std::shared_ptr<const CpuTraining> training, const Place& place,
            std::shared_ptr<LaneExchange> exchange);

  Result<void> begin(const PreparedCase& world, int iteration) override;
  Result<void> take_input(TaskId task, int producer, Payload payload) override;
  void launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) override;
  std::optional<DeviceEvent> poll(std::int64_t now_ns) override;
  std::int64_t next_event_ns() const override;
  bool busy() const override { return next_event_ns() != kNever; }
  void on_group_start(TaskId task, std::int64_t start_ns) override;
  Result<Payload> output(TaskId task, EdgeId edge) override;
  Result<Payload> gradient(int stage) override;
  Result<Payload> reduce(int stage, std::span<Payload> replicas) override;
  Result<void> take_gradient(int stage, Payload sum) override;
  Result<void> finish_iteration() override;
  void stop() override { together_.leave(); }
  std::vector<std::byte> report() override;

 private:
  struct Held {
    TaskId task = kNoTask;
    std::int64_t not_before_ns = 0;
  };
  enum class State : std::uint8_t { kWaiting, kStarted, kComputed };

  Result<void> make_stages();
  void compute(TaskId task);
  Result<void> run(TaskId task);
  Result<void> run_forward(Stage& stage, int microbatch);
  Result<void> run_backward(Stage& stage, int microbatch);
  std::vector<Matrix> take_inputs(int stage, Kind kind, int microbatch);
  void hand_on(EdgeId edge, int microbatch, Matrix tensor);
  void count_stashes();

  Stage& stage(int number) { return *stages_[static_cast<std::size_t>(number)]; }
  Stage::Stash& stash(int stage, int microbatch) {
    return stashes_[static_cast<std::size_t>(stage * microbatches_ + microbatch)];
  }
  std::size_t message(EdgeId edge, int microbatch) const {
    return static_cast<std::size_t>(edge * microbatches_ + microbatch);
  }

  const std::shared_ptr<const CpuTraining> training_;
  const Place place_;
  HeldLaneSum alone_;
  ExchangeLaneSum together_;
  LaneSum& lanes_;                            // one of the two
  std::vector<std::optional<Stage>> stages_;  // by stage; those of this rank
  std::vector<StageCut> cuts_;

  // Of this iteration.
  const PreparedCase* world_ = nullptr;
  int iteration_ = 0;
  int microbatches_ = 0;
  Real scale_ = 0;               // of the losses
  std::vector<Sample> samples_;  // by position
  std::vector<Stage::Stash> stashes_;
  std::vector<Matrix> inbox_;    // by message, of what comes in or stays here
  std::vector<Payload> outbox_;  // by message
  std::vector<Real> losses_;     // of the last stage, by microbatch
  std::int64_t peak_stash_bytes_ = 0;
  std::optional<Error> failure_;

  std::vector<Held> queue_;
  std::size_t head_ = 0;
  State state_ = State::kWaiting;
  bool group_started_ = false;
  std::int64_t start_ns_ = 0;
  std::int64_t not_done_before_ns_ = 0;
};

}  // namespace rrfp
