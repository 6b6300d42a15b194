#include "executor/model_attention.h"

#include <algorithm>
#include <cmath>

namespace rrfp {

namespace {

// Softmax of the first `seen` numbers of each row; the others become 0.
template <typename Seen>
void soften(Matrix& scores, const Seen& seen) {
  for (Eigen::Index row = 0; row < scores.rows(); ++row) {
    const Eigen::Index count = seen(row);
    Real most = scores(row, 0);
    for (Eigen::Index i = 1; i < count; ++i) most = std::max(most, scores(row, i));
    Real sum = 0;
    for (Eigen::Index i = 0; i < count; ++i) {
      scores(row, i) = std::exp(scores(row, i) - most);
      sum += scores(row, i);
    }
    for (Eigen::Index i = 0; i < count; ++i) scores(row, i) /= sum;
    for (Eigen::Index i = count; i < scores.cols(); ++i) scores(row, i) = 0;
  }
}

// From the gradient of the weights to that of the scores, in place:
// ds = w (dw - sum(dw w)).
void soften_gradient(const Matrix& weights, Matrix& gradient) {
  for (Eigen::Index row = 0; row < weights.rows(); ++row) {
    Real along = 0;
    for (Eigen::Index i = 0; i < weights.cols(); ++i) along += gradient(row, i) * weights(row, i);
    for (Eigen::Index i = 0; i < weights.cols(); ++i) {
      gradient(row, i) = weights(row, i) * (gradient(row, i) - along);
    }
  }
}

}  // namespace

std::int64_t Attention::Stash::bytes() const {
  std::int64_t bytes = bytes_of(input) + bytes_of(output_gradient);
  for (const Lane& lane : lanes) {
    bytes += bytes_of(lane.projected) + bytes_of(lane.context) + bytes_of(lane.projected_gradient);
    for (const Matrix& weights : lane.weights) bytes += bytes_of(weights);
  }
  return bytes;
}

Attention::Attention(const ModelSpec& spec, int block, const HeldLanes& held, bool causal)
    : causal_(causal),
      width_(spec.width),
      head_width_(spec.width / spec.heads),
      lane_heads_(spec.heads / spec.lanes),
      lane_width_(spec.width / spec.lanes) {
  const std::string name = "block " + std::to_string(block) + " attention";
  const Real deviation = 1 / std::sqrt(static_cast<Real>(width_));
  // The more blocks add to the stream, the less each does at first.
  const Real out_deviation = deviation / std::sqrt(2 * static_cast<Real>(spec.blocks));
  const WeightKind kinds[] = {WeightKind::kQuery, WeightKind::kKey, WeightKind::kValue};
  for (int lane = held.first; lane < held.first + held.count; ++lane) {
    Lane made{make_parameter(weight_name(name, "in", spec, lane), width_, 3 * lane_width_),
              make_parameter(weight_name(name, "in bias", spec, lane), 1, 3 * lane_width_),
              make_parameter(weight_name(name, "out", spec, lane), lane_width_, width_)};
    const int first = lane * lane_width_;
    for (int part = 0; part < 3; ++part) {
      draw(spec, {kinds[part], block, 0, first, width_}, deviation,
           made.in.value.middleCols(part * lane_width_, lane_width_));
    }
    draw(spec, {WeightKind::kAttentionOut, block, first, 0, width_}, out_deviation, made.out.value);
    lanes_.push_back(std::move(made));
  }
  out_bias_ = make_parameter(weight_name(name, "out bias"), 1, width_);
}

Matrix Attention::forward(const Matrix& input, LaneSum& lanes, Stash& stash) const {
  stash.input = input;
  stash.lanes.resize(lanes_.size());
  std::vector<Matrix> parts;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Stash::Lane& lane = stash.lanes[i];
    lane.projected = product(input, lanes_[i].in.value);
    add_to_rows(lanes_[i].in_bias.value, lane.projected);
    attend(lane);
    parts.push_back(product(lane.context, lanes_[i].out.value));
  }
  Matrix output = lanes.sum(std::move(parts));
  add_to_rows(out_bias_.value, output);
  return output;
}

