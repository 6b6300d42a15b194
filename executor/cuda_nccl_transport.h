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
#include <optional>

#include "executor/cuda_nccl_connections.h"
#include "executor/transport.h"

namespace rrfp {

class CudaNcclTransport final : public Transport {
 public:
  /// `control` outlives it.
  CudaNcclTransport(std::shared_ptr<CudaNcclConnections> connections, Transport& control)
      : connections_(std::move(connections)), control_(control) {}
  ~CudaNcclTransport() override;

  int endpoint() const override { return control_.endpoint(); }
  int endpoints() const override { return control_.endpoints(); }
  bool shares_clock() const override { return control_.shares_clock(); }
  bool devices_copy() const override { return true; }
  void tell(const Letter& letter) override { control_.tell(letter); }
  void send(const Letter& letter, Payload payload) override;
  bool poll(Delivery& delivery) override;
  void receive(const Letter& announced) override;
  void wait(std::int64_t until_ns) override;
  void wake() override { control_.wake(); }
  bool flushed() override;
  Result<void> status() const override;

 private:
  bool idle() const;
  bool take_received(Delivery& delivery);
  void finish_sends();
  void fail(const Error& error) {
    if (!failure_) failure_ = error;
  }

  const std::shared_ptr<CudaNcclConnections> connections_;
  Transport& control_;
  std::map<int, std::int64_t> announced_to_;    // by endpoint: how many tensors
  std::map<int, std::int64_t> announced_from_;  // and those that came in
  std::optional<Error> failure_;
};

}  // namespace rrfp
