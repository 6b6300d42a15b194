// Goal: the backward passes of every layer, and of a whole stage, are the
// derivatives of its forward pass: held against central differences, for the
// input and for every weight.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "executor/model_stage.h"
#include "scheduler_core/random.h"

namespace rrfp {
namespace {

constexpr Real kStep = 1e-5;
constexpr Real kTolerance = 2e-8;

Matrix random_matrix(int rows, int columns, std::uint64_t seed) {
  Matrix matrix(rows, columns);
  for (Eigen::Index i = 0; i < matrix.size(); ++i) {
    matrix.data()[i] = 2 * random_unit({seed, 0, 1, static_cast<std::uint64_t>(i)}) - 1;
  }
  return matrix;
}

ModelSpec small_spec(int lanes = 1) {
  ModelSpec spec;
  spec.width = 8;
  spec.heads = 2;
  spec.mlp_width = 12;
  spec.blocks = 2;
  spec.longest = 9;
  spec.lanes = lanes;
  return spec;
}

// Zero weights (biases) would hide errors, and equal ones would too.
void scatter_weights(const ParameterList& parameters) {
  std::uint64_t seed = 100;
  for (Parameter* parameter : parameters) {
    const Matrix& value = parameter->value;
    parameter->value +=
        0.3 * random_matrix(static_cast<int>(value.rows()), static_cast<int>(value.cols()), ++seed);
  }
}

// d(objective)/d(number) against `expected`, for every number of `of`.
void expect_slope(Matrix& of, const Matrix& expected, const std::function<Real()>& objective,
                  const std::string& what) {
  ASSERT_EQ(of.rows(), expected.rows()) << what;
  ASSERT_EQ(of.cols(), expected.cols()) << what;
  for (Eigen::Index i = 0; i < of.size(); ++i) {
    const Real kept = of.data()[i];
    of.data()[i] = kept + kStep;
    const Real above = objective();
    of.data()[i] = kept - kStep;
    const Real below = objective();
    of.data()[i] = kept;
    const Real slope = (above - below) / (2 * kStep);
    ASSERT_NEAR(expected.data()[i], slope, kTolerance * (1 + std::abs(slope)))
        << what << ", number " << i;
  }
}

void expect_weight_slopes(const ParameterList& parameters, const std::function<Real()>& objective) {
  Real all = 0;
  for (Parameter* parameter : parameters) {
    all += parameter->gradient.cwiseAbs().sum();
    expect_slope(parameter->value, parameter->gradient, objective, parameter->name);
  }
  EXPECT_GT(all, 0.01) << "gradients that are all 0 prove nothing";
}

// The objective is a random weighting of the output.
Real weighted(const Matrix& output, const Matrix& by) { return output.cwiseProduct(by).sum(); }

TEST(ModelGradient, LayerNorm) {
  LayerNorm layer("norm", 8);
  ParameterList parameters;
  layer.list(parameters);
  scatter_weights(parameters);
  Matrix input = random_matrix(5, 8, 1);
  const Matrix by = random_matrix(5, 8, 2);
  const auto objective = [&] {
    LayerNorm::Stash stash;
    return weighted(layer.forward(input, stash), by);
  };
  LayerNorm::Stash stash;
  static_cast<void>(layer.forward(input, stash));
  EXPECT_EQ(stash.bytes(), layer.forward_bytes(5));
  const Matrix gradient = layer.input_gradient(by, stash);
  EXPECT_EQ(stash.bytes(), layer.weight_bytes());
  layer.weight_gradient(stash);
  EXPECT_EQ(stash.bytes(), 0);
  expect_slope(input, gradient, objective, "input");
  expect_weight_slopes(parameters, objective);
}

template <typename Layer>
void check_layer(Layer& layer, int width) {
  constexpr int kRows = 6;
  ParameterList parameters;
  layer.list(parameters);
  scatter_weights(parameters);
  HeldLaneSum lanes;
  Matrix input = random_matrix(kRows, width, 1);
  const Matrix by = random_matrix(kRows, width, 2);
  const auto objective = [&] {
    typename Layer::Stash stash;
    return weighted(layer.forward(input, lanes, stash), by);
  };
  typename Layer::Stash stash;
  static_cast<void>(layer.forward(input, lanes, stash));
  EXPECT_EQ(stash.bytes(), layer.forward_bytes(kRows));
  const Matrix gradient = layer.input_gradient(by, lanes, stash);
  EXPECT_EQ(stash.bytes(), layer.weight_bytes(kRows));
  layer.weight_gradient(stash);
  EXPECT_EQ(stash.bytes(), 0);
  expect_slope(input, gradient, objective, "input");
  expect_weight_slopes(parameters, objective);
}

TEST(ModelGradient, Attention) {
  for (const int lanes : {1, 2}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE("lanes " + std::to_string(lanes) + (causal ? ", causal" : ""));
      Attention layer(small_spec(lanes), 0, {0, lanes}, causal);
      check_layer(layer, 8);
    }
  }
}

TEST(ModelGradient, Mlp) {
  for (const int lanes : {1, 2}) {
    SCOPED_TRACE("lanes " + std::to_string(lanes));
    Mlp layer(small_spec(lanes), 0, {0, lanes});
    check_layer(layer, 8);
  }
}

TEST(ModelGradient, Block) {
  Block layer(small_spec(), 0, {0, 1}, true);
  check_layer(layer, 8);
}

TEST(ModelGradient, CausalAttentionSeesNothingThatComesLater) {
  const Attention layer(small_spec(), 0, {0, 1}, true);
  HeldLaneSum lanes;
  Attention::Stash stash;
  Matrix input = random_matrix(6, 8, 1);
  const Matrix before = layer.forward(input, lanes, stash);
  input.row(4) = random_matrix(1, 8, 9);
  const Matrix after = layer.forward(input, lanes, stash);
  EXPECT_EQ(before.topRows(4), after.topRows(4));
  EXPECT_NE(before.row(4), after.row(4));
  EXPECT_NE(before.row(5), after.row(5));
}

TEST(ModelGradient, HeadTakesTheLastRowsAndTheScale) {
  constexpr Real kScale = 0.25;
  Head head(small_spec());
  ParameterList parameters;
  head.list(parameters);
  scatter_weights(parameters);
  Matrix input = random_matrix(5, 8, 1);
  const std::vector<std::uint8_t> targets = {3, 200, 7};
  const auto objective = [&] {
    Head::Stash stash;
    return kScale * head.forward(input, targets, stash);
  };
  Head::Stash stash;
  static_cast<void>(head.forward(input, targets, stash));
  EXPECT_EQ(stash.bytes(), head.forward_bytes(3));
  const Matrix gradient = head.input_gradient(kScale, stash);
  EXPECT_EQ(stash.bytes(), head.weight_bytes(3));
  head.weight_gradient(stash);
  EXPECT_EQ(stash.bytes(), 0);
  EXPECT_EQ(gradient.topRows(2).cwiseAbs().sum(), 0);
  expect_slope(input, gradient, objective, "input");
  expect_weight_slopes(parameters, objective);
}

// A program of one rank, so that every stage stands alone.
Program graph(std::vector<std::vector<int>> predecessors) {
  ProgramSpec spec;
  spec.ranks = 1;
  spec.microbatches = 1;
  for (std::vector<int>& of : predecessors) {
    spec.stages.push_back({0, std::move(of), Backward::kFull});
  }
  return *Program::create(spec);
}

Sample sample_of(int decoder, int encoder) {
  Sample sample;
  sample.lengths = {decoder, encoder};
  sample.tokens.resize(2);
  for (int i = 0; i < decoder; ++i) {
    sample.tokens[0].push_back(static_cast<std::uint8_t>(i % 3));
    sample.targets.push_back(static_cast<std::uint8_t>((i + 1) % 3));
  }
  for (int i = 0; i < encoder; ++i) sample.tokens[1].push_back(static_cast<std::uint8_t>(5 * i));
  return sample;
}

// Stage 0 is an encoder, 1 the decoder's root, 2 joins both, 3 takes 2 and 1,
// so that a sequence is brought twice.
TEST(ModelGradient, WholeModelWithAnEncoderAndAJoin) {
  const Program program = graph({{}, {}, {0, 1}, {1, 2}});
  ModelSpec spec = small_spec();
  spec.blocks = 4;
  const Result<std::vector<StageCut>> cuts = cut_model(spec, program);
  ASSERT_TRUE(cuts.ok());
  EXPECT_EQ((*cuts)[0].root, 1);
  EXPECT_FALSE((*cuts)[0].causal);
  EXPECT_TRUE((*cuts)[1].causal);
  EXPECT_EQ((*cuts)[3].roots, (std::vector<int>{1, 0}));
  std::vector<Stage> stages;
  ParameterList parameters;
  for (const StageCut& cut : *cuts) stages.emplace_back(spec, cut, HeldLanes{});
  for (Stage& stage : stages) {
    for (Parameter* parameter : stage.parameters()) parameters.push_back(parameter);
  }
  // Not scattered: the token tables are large and mostly unused.
  const Sample sample = sample_of(4, 3);
  HeldLaneSum lanes;
  std::vector<Stage::Stash> stashes(4);
  const auto forward = [&] {
    std::vector<Matrix> out;
    for (std::size_t stage = 0; stage < 4; ++stage) {
      std::vector<Matrix> in;
      for (const int from : program.predecessors(static_cast<int>(stage))) {
        in.push_back(out[static_cast<std::size_t>(from)]);
      }
      stashes[stage] = {};
      out.push_back(*stages[stage].forward(sample, in, lanes, stashes[stage]));
    }
    return stashes[3].loss;
  };
  forward();
  const std::span<const int> lengths = sample.lengths;
  for (std::size_t stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(stashes[stage].bytes(), stages[stage].forward_bytes(lengths)) << stage;
  }
  std::vector<Matrix> gradient(4);
  const auto back = [&](std::size_t stage, const std::vector<Matrix>& in) {
    gradient[stage] = *stages[stage].input_gradient(in, 1, lanes, stashes[stage]);
    EXPECT_EQ(stashes[stage].bytes(), stages[stage].weight_bytes(lengths)) << stage;
    stages[stage].weight_gradient(stashes[stage]);
    EXPECT_EQ(stashes[stage].bytes(), 0);
  };
  const auto to = [&](std::size_t stage, std::size_t predecessor) {
    return gradient_for((*cuts)[stage], lengths, gradient[stage], predecessor);
  };
  back(3, {});
  back(2, {to(3, 1)});
  back(1, {to(2, 1), to(3, 0)});
  back(0, {to(2, 0)});
  for (Parameter* parameter : parameters) {
    // Unused rows of the tables have slope 0 without being asked.
    if (parameter->value.rows() == kTokens) {
      const auto used = parameter->gradient.rowwise().squaredNorm().array() > 0;
      EXPECT_EQ(used.count(), 3) << parameter->name;
    }
    Matrix& value = parameter->value;
    for (Eigen::Index i = 0; i < value.size(); i += 1 + value.size() / 40) {
      const Real kept = value.data()[i];
      value.data()[i] = kept + kStep;
      const Real above = forward();
      value.data()[i] = kept - kStep;
      const Real below = forward();
      value.data()[i] = kept;
      const Real slope = (above - below) / (2 * kStep);
      ASSERT_NEAR(parameter->gradient.data()[i], slope, 1e-7 * (1 + std::abs(slope)))
          << parameter->name << ", number " << i;
    }
  }
}

TEST(ModelGradient, StagesAndLanesAreCutsOfOneModel) {
  const ModelSpec one = small_spec();
  ModelSpec two = small_spec(2);
  Block whole(one, 1, {0, 1}, true);
  Block halves(two, 1, {0, 2}, true);
  Block::Stash a;
  Block::Stash b;
  HeldLaneSum lanes;
  const Matrix input = random_matrix(6, 8, 1);
  const Matrix of_whole = whole.forward(input, lanes, a);
  const Matrix of_halves = halves.forward(input, lanes, b);
  EXPECT_LT((of_whole - of_halves).cwiseAbs().maxCoeff(), 1e-14);
}

TEST(ModelCut, SaysWhyAProgramCannotBeTrained) {
  const Program two_ends = graph({{}, {0}, {0}});
  const Result<std::vector<StageCut>> cut = cut_model(small_spec(), two_ends);
  ASSERT_FALSE(cut.ok());
  EXPECT_NE(cut.error().message.find("stage 1 has no successor"), std::string::npos)
      << cut.error().message;
  ModelSpec odd = small_spec();
  odd.heads = 3;
  const Result<void> checked = check(odd);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().message, "model: heads is 3; it must divide width, 8");
}

}  // namespace
}  // namespace rrfp