void Attention::attend(Stash::Lane& stash) const {
  const Matrix& projected = stash.projected;
  const Eigen::Index rows = projected.rows();
  const Real scale = 1 / std::sqrt(static_cast<Real>(head_width_));
  stash.context.resize(rows, lane_width_);
  stash.weights.clear();
  for (int head = 0; head < lane_heads_; ++head) {
    const int at = head * head_width_;
    Matrix weights = product_by_transposed(projected.middleCols(at, head_width_),
                                           projected.middleCols(lane_width_ + at, head_width_));
    weights *= scale;
    soften(weights, [&](Eigen::Index row) { return seen(row, rows); });
    stash.context.middleCols(at, head_width_) =
        product(weights, projected.middleCols(2 * lane_width_ + at, head_width_));
    stash.weights.push_back(std::move(weights));
  }
}

Matrix Attention::attend_gradient(const Matrix& context_gradient, const Stash::Lane& stash) const {
  const Matrix& projected = stash.projected;
  const Real scale = 1 / std::sqrt(static_cast<Real>(head_width_));
  Matrix gradient(projected.rows(), projected.cols());
  for (int head = 0; head < lane_heads_; ++head) {
    const int query = head * head_width_;
    const int key = lane_width_ + query;
    const int value = 2 * lane_width_ + query;
    const Matrix& weights = stash.weights[static_cast<std::size_t>(head)];
    const auto of_head = context_gradient.middleCols(query, head_width_);
    Matrix scores = product_by_transposed(of_head, projected.middleCols(value, head_width_));
    soften_gradient(weights, scores);
    scores *= scale;
    gradient.middleCols(query, head_width_) =
        product(scores, projected.middleCols(key, head_width_));
    gradient.middleCols(key, head_width_) =
        transposed_product(scores, projected.middleCols(query, head_width_));
    gradient.middleCols(value, head_width_) = transposed_product(weights, of_head);
  }
  return gradient;
}

Matrix Attention::input_gradient(const Matrix& output_gradient, LaneSum& lanes,
                                 Stash& stash) const {
  stash.output_gradient = output_gradient;
  std::vector<Matrix> parts;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Stash::Lane& lane = stash.lanes[i];
    lane.projected_gradient =
        attend_gradient(product_by_transposed(output_gradient, lanes_[i].out.value), lane);
    parts.push_back(product_by_transposed(lane.projected_gradient, lanes_[i].in.value));
    release(lane.projected);
    lane.weights.clear();
  }
  return lanes.sum(std::move(parts));
}

void Attention::weight_gradient(Stash& stash) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Stash::Lane& lane = stash.lanes[i];
    add_transposed_product(stash.input, lane.projected_gradient, lanes_[i].in.gradient);
    add_rows(lane.projected_gradient, lanes_[i].in_bias.gradient);
    add_transposed_product(lane.context, stash.output_gradient, lanes_[i].out.gradient);
  }
  add_rows(stash.output_gradient, out_bias_.gradient);
  stash = {};
}

std::int64_t Attention::forward_bytes(std::int64_t rows) const {
  const auto held = static_cast<std::int64_t>(lanes_.size());
  return bytes_of(rows, width_) +
         held * (bytes_of(rows, 4 * lane_width_) + lane_heads_ * bytes_of(rows, rows));
}

std::int64_t Attention::weight_bytes(std::int64_t rows) const {
  const auto held = static_cast<std::int64_t>(lanes_.size());
  return bytes_of(rows, 2 * width_) + held * bytes_of(rows, 4 * lane_width_);
}

void Attention::list(ParameterList& parameters) {
  for (Lane& lane : lanes_) {
    parameters.insert(parameters.end(), {&lane.in, &lane.in_bias, &lane.out});
  }
  parameters.push_back(&out_bias_);
}

}  // namespace rrfp
