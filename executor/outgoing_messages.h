// What a worker sends to other ranks during an iteration: activations once they
// have a credit, gradients at once, each along the link that the world gives it.
//
// Invariants
//  1. The world's links decide when a receiver may look at a message: those to one
//     rank transmit one after the other, in the order of sending.
//  2. A credit comes back for a message that was sent, once; any other is an error
//     that names who sent it.
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/iteration_loop.h"

namespace rrfp {

class OutgoingMessages {
 public:
  explicit OutgoingMessages(const LoopContext& context);

  /// `task` has ended: its outputs for other ranks are on the device.
  Result<void> on_finished(TaskId task, std::int64_t end_ns, std::int64_t now_ns);
  /// A receiver has a buffer free again.
  Result<void> take_credit(const Letter& letter, std::int64_t now_ns);

 private:
  Result<void> send_granted(EdgeId edge, std::int64_t now_ns);
  Result<void> send(EdgeId edge, int microbatch, std::int64_t now_ns);
  std::size_t message(EdgeId edge, int microbatch) const {
    return static_cast<std::size_t>(edge * microbatches_ + microbatch);
  }

  LoopContext context_;
  const PreparedCase& world_;
  const Program& program_;
  CoreMachines& machines_;
  const int microbatches_;
  std::vector<std::int64_t> link_free_ns_;  // by destination rank
  std::vector<std::int64_t> end_ns_;        // by TaskId
  std::vector<bool> uses_credit_;           // by message
};

}  // namespace rrfp
