// The devices of the double, as many as RRFP_DOUBLE_DEVICES says. They differ in
// nothing but their numbers: memory and streams are of the one DoubleMachine.
//
// Thread safety: any.
#pragma once

namespace rrfp {

inline constexpr int kDoubleSms = 132;

/// What the calling thread has set; 0 at first, as on hardware.
int current_double_device();

/// A kernel of NCCL, from when it is in a stream to when it has ended. It may
/// wait there for another device, and keeps its own busy all the while.
class DoubleSpinningKernel {
 public:
  explicit DoubleSpinningKernel(int device);
  ~DoubleSpinningKernel();
  DoubleSpinningKernel(const DoubleSpinningKernel&) = delete;
  DoubleSpinningKernel& operator=(const DoubleSpinningKernel&) = delete;

 private:
  const int device_;
};

/// How many there are, of this process.
int spinning_kernels(int device);

}  // namespace rrfp
