// One rank's (and lane's) iteration with blocking batched send and receive, as
// fixed-order pipeline runtimes do it: between consecutive tasks it posts the
// sends of the one's outputs and the receives of the next one's inputs
// together, and waits for all of them. The honest baseline.
//
// The receiver tells the sender that its receive is posted; the transfer
// starts when both ends have posted it and ends, for both, when the world's
// busy time and latency have passed.
//
// Every lane follows the fixed order by itself, with a scheduler of its own.
//
// Not thread safe.
#pragma once

#include <vector>

#include "executor/gradient_sync.h"
#include "executor/iteration_loop.h"

namespace rrfp {

class RendezvousLoop final : public IterationLoop {
 public:
  explicit RendezvousLoop(const LoopContext& context);

  Result<void> on_letter(const Letter& letter, Payload payload, std::int64_t now_ns) override;
  Result<bool> step(std::int64_t now_ns) override;
  std::int64_t next_ns() const override;
  bool finished() const override;
  bool quiet() const override;
  TaskId next_task() const override { return task_at(position_ + 1); }
  bool just_started(TaskId task) override {
    if (task == kNoTask || just_started_ != task) return false;
    just_started_ = kNoTask;
    return true;
  }
  std::string waiting(std::int64_t now_ns) const override;
  WorkerRecord take_record() override;

 private:
  enum class State : std::uint8_t { kBefore, kPhase, kWaiting, kRunning, kAfter };
  struct Transfer {
    EdgeId edge = 0;
    int microbatch = 0;
    bool send = false;
    bool started = false;          // sends: both ends have posted it
    std::int64_t end_ns = kNever;  // sends: when it is over
    bool done = false;
  };

  Result<void> post_phase(std::int64_t now_ns);
  Result<void> start_transfer(Transfer& transfer, std::int64_t now_ns);
  bool peer_posted(const Transfer& transfer) const {
    return peer_posted_ns_[message(transfer.edge, transfer.microbatch)] >= 0;
  }
  void end_phase(std::int64_t now_ns);
  void decide(std::int64_t now_ns);
  Result<void> on_device(const DeviceEvent& event, std::int64_t now_ns);
  TaskId task_at(int position) const;
  std::span<const EdgeId> inputs_of(TaskId task) const;
  std::size_t message(EdgeId edge, int microbatch) const {
    return static_cast<std::size_t>(edge * microbatches_ + microbatch);
  }
  int peer(int rank) const {
    return context_.grid.endpoint({context_.place.replica, rank, context_.place.lane});
  }

  LoopContext context_;
  const PreparedCase& world_;
  const Program& program_;
  CoreMachines& machines_;
  const int microbatches_;

  State state_ = State::kBefore;
  int position_ = -1;  // of the running or last task
  std::vector<Transfer> phase_;
  std::int64_t posted_ns_ = 0;                // of this phase
  std::vector<std::int64_t> peer_posted_ns_;  // by message; -1: not yet
  std::span<const RootInput> roots_;
  std::size_t next_root_ = 0;
  std::int64_t decided_ns_ = 0;
  std::int64_t ready_ns_ = 0;
  GradientSync sync_;
  TaskId just_started_ = kNoTask;
  WorkerRecord record_;
};

}  // namespace rrfp
