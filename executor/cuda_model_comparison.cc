#include "executor/cuda_model_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace rrfp {

namespace {

// Targets that can be learnt, from few of the bytes.
Sample counting_sample(int length) {
  Sample sample;
  sample.lengths = {length};
  sample.tokens.resize(1);
  for (int i = 0; i < length; ++i) {
    sample.tokens[0].push_back(static_cast<std::uint8_t>(i % 4));
    sample.targets.push_back(static_cast<std::uint8_t>((i + 1) % 4));
  }
  return sample;
}

Result<std::vector<StageCut>> cut_into_chain(const ModelSpec& spec, int stages) {
  ProgramSpec chain;
  chain.microbatches = 1;
  chain.ranks = stages;
  for (int stage = 0; stage < stages; ++stage) {
    chain.stages.push_back({stage, {}, Backward::kFull});
    if (stage > 0) chain.stages.back().predecessors = {stage - 1};
  }
  const Result<Program> program = Program::create(chain);
  if (!program.ok()) return program.error();
  return cut_model(spec, *program);
}

}  // namespace

Real largest_deviation(const Matrix& found, const Matrix& expected) {
  constexpr Real kNone = std::numeric_limits<Real>::infinity();
  if (found.rows() != expected.rows() || found.cols() != expected.cols()) return kNone;
  Real largest = 0;
  Real largest_expected = 0;
  for (Eigen::Index i = 0; i < found.size(); ++i) {
    const Real number = std::abs(expected.data()[i]);
    const Real deviation = std::abs(found.data()[i] - expected.data()[i]) / (1 + number);
    if (!std::isfinite(deviation)) return kNone;
    largest = std::max(largest, deviation);
    largest_expected = std::max(largest_expected, number);
  }
  return largest_expected > 0 ? largest : kNone;
}

Result<Matrix> fetch(const CudaMatrix& from, CudaCompute& compute) {
  std::vector<float> numbers(from.size());
  compute.run("cudaMemcpyAsync", [&](cudaStream_t on) {
    return cudaMemcpyAsync(numbers.data(), from.data, from.bytes(), cudaMemcpyDeviceToHost, on);
  });
  if (compute.failure()) return *compute.failure();
  if (Result<void> waited = compute.wait(); !waited.ok()) return waited.error();
  Matrix to(from.rows, from.columns);
  std::copy(numbers.begin(), numbers.end(), to.data());
  return to;
}

Result<std::unique_ptr<CudaModelComparison>> CudaModelComparison::create(const ModelSpec& spec,
                                                                         int stages,
                                                                         CudaCompute& compute) {
  std::unique_ptr<CudaModelComparison> made(new CudaModelComparison(spec, compute));
  const Result<std::vector<StageCut>> cuts = cut_into_chain(spec, stages);
  if (!cuts.ok()) return cuts.error();
  for (const StageCut& cut : *cuts) {
    auto pair = std::make_unique<Pair>(spec, cut);
    Result<std::unique_ptr<CudaStage>> on_device = CudaStage::create(spec, cut, 0, compute);
    if (!on_device.ok()) return on_device.error();
    pair->on_device = std::move(*on_device);
    made->stages_.push_back(std::move(pair));
  }
  Result<CudaPinnedMemory> loss = CudaPinnedMemory::create(sizeof(double));
  if (!loss.ok()) return loss.error();
  made->loss_ = std::move(*loss);
  return made;
}

Result<void> CudaModelComparison::upload(const Sample& sample) {
  std::vector<std::uint8_t> bytes = sample.tokens[0];
  bytes.insert(bytes.end(), sample.targets.begin(), sample.targets.end());
  Result<CudaMemory> memory = CudaMemory::create(bytes.size(), "a sample");
  if (!memory.ok()) return memory.error();
  bytes_ = std::move(*memory);
  compute_.run("cudaMemcpyAsync", [&](cudaStream_t on) {
    return cudaMemcpyAsync(bytes_.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice, on);
  });
  const auto* const tokens = reinterpret_cast<const std::uint8_t*>(bytes_.data());
  sample_ = {tokens, tokens + sample.tokens[0].size()};
  return compute_.wait();
}

