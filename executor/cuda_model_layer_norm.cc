#include "executor/cuda_model_layer_norm.h"

namespace rrfp {

CudaLayerNorm::Stash CudaLayerNorm::lay_out(const ModelSpec& spec, int rows,
                                            CudaStashCarvers& carvers) {
  Stash stash;
  stash.forward.normalized = carvers.until_input.matrix(rows, spec.width).data;
  stash.forward.inverse_deviation = carvers.until_input.numbers(rows);
  stash.gain_gradient = carvers.until_weight.numbers(spec.width);
  stash.bias_gradient = carvers.until_weight.numbers(spec.width);
  return stash;
}

void CudaLayerNorm::forward(CudaCompute& compute, const CudaMatrix& input, const Stash& stash,
                            const CudaMatrix& output) const {
  compute.run("launch of a layer norm", [&](cudaStream_t stream) {
    return launch_layer_norm(input.shape(), input.data, gain_.value.data, bias_.value.data,
                             stash.forward, output.data, stream);
  });
}

void CudaLayerNorm::input_gradient(CudaCompute& compute, const CudaMatrix& output_gradient,
                                   const Stash& stash, const CudaMatrix& gradient) const {
  compute.run("launch of the gradient of a layer norm", [&](cudaStream_t stream) {
    return launch_layer_norm_gradient(output_gradient.shape(), output_gradient.data,
                                      gain_.value.data, stash.forward, gradient.data, stream);
  });
  compute.run("launch of the weight gradient of a layer norm", [&](cudaStream_t stream) {
    return launch_layer_norm_weight_gradient(output_gradient.shape(), output_gradient.data,
                                             stash.forward.normalized, stash.gain_gradient,
                                             stash.bias_gradient, stream);
  });
}

void CudaLayerNorm::weight_gradient(CudaCompute& compute, const Stash& stash) const {
  const auto add = [&](const float* from, const CudaParameter& to) {
    compute.run("launch of a sum", [&](cudaStream_t stream) {
      return launch_add(to.gradient.size(), from, to.gradient.data, stream);
    });
  };
  add(stash.gain_gradient, gain_);
  add(stash.bias_gradient, bias_);
}

}  // namespace rrfp
