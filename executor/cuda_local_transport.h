// The transport between virtual devices of one GPU in one process: letters go
// over a transport between threads, which is the control plane, and a tensor is
// copied on the device, by the receiver, from the sender's block to one of its
// own.
//
// A copy is enqueued when its announcement has been accepted, in announced
// order, and by then its producer has been seen to end: it waits for nothing.
// The message has come once the copy is seen to be done; then the sender's
// block is given back.
//
// Invariants: those of Transport.
//
// Thread safety: as of Transport.
#pragma once

#include <deque>
#include <memory>
#include <optional>

#include "executor/cuda_message.h"
#include "executor/cuda_partition.h"
#include "executor/transport.h"

namespace rrfp {

class CudaLocalTransport final : public Transport {
 public:
  /// `partitions` holds `partition`, the receiver's, and is kept.
  CudaLocalTransport(std::shared_ptr<CudaDevicePartitions> partitions, CudaPartition& partition,
                     Transport& control, std::int64_t look_every_ns)
      : partitions_(std::move(partitions)),
        partition_(partition),
        control_(control),
        look_every_ns_(look_every_ns) {}
  ~CudaLocalTransport() override;

  int endpoint() const override { return control_.endpoint(); }
  int endpoints() const override { return control_.endpoints(); }
  bool shares_clock() const override { return control_.shares_clock(); }
  bool devices_copy() const override { return true; }
  void tell(const Letter& letter) override { control_.tell(letter); }
  void send(const Letter& letter, Payload payload) override {
    control_.send(letter, std::move(payload));
  }
  bool poll(Delivery& delivery) override;
  void receive(const Letter& announced) override { control_.receive(announced); }
  void wait(std::int64_t until_ns) override;
  void wake() override { control_.wake(); }
  bool flushed() override { return control_.flushed(); }
  Result<void> status() const override;

 private:
  struct Copy {
    Letter letter;
    CudaMessage from;
    CudaMessage to;
    std::int64_t mark = 0;
  };

  Result<void> start_copy(const Letter& letter, const CudaMessage& from);
  bool take_copy(Delivery& delivery);

  const std::shared_ptr<CudaDevicePartitions> partitions_;
  CudaPartition& partition_;
  Transport& control_;
  const std::int64_t look_every_ns_;
  std::deque<Copy> copies_;  // in the order of their marks
  std::optional<Error> failure_;
};

}  // namespace rrfp
