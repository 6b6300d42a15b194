#include "executor/model_mlp.h"

#include <cmath>

namespace rrfp {

namespace {

// GELU by its tanh form (Hendrycks and Gimpel, arXiv 1606.08415).
constexpr Real kSlope = 0.7978845608028654;  // sqrt(2 / pi)
constexpr Real kCubic = 0.044715;

Real gelu(Real x) { return 0.5 * x * (1 + std::tanh(kSlope * (x + kCubic * x * x * x))); }

Real gelu_slope(Real x) {
  const Real t = std::tanh(kSlope * (x + kCubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * kSlope * (1 + 3 * kCubic * x * x);
}

}  // namespace

std::int64_t Mlp::Stash::bytes() const {
  std::int64_t bytes = bytes_of(input) + bytes_of(output_gradient);
  for (const Lane& lane : lanes) {
    bytes += bytes_of(lane.hidden) + bytes_of(lane.active) + bytes_of(lane.hidden_gradient);
  }
  return bytes;
}

Mlp::Mlp(const ModelSpec& spec, int block, const HeldLanes& held)
    : width_(spec.width), lane_width_(spec.mlp_width / spec.lanes) {
  const std::string name = "block " + std::to_string(block) + " mlp";
  const Real in_deviation = 1 / std::sqrt(static_cast<Real>(spec.width));
  const Real out_deviation =
      1 / std::sqrt(2 * static_cast<Real>(spec.mlp_width) * static_cast<Real>(spec.blocks));
  for (int lane = held.first; lane < held.first + held.count; ++lane) {
    Lane made{make_parameter(weight_name(name, "in", spec, lane), width_, lane_width_),
              make_parameter(weight_name(name, "in bias", spec, lane), 1, lane_width_),
              make_parameter(weight_name(name, "out", spec, lane), lane_width_, width_)};
    const int first = lane * lane_width_;
    draw(spec, {WeightKind::kMlpIn, block, 0, first, spec.mlp_width}, in_deviation, made.in.value);
    draw(spec, {WeightKind::kMlpOut, block, first, 0, width_}, out_deviation, made.out.value);
    lanes_.push_back(std::move(made));
  }
  out_bias_ = make_parameter(weight_name(name, "out bias"), 1, width_);
}

Matrix Mlp::forward(const Matrix& input, LaneSum& lanes, Stash& stash) const {
  stash.input = input;
  stash.lanes.resize(lanes_.size());
  std::vector<Matrix> parts;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Stash::Lane& lane = stash.lanes[i];
    lane.hidden = product(input, lanes_[i].in.value);
    add_to_rows(lanes_[i].in_bias.value, lane.hidden);
    lane.active.resize(lane.hidden.rows(), lane.hidden.cols());
    for (Eigen::Index k = 0; k < lane.hidden.size(); ++k) {
      lane.active.data()[k] = gelu(lane.hidden.data()[k]);
    }
    parts.push_back(product(lane.active, lanes_[i].out.value));
  }
  Matrix output = lanes.sum(std::move(parts));
  add_to_rows(out_bias_.value, output);
  return output;
}

Matrix Mlp::input_gradient(const Matrix& output_gradient, LaneSum& lanes, Stash& stash) const {
  stash.output_gradient = output_gradient;
  std::vector<Matrix> parts;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Stash::Lane& lane = stash.lanes[i];
    lane.hidden_gradient = product_by_transposed(output_gradient, lanes_[i].out.value);
    for (Eigen::Index k = 0; k < lane.hidden.size(); ++k) {
      lane.hidden_gradient.data()[k] *= gelu_slope(lane.hidden.data()[k]);
    }
    parts.push_back(product_by_transposed(lane.hidden_gradient, lanes_[i].in.value));
    release(lane.hidden);
  }
  return lanes.sum(std::move(parts));
}

void Mlp::weight_gradient(Stash& stash) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Stash::Lane& lane = stash.lanes[i];
    add_transposed_product(stash.input, lane.hidden_gradient, lanes_[i].in.gradient);
    add_rows(lane.hidden_gradient, lanes_[i].in_bias.gradient);
    add_transposed_product(lane.active, stash.output_gradient, lanes_[i].out.gradient);
  }
  add_rows(stash.output_gradient, out_bias_.gradient);
  stash = {};
}

std::int64_t Mlp::forward_bytes(std::int64_t rows) const {
  const auto held = static_cast<std::int64_t>(lanes_.size());
  return bytes_of(rows, width_) + held * bytes_of(rows, 2 * lane_width_);
}

std::int64_t Mlp::weight_bytes(std::int64_t rows) const {
  const auto held = static_cast<std::int64_t>(lanes_.size());
  return bytes_of(rows, 2 * width_) + held * bytes_of(rows, 2 * lane_width_);
}

void Mlp::list(ParameterList& parameters) {
  for (Lane& lane : lanes_) {
    parameters.insert(parameters.end(), {&lane.in, &lane.in_bias, &lane.out});
  }
  parameters.push_back(&out_bias_);
}

}  // namespace rrfp
