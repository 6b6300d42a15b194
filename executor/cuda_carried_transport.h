// What the transports that move tensors from device to device have in common:
// letters, and what is memory of the host, go over another one, the control
// plane; and a failure of their own comes before what that one says.
//
// Thread safety: as of Transport.
#pragma once

#include <algorithm>
#include <optional>

#include "executor/clock.h"
#include "executor/transport.h"

namespace rrfp {

class CudaCarriedTransport : public Transport {
 public:
  int endpoint() const override { return control_.endpoint(); }
  int endpoints() const override { return control_.endpoints(); }
  bool shares_clock() const override { return control_.shares_clock(); }
  bool devices_copy() const override { return true; }
  void tell(const Letter& letter) override { control_.tell(letter); }
  void wait(std::int64_t until_ns) override {
    // What a device does wakes nobody.
    if (!idle()) until_ns = std::min(until_ns, MonotonicClock::read_ns() + look_every_ns_);
    control_.wait(until_ns);
  }
  void wake() override { control_.wake(); }
  Result<void> status() const override {
    if (failure_) return *failure_;
    return control_.status();
  }

 protected:
  /// `control` outlives it.
  CudaCarriedTransport(Transport& control, std::int64_t look_every_ns)
      : control_(control), look_every_ns_(look_every_ns) {}

  Transport& control() { return control_; }
  bool failed() const { return failure_.has_value(); }
  /// The first is kept.
  void fail(const Error& error) {
    if (!failure_) failure_ = error;
  }

 private:
  /// No tensor is on its way.
  virtual bool idle() const = 0;

  Transport& control_;
  const std::int64_t look_every_ns_;
  std::optional<Error> failure_;
};

}  // namespace rrfp
