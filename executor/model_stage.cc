#include "executor/model_stage.h"

namespace rrfp {

std::int64_t Stage::Stash::bytes() const {
  std::int64_t bytes = embedding.bytes() + head.bytes();
  for (const Block::Stash& block : blocks) bytes += block.bytes();
  return bytes;
}

Stage::Stage(const ModelSpec& spec, const StageCut& cut, const HeldLanes& held) : cut_(cut) {
  if (cut.root >= 0) embedding_.emplace(spec, cut.root);
  for (int block = cut.first_block; block < cut.first_block + cut.blocks; ++block) {
    blocks_.emplace_back(spec, block, held, cut.causal);
  }
  if (cut.last) head_.emplace(spec);
}

Result<Matrix> Stage::forward(const Sample& sample, std::span<const Matrix> activations,
                              LaneSum& lanes, Stash& stash) const {
  Matrix stream;
  if (embedding_) {
    stream =
        embedding_->forward(sample.tokens[static_cast<std::size_t>(cut_.root)], stash.embedding);
  } else {
    Result<Matrix> joined = join(cut_, sample.lengths, activations);
    if (!joined.ok()) return joined;
    stream = std::move(*joined);
  }
  stash.rows = stream.rows();
  stash.blocks.resize(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    stream = blocks_[i].forward(stream, lanes, stash.blocks[i]);
  }
  if (head_) stash.loss = head_->forward(stream, sample.targets, stash.head);
  return stream;
}

Result<Matrix> Stage::input_gradient(std::span<const Matrix> gradients, Real scale, LaneSum& lanes,
                                     Stash& stash) const {
  Matrix gradient;
  if (head_) gradient = head_->input_gradient(scale, stash.head);
  for (const Matrix& part : gradients) {
    if (part.rows() != stash.rows) {
      return Error{"stage " + std::to_string(cut_.stage) + ": a gradient has " +
                   std::to_string(part.rows()) + " rows, not " + std::to_string(stash.rows)};
    }
    if (gradient.size() == 0) {
      gradient = part;
    } else {
      gradient += part;
    }
  }
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    gradient = blocks_[i].input_gradient(gradient, lanes, stash.blocks[i]);
  }
  if (embedding_) embedding_->input_gradient(gradient, stash.embedding);
  return gradient;
}

void Stage::weight_gradient(Stash& stash) {
  if (embedding_) embedding_->weight_gradient(stash.embedding);
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].weight_gradient(stash.blocks[i]);
  if (head_) head_->weight_gradient(stash.head);
  stash = {};
}

std::int64_t Stage::forward_bytes(std::span<const int> lengths) const {
  const int rows = rows_of(cut_.roots, lengths);
  std::int64_t bytes = embedding_ ? embedding_->forward_bytes(rows) : 0;
  for (const Block& block : blocks_) bytes += block.forward_bytes(rows);
  if (head_) bytes += head_->forward_bytes(lengths[0]);
  return bytes;
}

std::int64_t Stage::weight_bytes(std::span<const int> lengths) const {
  const int rows = rows_of(cut_.roots, lengths);
  std::int64_t bytes = embedding_ ? embedding_->weight_bytes(rows) : 0;
  for (const Block& block : blocks_) bytes += block.weight_bytes(rows);
  if (head_) bytes += head_->weight_bytes(lengths[0]);
  return bytes;
}

ParameterList Stage::parameters() {
  ParameterList list;
  if (embedding_) embedding_->list(list);
  for (Block& block : blocks_) block.list(list);
  if (head_) head_->list(list);
  return list;
}

}  // namespace rrfp
