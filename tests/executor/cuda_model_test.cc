// Goal: the training model on a device computes what the CPU's computes: every
// layer's output, the gradient of its input and of each of its weights, and so
// for a whole stage. The CPU's is in double precision and itself held against
// finite differences; the device's is in single precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "executor/cuda_double_streams.h"
#include "executor/cuda_launchers.h"
#include "executor/cuda_model_comparison.h"
#include "executor/cuda_partition.h"
#include "scheduler_core/random.h"

namespace rrfp {
namespace {

Matrix random_matrix(int rows, int columns, std::uint64_t seed) {
  Matrix matrix(rows, columns);
  for (Eigen::Index i = 0; i < matrix.size(); ++i) {
    matrix.data()[i] = 2 * random_unit({seed, 0, 1, static_cast<std::uint64_t>(i)}) - 1;
  }
  return matrix;
}

ModelSpec small_spec() {
  ModelSpec spec;
  spec.width = 24;
  spec.heads = 3;
  spec.mlp_width = 40;
  spec.blocks = 2;
  spec.longest = 9;
  return spec;
}

StageCut whole_model(const ModelSpec& spec) {
  ProgramSpec program;
  program.microbatches = 1;
  program.ranks = 1;
  program.stages.push_back({0, {}, Backward::kFull});
  return cut_model(spec, *Program::create(program))->front();
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

void expect_near(const Matrix& found, const Matrix& expected, const std::string& what) {
  EXPECT_LE(largest_deviation(found, expected), kMostDeviation) << what;
}

void expect_near(const Result<std::vector<Deviation>>& compared, std::size_t tensors) {
  ASSERT_TRUE(compared.ok()) << compared.error().message;
  EXPECT_EQ(compared->size(), tensors);
  for (const Deviation& deviation : *compared) {
    EXPECT_LE(deviation.largest, kMostDeviation) << deviation.of;
  }
}

class CudaModel : public testing::Test {
 protected:
  void SetUp() override {
    DoubleMachine::get().reset();
    Result<CudaDevicePartitions> made = CudaDevicePartitions::create(0, 1);
    ASSERT_TRUE(made.ok()) << made.error().message;
    partitions_ = std::make_unique<CudaDevicePartitions>(std::move(*made));
    Result<std::unique_ptr<CudaCompute>> compute =
        CudaCompute::create(partitions_->partition(0).compute(), false);
    ASSERT_TRUE(compute.ok()) << compute.error().message;
    compute_ = std::move(*compute);
  }
  void TearDown() override {
    if (compute_ != nullptr) {
      EXPECT_FALSE(compute_->failure()) << compute_->failure()->message;
    }
    if (!planted_) {
      EXPECT_EQ(DoubleMachine::get().objection(), "");
    }
    parameters_.reset();
    memory_.clear();
    compute_.reset();
    partitions_.reset();
    DoubleMachine::get().reset();
  }

  std::byte* allocate(std::size_t bytes) {
    Result<CudaMemory> memory = CudaMemory::create(bytes, "a test");
    EXPECT_TRUE(memory.ok()) << memory.error().message;
    memory_.push_back(std::move(*memory));
    return memory_.back().data();
  }
  void wait() { ASSERT_EQ(cudaStreamSynchronize(compute_->stream()), cudaSuccess); }

  void upload(const Matrix& from, const CudaMatrix& to) {
    const Eigen::MatrixX<float> numbers =
        Eigen::Map<const Eigen::VectorX<Real>>(from.data(), from.size()).cast<float>();
    ASSERT_EQ(cudaMemcpyAsync(to.data, numbers.data(), to.bytes(), cudaMemcpyHostToDevice,
                              compute_->stream()),
              cudaSuccess);
    wait();
  }
  Matrix download(const CudaMatrix& from) {
    const Result<Matrix> fetched = fetch(from, *compute_);
    EXPECT_TRUE(fetched.ok()) << fetched.error().message;
    return fetched.ok() ? *fetched : Matrix();
  }

  CudaParameterCursor put(const ParameterList& parameters) {
    Result<CudaParameters> made = CudaParameters::create(parameters, *compute_);
    EXPECT_TRUE(made.ok()) << made.error().message;
    parameters_ = std::make_unique<CudaParameters>(std::move(*made));
    return CudaParameterCursor(*parameters_);
  }
  void expect_gradients(const CudaParameters& of, const ParameterList& parameters) {
    const Result<std::vector<NamedMatrix>> found = of.gradients(*compute_);
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_EQ(found->size(), parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ((*found)[i].first, parameters[i]->name);
      expect_near((*found)[i].second, parameters[i]->gradient, parameters[i]->name);
    }
  }

  CudaPass pass(const ModelSpec& spec, int rows) {
    CudaCarver measure;
    static_cast<void>(CudaScratch::lay_out(spec, rows, measure));
    CudaCarver carver(allocate(measure.bytes()));
    return {*compute_, lanes_, CudaScratch::lay_out(spec, rows, carver)};
  }
  // Carvers of memory for what `lay_out` needs.
  template <typename LayOut>
  auto lay_out(LayOut function) {
    CudaStashCarvers carvers;
    static_cast<void>(function(carvers));
    carvers = {CudaCarver(allocate(carvers.until_input.bytes())),
               CudaCarver(allocate(carvers.until_weight.bytes()))};
    return function(carvers);
  }

  std::unique_ptr<CudaDevicePartitions> partitions_;
  std::unique_ptr<CudaCompute> compute_;
  CudaLaneSum lanes_;
  std::unique_ptr<CudaParameters> parameters_;
  std::vector<CudaMemory> memory_;
  bool planted_ = false;  // the test wants an objection
};

TEST_F(CudaModel, LayerNorm) {
  const ModelSpec spec = small_spec();
  LayerNorm layer("norm", spec.width);
  ParameterList parameters;
  layer.list(parameters);
  scatter_weights(parameters);
  CudaParameterCursor weights = put(parameters);
  const CudaLayerNorm on_device(weights);
  const Matrix input = random_matrix(7, spec.width, 1);
  const Matrix by = random_matrix(7, spec.width, 2);

  const CudaPass with = pass(spec, 7);
  const CudaLayerNorm::Stash stash =
      lay_out([&](CudaStashCarvers& carvers) { return CudaLayerNorm::lay_out(spec, 7, carvers); });
  LayerNorm::Stash expected;
  upload(input, with.scratch.stream);
  on_device.forward(*compute_, with.scratch.stream, stash, with.scratch.part);
  expect_near(download(with.scratch.part), layer.forward(input, expected), "output");
  // Gradients are added to what is there.
  upload(input, with.scratch.gradient);
  upload(by, with.scratch.part);
  on_device.input_gradient(*compute_, with.scratch.part, stash, with.scratch.gradient);
  expect_near(download(with.scratch.gradient), input + layer.input_gradient(by, expected), "input");
  on_device.weight_gradient(*compute_, stash);
  layer.weight_gradient(expected);
  expect_gradients(*parameters_, parameters);
}

TEST_F(CudaModel, Attention) {
  for (const bool causal : {false, true}) {
    SCOPED_TRACE(causal ? "causal" : "sees all");
    const ModelSpec spec = small_spec();
    Attention layer(spec, 0, {0, 1}, causal);
    ParameterList parameters;
    layer.list(parameters);
    scatter_weights(parameters);
    CudaParameterCursor weights = put(parameters);
    const CudaAttention on_device(spec, causal, weights);
    const Matrix input = random_matrix(7, spec.width, 1);
    const Matrix by = random_matrix(7, spec.width, 2);

    HeldLaneSum lanes;
    Attention::Stash expected;
    const CudaPass with = pass(spec, 7);
    const CudaAttention::Stash stash = lay_out(
        [&](CudaStashCarvers& carvers) { return CudaAttention::lay_out(spec, 7, carvers); });
    upload(input, stash.input);
    upload(by, with.scratch.stream);
    on_device.forward(with, stash, with.scratch.stream);
    expect_near(download(with.scratch.stream), by + layer.forward(input, lanes, expected),
                "output");
    upload(by, with.scratch.gradient);
    on_device.input_gradient(with, with.scratch.gradient, stash);
    expect_near(download(with.scratch.part), layer.input_gradient(by, lanes, expected), "input");
    on_device.weight_gradient(*compute_, stash);
    layer.weight_gradient(expected);
    expect_gradients(*parameters_, parameters);
  }
}

TEST_F(CudaModel, Mlp) {
  const ModelSpec spec = small_spec();
  Mlp layer(spec, 0, {0, 1});
  ParameterList parameters;
  layer.list(parameters);
  scatter_weights(parameters);
  CudaParameterCursor weights = put(parameters);
  const CudaMlp on_device(weights);
  const Matrix input = random_matrix(7, spec.width, 1);
  const Matrix by = random_matrix(7, spec.width, 2);

  HeldLaneSum lanes;
  Mlp::Stash expected;
  const CudaPass with = pass(spec, 7);
  const CudaMlp::Stash stash =
      lay_out([&](CudaStashCarvers& carvers) { return CudaMlp::lay_out(spec, 7, carvers); });
  upload(input, stash.input);
  upload(by, with.scratch.stream);
  on_device.forward(with, stash, with.scratch.stream);
  expect_near(download(with.scratch.stream), by + layer.forward(input, lanes, expected), "output");
  upload(by, with.scratch.gradient);
  on_device.input_gradient(with, with.scratch.gradient, stash);
  expect_near(download(with.scratch.part), layer.input_gradient(by, lanes, expected), "input");
  on_device.weight_gradient(*compute_, stash);
  layer.weight_gradient(expected);
  expect_gradients(*parameters_, parameters);
}

TEST_F(CudaModel, HeadTakesTheLastRowsAndTheScale) {
  constexpr Real kScale = 0.25;
  const ModelSpec spec = small_spec();
  Head layer(spec);
  ParameterList parameters;
  layer.list(parameters);
  scatter_weights(parameters);
  CudaParameterCursor weights = put(parameters);
  const CudaHead on_device(weights);
  const Matrix input = random_matrix(7, spec.width, 1);
  const std::vector<std::uint8_t> targets = {3, 200, 7, 200, 9};

  Head::Stash expected;
  const CudaPass with = pass(spec, 7);
  const CudaHead::Stash stash =
      lay_out([&](CudaStashCarvers& carvers) { return CudaHead::lay_out(spec, 5, carvers); });
  auto* const on_device_targets = reinterpret_cast<std::uint8_t*>(allocate(targets.size()));
  ASSERT_EQ(cudaMemcpyAsync(on_device_targets, targets.data(), targets.size(),
                            cudaMemcpyHostToDevice, compute_->stream()),
            cudaSuccess);
  double loss = 0;
  upload(input, with.scratch.stream);
  on_device.forward(with, on_device_targets, stash, &loss);
  wait();
  const Real expected_loss = layer.forward(input, targets, expected);
  EXPECT_NEAR(loss, expected_loss, kMostDeviation * expected_loss);
  on_device.input_gradient(with, on_device_targets, static_cast<float>(kScale), stash);
  const Matrix gradient = download(with.scratch.gradient);
  expect_near(gradient, layer.input_gradient(kScale, expected), "input");
  EXPECT_EQ(gradient.topRows(2).cwiseAbs().sum(), 0);
  on_device.weight_gradient(*compute_, stash);
  layer.weight_gradient(expected);
  expect_gradients(*parameters_, parameters);
}

// Two microbatches, accumulated, a step, and one more: gradients are 0 behind a step, and no weight
// is then still as it was drawn.
TEST_F(CudaModel, WholeModelAndStepsOfTheOptimizer) {
  for (const int stages : {1, 2}) {
    SCOPED_TRACE(std::to_string(stages) + " stages");
    const ModelSpec spec = small_spec();
    const std::size_t weights = Stage(spec, whole_model(spec), {0, 1}).parameters().size();
    const std::size_t tensors = 2 * static_cast<std::size_t>(stages) + 1 + weights;
    Result<std::unique_ptr<CudaModelComparison>> model =
        CudaModelComparison::create(spec, stages, *compute_);
    ASSERT_TRUE(model.ok()) << model.error().message;
    for (const int length : {9, 6}) expect_near((*model)->pass(length, 0.125), tensors);
    for (int step = 0; step < 2; ++step) expect_near((*model)->step({0.5, 0.75}), weights);
    expect_near((*model)->pass(7, 0.125), tensors);
  }
}

// Of what devices are told by it, so it must not be content with anything.
TEST(Deviation, IsInfiniteWhereNothingIsProven) {
  const Real infinity = std::numeric_limits<Real>::infinity();
  const Matrix two = Matrix::Constant(2, 2, 2);
  EXPECT_EQ(largest_deviation(two, Matrix::Constant(2, 2, 2)), 0);
  EXPECT_EQ(largest_deviation(Matrix::Constant(2, 2, 3.5), two), 0.5);
  EXPECT_EQ(largest_deviation(Matrix::Constant(2, 1, 2), two), infinity);
  EXPECT_EQ(largest_deviation(Matrix::Zero(2, 2), Matrix::Zero(2, 2)), infinity);
  Matrix none = two;
  none(1, 0) = std::nan("");
  EXPECT_EQ(largest_deviation(none, two), infinity);
}

TEST_F(CudaModel, GradientsTravelInOnePieceAndComeBack) {
  LayerNorm layer("norm", 5);
  ParameterList parameters;
  layer.list(parameters);
  put(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i]->gradient = random_matrix(1, 5, i).cast<float>().cast<Real>();
  }
  const Payload sent = gather_gradients(parameters);
  ASSERT_TRUE(parameters_->scatter(sent, *compute_).ok());
  const Result<Payload> back = parameters_->gather(*compute_);
  ASSERT_TRUE(back.ok()) << back.error().message;
  ASSERT_EQ(back->size(), sent.size());
  EXPECT_EQ(std::memcmp(back->data(), sent.data(), sent.size()), 0);
  EXPECT_EQ(parameters_->scatter(Payload(8), *compute_).error().message,
            "a gradient of 8 bytes came, not of 80");
}

// What is planted: a stash that is given back while its pass is under way.
TEST_F(CudaModel, ADoubleObjectsToAStashThatIsGivenBackTooEarly) {
  CudaArena arena;
  ASSERT_TRUE(arena.begin({{{1 << 16, 1}}}, {}).ok());
  std::byte* const block = *arena.take(0, 1 << 16);
  // The stream is busy for 50 ms before it gets there.
  ASSERT_EQ(launch_matrix_chain(1, 50'000, {}, compute_->stream()), cudaSuccess);
  auto* const numbers = reinterpret_cast<float*>(block);
  ASSERT_EQ(launch_add(1 << 14, numbers, numbers, compute_->stream()), cudaSuccess);
  arena.give_back(block);
  EXPECT_NE(DoubleMachine::get().objection().find("a block is returned that a sum"),
            std::string::npos)
      << DoubleMachine::get().objection();
  planted_ = true;
  static_cast<void>(cudaStreamSynchronize(compute_->stream()));
}

}  // namespace
}  // namespace rrfp
