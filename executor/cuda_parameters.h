// The weights of a stage on a device, with their gradients and the optimizer's
// velocities: three pieces of memory, in which the weights stand in the order
// of a ParameterList, so that a step is one kernel.
//
// They are drawn in double precision, as those of the CPU's model, and rounded.
//
// Thread safety: none; they belong to one worker.
#pragma once

#include <string>
#include <vector>

#include "executor/cuda_compute.h"
#include "executor/model_optimizer.h"
#include "executor/model_parameter.h"
#include "executor/training_report.h"

namespace rrfp {

struct CudaParameter {
  CudaMatrix value;
  CudaMatrix gradient;
};

class CudaParameters {
 public:
  /// Returns once they are on the device.
  static Result<CudaParameters> create(const ParameterList& parameters, CudaCompute& compute);

  const std::vector<CudaParameter>& list() const { return list_; }
  /// Enqueues a step; gradients are 0 behind it.
  void take_step(const OptimizerSpec& spec, CudaCompute& compute) const;
  void clear_gradients(CudaCompute& compute) const;

  /// As they are once all that is enqueued has been done, which is waited for.
  Result<std::vector<NamedMatrix>> values(CudaCompute& compute) const;
  Result<std::vector<NamedMatrix>> gradients(CudaCompute& compute) const;
  /// All gradients in one piece, in the form of gather_gradients, and back.
  Result<Payload> gather(CudaCompute& compute) const;
  Result<void> scatter(const Payload& payload, CudaCompute& compute) const;

 private:
  Result<void> fetch(const CudaMemory& from, CudaCompute& compute) const;
  std::vector<NamedMatrix> named() const;
  const float* staged(const CudaMatrix& of, const CudaMemory& in) const;

  std::size_t count_ = 0;  // of numbers, gaps included
  CudaMemory values_;
  CudaMemory gradients_;
  CudaMemory velocities_;
  CudaPinnedMemory staging_;  // as large as one of them
  std::vector<std::string> names_;
  std::vector<CudaParameter> list_;
};

/// Hands parameters to layers, in their order.
class CudaParameterCursor {
 public:
  explicit CudaParameterCursor(const CudaParameters& of) : next_(of.list().begin()) {}
  CudaParameter next() { return *next_++; }

 private:
  std::vector<CudaParameter>::const_iterator next_;
};

}  // namespace rrfp
