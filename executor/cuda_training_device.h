// A device that trains on a GPU: tasks are passes of the model's stages, see
// cuda_model_stage.h, on the rank's partition. What CpuDevice is on a CPU.
//
// Tensors between ranks are blocks of the partition that the transport copies
// to another virtual device, or sends to another GPU; what a microbatch keeps between its passes is
// in the rank's arena, which has room for whatever the rank's order and budget let through.
//
// Invariants: those of CudaQueueDevice, and
//  1. What a task computes depends on its inputs and on its stage's weights
//     alone; weight gradients add up in the order in which they are launched.
//     So, with ordered accumulation, equal partitions train to equal bits.
//  2. Memory changes hands once the work that used it has been seen to end.
//  3. Connected processes: every kernel of a pass was used before the first
//     transfer of an iteration, in a pass of the same shape that counts for
//     nothing. The driver may wait for the device where it loads one. The passes
//     are those of warm_up(), one at a time; of an iteration at most one of each
//     stage and microbatch.
//  4. Where something is wrong (a loss that is not a number, a tensor of the
//     wrong size, a lane that is gone) nothing more is computed, and the next
//     call that can says so.
//
// Not thread safe; what devices share is.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "executor/cpu_device.h"
#include "executor/cuda_message.h"
#include "executor/cuda_model_stage.h"
#include "executor/cuda_queue_device.h"
#include "executor/cuda_samples.h"
#include "executor/cuda_stashes.h"

namespace rrfp {

/// For parts of up to `most` numbers.
using LaneGatherMaker = std::function<Result<std::unique_ptr<CudaLaneGather>>(std::size_t most)>;

class CudaTrainingDevice final : public CudaQueueDevice {
 public:
  /// `partitions` holds `partition`, and is kept. `make_gather`: makes what the
  /// rank's lanes gather the parts of their sums by; not used with one lane.
  CudaTrainingDevice(std::shared_ptr<CudaDevicePartitions> partitions, CudaPartition& partition,
                     const Place& place, const CudaSettings& settings,
                     std::shared_ptr<const CpuTraining> training, LaneGatherMaker make_gather);
  ~CudaTrainingDevice() override { drain(); }

  Result<void> begin(const PreparedCase& world, int iteration) override;
  Result<int> warm_up() override;
  Result<void> take_input(TaskId task, int producer, Payload payload) override;
  Result<Payload> output(TaskId task, EdgeId edge) override;
  Result<Payload> gradient(int stage) override;
  Result<Payload> reduce(int stage, std::span<Payload> replicas) override;
  Result<void> take_gradient(int stage, Payload sum) override;
  Result<void> finish_iteration() override;
  std::vector<std::byte> report() override;

 private:
  std::string name_of(TaskId task) const override {
    return to_string(world_->program().task(task));
  }
  bool waits_for_lanes() const override { return lanes_.waits_in_stream(); }
  std::size_t block_bytes(EdgeId edge, int microbatch) const override;
  Result<void> enqueue(TaskId task) override;
  Result<void> finish(TaskId task) override;
  std::int64_t least_length_ns(TaskId task) const override;

  Result<void> make_stages();
  std::optional<std::int64_t> budget_bytes() const;
  Result<void> begin_stashes();
  Result<void> reserve_losses();
  Result<void> enqueue_forward(CudaStage& stage, int microbatch);
  Result<void> enqueue_backward(CudaStage& stage, int microbatch);
  void join(const StageCut& cut, int microbatch, const CudaMatrix& stream);
  void sum_gradients_into(const StageCut& cut, int microbatch, const CudaMatrix& gradient);
  Result<CudaMatrix> hand_on(EdgeId edge, int microbatch, int rows);
  void copy_roots(std::span<const int> roots, const StageCut& of, int microbatch,
                  const CudaMatrix& stream, const CudaMatrix& part);

  void choose_tries();
  Result<void> try_pass(CudaStage& of, int microbatch);

  CudaPass pass(const StageCut& cut, int microbatch, CudaLaneSum& lanes);
  CudaMatrix input(EdgeId edge, int microbatch, int rows) const;
  CudaSample sample(const StageCut& cut, int microbatch) const {
    return samples_.sample(microbatch, cut.root);
  }
  std::span<const int> lengths(int microbatch) const { return samples_.lengths(microbatch); }
  int rows_along(EdgeId edge, int microbatch) const;
  CudaStage& stage(int number) { return *stages_[static_cast<std::size_t>(number)]; }
  std::size_t message(EdgeId edge, int microbatch) const {
    return static_cast<std::size_t>(edge * microbatches_ + microbatch);
  }
  const ModelSpec& spec() const { return training_->spec.model; }

  const std::shared_ptr<const CpuTraining> training_;
  const LaneGatherMaker make_gather_;
  std::unique_ptr<CudaCompute> compute_;
  CudaLaneSum lanes_;
  std::vector<StageCut> cuts_;                      // by stage; all
  std::vector<std::unique_ptr<CudaStage>> stages_;  // by stage; those of this rank
  CudaMemory scratch_;                              // for the longest sequences
  CudaSamples samples_;                             // of this iteration
  CudaStashes stashes_;                             // of this iteration
  std::set<std::vector<int>> tried_;                // shapes of passes: lengths, and the stage
  std::vector<std::pair<int, int>> to_try_;         // stage and microbatch; for warm_up()

  // Of this iteration.
  const PreparedCase* world_ = nullptr;
  int iteration_ = 0;
  int microbatches_ = 0;
  float scale_ = 0;          // of the losses
  CudaPinnedMemory losses_;  // of the last stage, by microbatch
  int loss_capacity_ = 0;
  std::vector<NamedMatrix> trained_;                // after the last step: the weights
  std::vector<std::optional<CudaMessage>> inbox_;   // by message, of what comes in or stays here
  std::vector<std::optional<CudaMessage>> outbox_;  // by message
};

}  // namespace rrfp
