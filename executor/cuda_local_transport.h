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

#include "executor/cuda_carried_transport.h"
#include "executor/cuda_message.h"
#include "executor/cuda_partition.h"

namespace rrfp {

class CudaLocalTransport final : public CudaCarriedTransport {
 public:
  /// `partitions` holds `partition`, the receiver's, and is kept.
  CudaLocalTransport(std::shared_ptr<CudaDevicePartitions> partitions, CudaPartition& partition,
                     Transport& control, std::int64_t look_every_ns)
      : CudaCarriedTransport(control, look_every_ns),
        partitions_(std::move(partitions)),
        partition_(partition) {}
  ~CudaLocalTransport() override;

  void send(const Letter& letter, Payload payload) override {
    control().send(letter, std::move(payload));
  }
  bool poll(Delivery& delivery) override;
  void receive(const Letter& announced) override { control().receive(announced); }
  bool flushed() override { return control().flushed(); }

 private:
  struct Copy {
    Letter letter;
    CudaMessage from;
    CudaMessage to;
    std::int64_t mark = 0;
  };

  bool idle() const override { return copies_.empty(); }
  Result<void> start_copy(const Letter& letter, const CudaMessage& from);
  bool take_copy(Delivery& delivery);

  const std::shared_ptr<CudaDevicePartitions> partitions_;
  CudaPartition& partition_;
  std::deque<Copy> copies_;  // in the order of their marks
};

}  // namespace rrfp
