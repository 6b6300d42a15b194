// The transport between processes that have a GPU each: letters and what is
// host memory go over the control plane; tensors through NCCL, from device to
// device.
//
// The sender announces a tensor by a letter and enqueues its send; the receiver
// enqueues the receive when the announcement has come, in announced order. So
// both ends issue the same operations in the same order for each channel, and a
// receive waits for nothing but the transfer.
//
// Invariants: those of Transport, and
//  1. A block is given back, or handed on, once its transfer was seen to end.
//
// Thread safety: one thread, but for wake().
#pragma once

#include <map>
#include <memory>

#include "executor/cuda_carried_transport.h"
#include "executor/cuda_nccl_connections.h"

namespace rrfp {

class CudaNcclTransport final : public CudaCarriedTransport {
 public:
  /// `control` outlives it.
  CudaNcclTransport(std::shared_ptr<CudaNcclConnections> connections, Transport& control)
      : CudaCarriedTransport(control, connections->look_every_ns()),
        connections_(std::move(connections)) {}
  ~CudaNcclTransport() override;

  void send(const Letter& letter, Payload payload) override;
  bool poll(Delivery& delivery) override;
  void receive(const Letter& announced) override;
  bool flushed() override;

 private:
  bool idle() const override;
  bool take_received(Delivery& delivery);
  void finish_sends();

  const std::shared_ptr<CudaNcclConnections> connections_;
  std::map<int, std::int64_t> announced_to_;    // by endpoint: how many tensors
  std::map<int, std::int64_t> announced_from_;  // and those that came in
};

}  // namespace rrfp
