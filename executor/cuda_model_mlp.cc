#include "executor/cuda_model_mlp.h"

namespace rrfp {

CudaMlp::Stash CudaMlp::lay_out(const ModelSpec& spec, int rows, CudaStashCarvers& carvers) {
  const int lane_width = spec.mlp_width / spec.lanes;
  Stash stash;
  stash.input = carvers.until_weight.matrix(rows, spec.width);
  stash.hidden = carvers.until_input.matrix(rows, lane_width);
  stash.active = carvers.until_weight.matrix(rows, lane_width);
  stash.output_gradient = carvers.until_weight.matrix(rows, spec.width);
  stash.hidden_gradient = carvers.until_weight.matrix(rows, lane_width);
  return stash;
}

void CudaMlp::forward(const CudaPass& pass, const Stash& stash, const CudaMatrix& stream) const {
  CudaCompute& compute = pass.compute;
  const CudaMatrix& part = pass.scratch.part;
  compute.product(stash.input, in_.value, stash.hidden);
  compute.run("launch of an activation", [&](cudaStream_t on) {
    return launch_activation(stash.hidden.shape(), in_bias_.value.data, stash.hidden.data,
                             stash.active.data, on);
  });
  compute.product(stash.active, out_.value, part);
  pass.lanes.sum(compute, part);
  compute.run("launch of a sum with a bias", [&](cudaStream_t on) {
    return launch_add_with_bias(stream.shape(), part.data, out_bias_.value.data, stream.data, on);
  });
}

void CudaMlp::input_gradient(const CudaPass& pass, const CudaMatrix& output_gradient,
                             const Stash& stash) const {
  CudaCompute& compute = pass.compute;
  compute.copy(output_gradient, stash.output_gradient);
  compute.product_by_transposed(output_gradient, out_.value, stash.hidden_gradient);
  compute.run("launch of the gradient of an activation", [&](cudaStream_t on) {
    return launch_activation_gradient(stash.hidden.size(), stash.hidden.data,
                                      stash.hidden_gradient.data, on);
  });
  compute.product_by_transposed(stash.hidden_gradient, in_.value, pass.scratch.part);
  pass.lanes.sum(compute, pass.scratch.part);
}

void CudaMlp::weight_gradient(CudaCompute& compute, const Stash& stash) const {
  const auto add_rows = [&](const CudaMatrix& of, const CudaParameter& bias) {
    compute.run("launch of a sum of rows", [&](cudaStream_t stream) {
      return launch_add_rows(of.shape(), of.data, bias.gradient.data, stream);
    });
  };
  compute.add_transposed_product(stash.input, stash.hidden_gradient, in_.gradient);
  add_rows(stash.hidden_gradient, in_bias_);
  compute.add_transposed_product(stash.active, stash.output_gradient, out_.gradient);
  add_rows(stash.output_gradient, out_bias_);
}

}  // namespace rrfp
