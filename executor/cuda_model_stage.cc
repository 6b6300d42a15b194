#include "executor/cuda_model_stage.h"

#include "executor/model_stage.h"

namespace rrfp {

Result<std::unique_ptr<CudaStage>> CudaStage::create(const ModelSpec& spec, const StageCut& cut,
                                                     int lane, CudaCompute& compute) {
  std::unique_ptr<CudaStage> made(new CudaStage(cut));
  Stage drawn(spec, cut, HeldLanes{lane, 1});
  Result<CudaParameters> parameters = CudaParameters::create(drawn.parameters(), compute);
  if (!parameters.ok()) return parameters.error();
  made->parameters_ = std::move(*parameters);
  made->make_layers(spec);
  return made;
}

void CudaStage::make_layers(const ModelSpec& spec) {
  CudaParameterCursor weights(parameters_);
  if (cut_.root >= 0) embedding_.emplace(weights);
  for (int block = 0; block < cut_.blocks; ++block) {
    blocks_.emplace_back(spec, cut_.causal, weights);
  }
  if (cut_.last) head_.emplace(weights);
}

CudaStage::Stash CudaStage::lay_out(const ModelSpec& spec, const StageCut& cut,
                                    std::span<const int> lengths, CudaStashCarvers& carvers) {
  const int rows = rows_of(cut.roots, lengths);
  Stash stash;
  if (cut.root >= 0) stash.embedding = CudaEmbedding::lay_out(spec, rows, carvers);
  for (int block = 0; block < cut.blocks; ++block) {
    stash.blocks.push_back(CudaBlock::lay_out(spec, rows, carvers));
  }
  if (cut.last) stash.head = CudaHead::lay_out(spec, lengths[0], carvers);
  return stash;
}

void CudaStage::forward(const CudaPass& pass, const CudaSample& sample, const Stash& stash,
                        double* loss) const {
  if (embedding_) embedding_->forward(pass, sample.tokens);
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].forward(pass, stash.blocks[i]);
  if (head_) head_->forward(pass, sample.targets, stash.head, loss);
}

void CudaStage::input_gradient(const CudaPass& pass, const CudaSample& sample, float scale,
                               const Stash& stash) const {
  if (head_) head_->input_gradient(pass, sample.targets, scale, stash.head);
  for (std::size_t i = blocks_.size(); i-- > 0;) blocks_[i].input_gradient(pass, stash.blocks[i]);
  if (embedding_) embedding_->input_gradient(pass, stash.embedding);
}

void CudaStage::weight_gradient(CudaCompute& compute, const CudaSample& sample,
                                const Stash& stash) const {
  if (embedding_) embedding_->weight_gradient(compute, sample.tokens, stash.embedding);
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    blocks_[i].weight_gradient(compute, stash.blocks[i]);
  }
  if (head_) head_->weight_gradient(compute, stash.head);
}

StashBytes cuda_stash_bytes(const ModelSpec& spec, const StageCut& cut,
                            std::span<const int> lengths) {
  CudaStashCarvers carvers;
  static_cast<void>(CudaStage::lay_out(spec, cut, lengths, carvers));
  const auto until_input = static_cast<std::int64_t>(carvers.until_input.bytes());
  const auto until_weight = static_cast<std::int64_t>(carvers.until_weight.bytes());
  return {until_input + until_weight, until_weight};
}

}  // namespace rrfp
