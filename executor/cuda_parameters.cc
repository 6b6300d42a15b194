#include "executor/cuda_parameters.h"

#include <cstring>

#include "executor/cuda_carver.h"

namespace rrfp {

namespace {

float* numbers(std::byte* memory) { return reinterpret_cast<float*>(memory); }

}  // namespace

Result<CudaParameters> CudaParameters::create(const ParameterList& parameters,
                                              CudaCompute& compute) {
  CudaParameters made;
  CudaCarver measure;
  for (const Parameter* parameter : parameters) {
    measure.numbers(static_cast<std::size_t>(parameter->value.size()));
  }
  made.count_ = measure.bytes() / sizeof(float);
  for (CudaMemory* memory : {&made.values_, &made.gradients_, &made.velocities_}) {
    Result<CudaMemory> allocated = CudaMemory::create(measure.bytes(), "weights");
    if (!allocated.ok()) return allocated.error();
    *memory = std::move(*allocated);
  }
  Result<CudaPinnedMemory> staging = CudaPinnedMemory::create(measure.bytes());
  if (!staging.ok()) return staging.error();
  made.staging_ = std::move(*staging);
  if (made.count_ == 0) return made;
  CudaCarver values(made.values_.data());
  CudaCarver gradients(made.gradients_.data());
  std::memset(made.staging_.data(), 0, measure.bytes());
  for (const Parameter* parameter : parameters) {
    const int rows = static_cast<int>(parameter->value.rows());
    const int columns = static_cast<int>(parameter->value.cols());
    made.names_.push_back(parameter->name);
    made.list_.push_back({values.matrix(rows, columns), gradients.matrix(rows, columns)});
    float* const to = numbers(made.staging_.data()) +
                      (made.list_.back().value.data - numbers(made.values_.data()));
    for (Eigen::Index i = 0; i < parameter->value.size(); ++i) {
      to[i] = static_cast<float>(parameter->value.data()[i]);
    }
  }
  compute.run("cudaMemcpyAsync", [&](cudaStream_t stream) {
    return cudaMemcpyAsync(made.values_.data(), made.staging_.data(), measure.bytes(),
                           cudaMemcpyHostToDevice, stream);
  });
  for (const CudaMemory* memory : {&made.gradients_, &made.velocities_}) {
    compute.run("cudaMemsetAsync", [&](cudaStream_t stream) {
      return cudaMemsetAsync(memory->data(), 0, memory->bytes(), stream);
    });
  }
  if (Result<void> waited = compute.wait(); !waited.ok()) return waited.error();
  return made;
}

void CudaParameters::take_step(const OptimizerSpec& spec, CudaCompute& compute) const {
  if (count_ == 0) return;
  const MomentumStep step = {static_cast<float>(spec.learning_rate),
                             static_cast<float>(spec.momentum)};
  compute.run("launch of a step of the optimizer", [&](cudaStream_t stream) {
    return launch_momentum_step(count_, step, numbers(values_.data()), numbers(gradients_.data()),
                                numbers(velocities_.data()), stream);
  });
}

void CudaParameters::clear_gradients(CudaCompute& compute) const {
  if (count_ == 0) return;
  compute.run("cudaMemsetAsync", [&](cudaStream_t stream) {
    return cudaMemsetAsync(gradients_.data(), 0, gradients_.bytes(), stream);
  });
}

Result<void> CudaParameters::fetch(const CudaMemory& from, CudaCompute& compute) const {
  if (count_ == 0) return {};
  compute.run("cudaMemcpyAsync", [&](cudaStream_t stream) {
    return cudaMemcpyAsync(staging_.data(), from.data(), from.bytes(), cudaMemcpyDeviceToHost,
                           stream);
  });
  return compute.wait();
}

const float* CudaParameters::staged(const CudaMatrix& of, const CudaMemory& in) const {
  return numbers(staging_.data()) + (of.data - numbers(in.data()));
}

std::vector<NamedMatrix> CudaParameters::named() const {
  std::vector<NamedMatrix> all;
  for (std::size_t i = 0; i < list_.size(); ++i) {
    const CudaMatrix& of = list_[i].value;  // values and gradients stand alike
    const float* const from = staged(of, values_);
    all.emplace_back(names_[i], Matrix(of.rows, of.columns));
    for (std::size_t k = 0; k < of.size(); ++k) {
      all.back().second.data()[k] = static_cast<Real>(from[k]);
    }
  }
  return all;
}

Result<std::vector<NamedMatrix>> CudaParameters::values(CudaCompute& compute) const {
  if (Result<void> fetched = fetch(values_, compute); !fetched.ok()) return fetched.error();
  return named();
}

Result<std::vector<NamedMatrix>> CudaParameters::gradients(CudaCompute& compute) const {
  if (Result<void> fetched = fetch(gradients_, compute); !fetched.ok()) return fetched.error();
  return named();
}

Result<Payload> CudaParameters::gather(CudaCompute& compute) const {
  const Result<std::vector<NamedMatrix>> all = gradients(compute);
  if (!all.ok()) return all.error();
  std::int64_t bytes = 0;
  for (const auto& [name, matrix] : *all) bytes += bytes_of(matrix);
  Payload payload(static_cast<std::size_t>(bytes));
  std::byte* to = payload.data();
  for (const auto& [name, matrix] : *all) {
    std::memcpy(to, matrix.data(), static_cast<std::size_t>(bytes_of(matrix)));
    to += bytes_of(matrix);
  }
  return payload;
}

Result<void> CudaParameters::scatter(const Payload& payload, CudaCompute& compute) const {
  std::size_t expected = 0;
  for (const CudaParameter& parameter : list_) expected += parameter.gradient.size() * sizeof(Real);
  if (payload.size() != expected) {
    return Error{"a gradient of " + std::to_string(payload.size()) + " bytes came, not of " +
                 std::to_string(expected)};
  }
  const std::byte* from = payload.data();
  for (const CudaParameter& parameter : list_) {
    float* const to =
        numbers(staging_.data()) + (parameter.gradient.data - numbers(gradients_.data()));
    for (std::size_t i = 0; i < parameter.gradient.size(); ++i, from += sizeof(Real)) {
      Real number = 0;
      std::memcpy(&number, from, sizeof(number));
      to[i] = static_cast<float>(number);
    }
  }
  if (count_ == 0) return {};
  compute.run("cudaMemcpyAsync", [&](cudaStream_t stream) {
    return cudaMemcpyAsync(gradients_.data(), staging_.data(), gradients_.bytes(),
                           cudaMemcpyHostToDevice, stream);
  });
  return compute.wait();
}

}  // namespace rrfp
