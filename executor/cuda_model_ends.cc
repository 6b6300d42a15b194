#include "executor/cuda_model_ends.h"

namespace rrfp {

namespace {

CudaMatrix last_rows(const CudaMatrix& of, int count) {
  return of.middle_rows(of.rows - count, count);
}

}  // namespace

void CudaEmbedding::forward(const CudaPass& pass, const std::uint8_t* tokens) const {
  const CudaMatrix& output = pass.scratch.stream;
  pass.compute.run("launch of an embedding", [&](cudaStream_t on) {
    return launch_embedding(output.shape(), tokens, token_.value.data, position_.value.data,
                            output.data, on);
  });
}

void CudaEmbedding::input_gradient(const CudaPass& pass, const Stash& stash) const {
  pass.compute.copy(pass.scratch.gradient, stash.output_gradient);
}

void CudaEmbedding::weight_gradient(CudaCompute& compute, const std::uint8_t* tokens,
                                    const Stash& stash) const {
  const CudaMatrix& gradient = stash.output_gradient;
  compute.run("launch of the gradient of an embedding", [&](cudaStream_t stream) {
    return launch_embedding_gradient(gradient.shape(), tokens, gradient.data, token_.gradient.data,
                                     position_.gradient.data, stream);
  });
}

CudaHead::Stash CudaHead::lay_out(const ModelSpec& spec, int targets, CudaStashCarvers& carvers) {
  Stash stash;
  stash.norm = CudaLayerNorm::lay_out(spec, targets, carvers);
  stash.input = carvers.until_weight.matrix(targets, spec.width);
  stash.chances = carvers.until_weight.matrix(targets, kTokens);
  return stash;
}

void CudaHead::forward(const CudaPass& pass, const std::uint8_t* targets, const Stash& stash,
                       double* loss) const {
  CudaCompute& compute = pass.compute;
  const int count = stash.input.rows;
  norm_.forward(compute, last_rows(pass.scratch.stream, count), stash.norm, stash.input);
  compute.product(stash.input, out_.value, stash.chances);
  compute.run("launch of a cross entropy", [&](cudaStream_t on) {
    return launch_cross_entropy(stash.chances.shape(), targets, stash.chances.data,
                                pass.scratch.losses, on);
  });
  compute.run("launch of a sum of losses", [&](cudaStream_t on) {
    return launch_sum_losses(count, pass.scratch.losses, loss, on);
  });
}

void CudaHead::input_gradient(const CudaPass& pass, const std::uint8_t* targets, float scale,
                              const Stash& stash) const {
  CudaCompute& compute = pass.compute;
  const CudaMatrix& gradient = pass.scratch.gradient;
  const int count = stash.input.rows;
  compute.run("launch of the gradient of a cross entropy", [&](cudaStream_t on) {
    return launch_cross_entropy_gradient(stash.chances.shape(), targets, scale, stash.chances.data,
                                         on);
  });
  // Rows without a target have no gradient, and the layer norm adds to the others.
  compute.run("cudaMemsetAsync", [&](cudaStream_t on) {
    return cudaMemsetAsync(gradient.data, 0, gradient.bytes(), on);
  });
  const CudaMatrix part = pass.scratch.part.middle_rows(0, count);
  compute.product_by_transposed(stash.chances, out_.value, part);
  norm_.input_gradient(compute, part, stash.norm, last_rows(gradient, count));
}

void CudaHead::weight_gradient(CudaCompute& compute, const Stash& stash) const {
  norm_.weight_gradient(compute, stash.norm);
  compute.add_transposed_product(stash.input, stash.chances, out_.gradient);
}

}  // namespace rrfp