Result<void> CudaModelComparison::make_room(const std::vector<int>& lengths) {
  CudaCarver measure;
  static_cast<void>(CudaScratch::lay_out(spec_, lengths[0], measure));
  Result<CudaMemory> scratch = CudaMemory::create(measure.bytes(), "the passes of a stage");
  if (!scratch.ok()) return scratch.error();
  scratch_ = std::move(*scratch);
  for (const std::unique_ptr<Pair>& pair : stages_) {
    const StageCut& cut = pair->on_device->cut();
    CudaStashCarvers measures;
    static_cast<void>(CudaStage::lay_out(spec_, cut, lengths, measures));
    for (const auto& [bytes, to] :
         {std::pair(measures.until_input.bytes(), &pair->until_input),
          std::pair(measures.until_weight.bytes(), &pair->until_weight)}) {
      Result<CudaMemory> memory = CudaMemory::create(bytes, "what a microbatch keeps");
      if (!memory.ok()) return memory.error();
      *to = std::move(*memory);
    }
    CudaStashCarvers carvers = {CudaCarver(pair->until_input.data()),
                                CudaCarver(pair->until_weight.data())};
    pair->stash = CudaStage::lay_out(spec_, cut, lengths, carvers);
    pair->kept = {};
  }
  return {};
}

Result<std::vector<Deviation>> CudaModelComparison::pass(int length, Real scale) {
  deviations_.clear();
  const Sample sample = counting_sample(length);
  Result<void> done = upload(sample);
  if (done.ok()) done = make_room(sample.lengths);
  if (!done.ok()) return done.error();
  CudaCarver carver(scratch_.data());
  const CudaPass pass = {compute_, device_lanes_, CudaScratch::lay_out(spec_, length, carver)};
  done = forward(pass, sample);
  if (done.ok()) done = backward(pass, scale);
  if (done.ok()) done = compare_gradients();
  if (!done.ok()) return done.error();
  return std::move(deviations_);
}

Result<void> CudaModelComparison::forward(const CudaPass& pass, const Sample& sample) {
  auto* const loss = reinterpret_cast<double*>(loss_.data());
  std::vector<Matrix> activations;
  for (std::size_t i = 0; i < stages_.size(); ++i) {
    Pair& pair = *stages_[i];
    pair.on_device->forward(pass, sample_, pair.stash, loss);
    Result<Matrix> output = pair.on_cpu.forward(sample, activations, cpu_lanes_, pair.kept);
    if (!output.ok()) return output.error();
    Result<void> compared =
        compare("the output of stage " + std::to_string(i), pass.scratch.stream, *output);
    if (!compared.ok()) return compared;
    activations = {std::move(*output)};
  }
  deviations_.push_back(
      {"the loss", largest_deviation(Matrix::Constant(1, 1, *loss),
                                     Matrix::Constant(1, 1, stages_.back()->kept.loss))});
  return {};
}

Result<void> CudaModelComparison::backward(const CudaPass& pass, Real scale) {
  std::vector<Matrix> gradients;
  for (std::size_t i = stages_.size(); i-- > 0;) {
    Pair& pair = *stages_[i];
    pair.on_device->input_gradient(pass, sample_, static_cast<float>(scale), pair.stash);
    Result<Matrix> gradient = pair.on_cpu.input_gradient(gradients, scale, cpu_lanes_, pair.kept);
    if (!gradient.ok()) return gradient.error();
    Result<void> compared = compare("the gradient of the input of stage " + std::to_string(i),
                                    pass.scratch.gradient, *gradient);
    if (!compared.ok()) return compared;
    gradients = {std::move(*gradient)};
    pair.on_device->weight_gradient(compute_, sample_, pair.stash);
    pair.on_cpu.weight_gradient(pair.kept);
  }
  return {};
}

Result<void> CudaModelComparison::compare(const std::string& of, const CudaMatrix& found,
                                          const Matrix& expected) {
  const Result<Matrix> fetched = fetch(found, compute_);
  if (!fetched.ok()) return fetched.error();
  deviations_.push_back({of, largest_deviation(*fetched, expected)});
  return {};
}

Result<void> CudaModelComparison::compare_gradients() {
  for (const std::unique_ptr<Pair>& pair : stages_) {
    const Result<std::vector<NamedMatrix>> found =
        pair->on_device->parameters().gradients(compute_);
    if (!found.ok()) return found.error();
    const ParameterList parameters = pair->on_cpu.parameters();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      deviations_.push_back({"the gradient of " + parameters[i]->name,
                             largest_deviation((*found)[i].second, parameters[i]->gradient)});
    }
  }
  return {};
}

Result<std::vector<Deviation>> CudaModelComparison::step(const OptimizerSpec& optimizer) {
  std::vector<Deviation> deviations;
  for (const std::unique_ptr<Pair>& pair : stages_) {
    const ParameterList parameters = pair->on_cpu.parameters();
    take_step(optimizer, parameters);
    pair->on_device->parameters().take_step(optimizer, compute_);
    const Result<std::vector<NamedMatrix>> found = pair->on_device->parameters().values(compute_);
    if (!found.ok()) return found.error();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      deviations.push_back({parameters[i]->name + ", stepped",
                            largest_deviation((*found)[i].second, parameters[i]->value)});
    }
  }
  return deviations;
}

}  // namespace rrfp
