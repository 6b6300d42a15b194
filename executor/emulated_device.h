// A device whose tasks take their length in real time and compute nothing.
//
// A task starts when the host sees that it may, and ends when the host sees
// that its length has passed; a host that looks late makes it longer, as a
// launch queue that runs dry would. Nothing is dated back.
//
// With lanes a task contains a collective: it lasts its length from the moment
// at which the last lane has started it.
//
// Payloads are filled with a pattern and checked when they arrive.
//
// Not thread safe.
#pragma once

#include <vector>

#include "executor/device.h"

namespace rrfp {

class EmulatedDevice final : public Device {
 public:
  /// A message carries at most `payload_limit` bytes for real; its full size
  /// counts in the emulated network all the same.
  EmulatedDevice(int lanes, std::size_t payload_limit)
      : lanes_(lanes), payload_limit_(payload_limit) {}

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
  Result<void> finish_iteration() override { return {}; }

 private:
  struct Held {
    TaskId task = kNoTask;
    std::int64_t not_before_ns = 0;
  };

  Payload pattern(EdgeId edge, int microbatch) const;

  const int lanes_;
  const std::size_t payload_limit_;
  const PreparedCase* world_ = nullptr;
  int iteration_ = 0;
  std::vector<Held> queue_;  // of this iteration; from head_ on it is held
  std::size_t head_ = 0;
  bool running_ = false;          // the head has started
  bool group_started_ = false;    // and so it has on all lanes
  std::int64_t deadline_ns_ = 0;  // its end, where group_started_
};

}  // namespace rrfp
