#include "executor/cuda_model_attention.h"

#include <cmath>

namespace rrfp {

namespace {

// Which part of what is projected.
constexpr int kQueries = 0;
constexpr int kKeys = 1;
constexpr int kValues = 2;

}  // namespace

CudaAttention::CudaAttention(const ModelSpec& spec, bool causal, CudaParameterCursor& weights)
    : causal_(causal),
      head_width_(spec.width / spec.heads),
      lane_heads_(spec.heads / spec.lanes),
      lane_width_(spec.width / spec.lanes),
      in_(weights.next()),
      in_bias_(weights.next()),
      out_(weights.next()),
      out_bias_(weights.next()) {}

CudaAttention::Stash CudaAttention::lay_out(const ModelSpec& spec, int rows,
                                            CudaStashCarvers& carvers) {
  const int lane_width = spec.width / spec.lanes;
  Stash stash;
  stash.input = carvers.until_weight.matrix(rows, spec.width);
  stash.projected = carvers.until_input.matrix(rows, 3 * lane_width);
  stash.weights = carvers.until_input.matrix(spec.heads / spec.lanes * rows, rows).data;
  stash.context = carvers.until_weight.matrix(rows, lane_width);
  stash.output_gradient = carvers.until_weight.matrix(rows, spec.width);
  stash.projected_gradient = carvers.until_weight.matrix(rows, 3 * lane_width);
  return stash;
}

// The heads of a part, side by side.
CudaMatrices CudaAttention::heads(const CudaMatrix& of, int part) const {
  return {of.middle_columns(part * lane_width_, head_width_), head_width_};
}

// The scores or weights of the heads, one behind the other.
CudaMatrices CudaAttention::squares(float* of, int rows) const {
  return {CudaMatrix::dense(of, rows, rows), static_cast<std::ptrdiff_t>(rows) * rows};
}

void CudaAttention::forward(const CudaPass& pass, const Stash& stash,
                            const CudaMatrix& stream) const {
  CudaCompute& compute = pass.compute;
  const int rows = stash.input.rows;
  const float scale = 1 / std::sqrt(static_cast<float>(head_width_));
  compute.product(stash.input, in_.value, stash.projected);
  compute.run("launch of a bias", [&](cudaStream_t on) {
    return launch_add_bias(stash.projected.shape(), in_bias_.value.data, stash.projected.data, on);
  });
  const CudaMatrices weights = squares(stash.weights, rows);
  compute.products_by_transposed(lane_heads_, scale, heads(stash.projected, kQueries),
                                 heads(stash.projected, kKeys), weights);
  compute.run("launch of a softmax", [&](cudaStream_t on) {
    return launch_softmax(lane_heads_, rows, causal_, stash.weights, on);
  });
  compute.products(lane_heads_, weights, heads(stash.projected, kValues), heads(stash.context, 0));
  const CudaMatrix& part = pass.scratch.part;
  compute.product(stash.context, out_.value, part);
  pass.lanes.sum(compute, part);
  compute.run("launch of a sum with a bias", [&](cudaStream_t on) {
    return launch_add_with_bias(stream.shape(), part.data, out_bias_.value.data, stream.data, on);
  });
}

void CudaAttention::input_gradient(const CudaPass& pass, const CudaMatrix& output_gradient,
                                   const Stash& stash) const {
  CudaCompute& compute = pass.compute;
  const int rows = stash.input.rows;
  const float scale = 1 / std::sqrt(static_cast<float>(head_width_));
  const CudaMatrices context_gradient = heads(pass.scratch.context_gradient, 0);
  const CudaMatrices scores = squares(pass.scratch.scores, rows);
  compute.copy(output_gradient, stash.output_gradient);
  compute.product_by_transposed(output_gradient, out_.value, pass.scratch.context_gradient);
  compute.products_by_transposed(lane_heads_, 1, context_gradient, heads(stash.projected, kValues),
                                 scores);
  compute.run("launch of the gradient of a softmax", [&](cudaStream_t on) {
    return launch_softmax_gradient(lane_heads_, rows, scale, stash.weights, pass.scratch.scores,
                                   on);
  });
  compute.products(lane_heads_, scores, heads(stash.projected, kKeys),
                   heads(stash.projected_gradient, kQueries));
  compute.transposed_products(lane_heads_, scores, heads(stash.projected, kQueries),
                              heads(stash.projected_gradient, kKeys));
  compute.transposed_products(lane_heads_, squares(stash.weights, rows), context_gradient,
                              heads(stash.projected_gradient, kValues));
  compute.product_by_transposed(stash.projected_gradient, in_.value, pass.scratch.part);
  pass.lanes.sum(compute, pass.scratch.part);
}

void CudaAttention::weight_gradient(CudaCompute& compute, const Stash& stash) const {
  const auto add_rows = [&](const CudaMatrix& of, const CudaParameter& bias) {
    compute.run("launch of a sum of rows", [&](cudaStream_t stream) {
      return launch_add_rows(of.shape(), of.data, bias.gradient.data, stream);
    });
  };
  compute.add_transposed_product(stash.input, stash.projected_gradient, in_.gradient);
  add_rows(stash.projected_gradient, in_bias_);
  compute.add_transposed_product(stash.context, stash.output_gradient, out_.gradient);
  add_rows(stash.output_gradient, out_bias_);
}

}  // namespace rrfp
