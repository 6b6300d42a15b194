// What a pass of the model works with besides its stage: the stream, the sum
// over lanes, and scratch memory for what does not outlive the pass.
//
// A stream does one pass after the other, so one scratch is enough for a rank.
//
// Thread safety: one thread.
#pragma once

#include "executor/cuda_carver.h"
#include "executor/cuda_lane_sum.h"
#include "executor/model_spec.h"

namespace rrfp {

struct CudaScratch {
  CudaMatrix stream;            ///< what passes by the blocks, forward
  CudaMatrix gradient;          ///< and backward
  CudaMatrix part;              ///< what a layer adds to it
  CudaMatrix context_gradient;  ///< of attention
  float* scores = nullptr;      ///< of attention: the gradient of each head's
  float* losses = nullptr;      ///< by row

  static CudaScratch lay_out(const ModelSpec& spec, int rows, CudaCarver& carver) {
    const int lane_heads = spec.heads / spec.lanes;
    CudaScratch scratch;
    scratch.stream = carver.matrix(rows, spec.width);
    scratch.gradient = carver.matrix(rows, spec.width);
    scratch.part = carver.matrix(rows, spec.width);
    scratch.context_gradient = carver.matrix(rows, spec.width / spec.lanes);
    scratch.scores = carver.matrix(lane_heads * rows, rows).data;
    scratch.losses = carver.numbers(rows);
    return scratch;
  }
};

struct CudaPass {
  CudaCompute& compute;
  CudaLaneSum& lanes;
  CudaScratch scratch;  ///< for as many rows as the pass has
};

}  // namespace rrfp
