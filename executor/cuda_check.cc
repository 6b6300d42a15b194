#include "executor/cuda_check.h"

#include <algorithm>
#include <cstdio>

#include "executor/clock.h"
#include "executor/cuda_figures.h"
#include "executor/cuda_launchers.h"
#include "executor/cuda_model_comparison.h"
#include "executor/cuda_partition.h"

namespace rrfp {

namespace {

constexpr int kPartitions = 4;
constexpr int kProducts = 2'000;
constexpr std::int64_t kPatienceNs = 5'000'000'000;
constexpr std::size_t kNcclBytes = std::size_t{8} << 20;

std::string scientific(Real number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1e", number);
  return text;
}

// Work of known results on every SM of a partition, and how long it took to be seen at its end.
Result<std::int64_t> work_ns(CudaPartition& partition) {
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  Result<void> launched =
      check_cuda("launch of a chain of products",
                 launch_matrix_chain(partition.sms(), kProducts, {partition.fault().get(), 1},
                                     partition.compute()));
  if (!launched.ok()) return launched.error();
  const Result<std::int64_t> took_ns =
      passed_after_ns(partition.compute_marks(), begin_ns, kPatienceNs);
  if (took_ns.ok() && partition.fault().load() != 0) {
    return Error{"a chain of products came out wrong"};
  }
  return took_ns;
}

Result<std::string> check_partitions(CudaDevicePartitions& partitions) {
  std::int64_t least_ns = 0;
  std::int64_t most_ns = 0;
  for (int i = 0; i < kPartitions; ++i) {
    const Result<std::int64_t> first = work_ns(partitions.partition(i));  // loads the kernel
    if (!first.ok()) return Error{"partition " + std::to_string(i) + ": " + first.error().message};
    const Result<std::int64_t> took = work_ns(partitions.partition(i));
    if (!took.ok()) return Error{"partition " + std::to_string(i) + ": " + took.error().message};
    least_ns = i == 0 ? *took : std::min(least_ns, *took);
    most_ns = std::max(most_ns, *took);
  }
  return std::to_string(kProducts) + " products of known result take " +
         std::to_string(least_ns / 1000) + " to " + std::to_string(most_ns / 1000) + " us in " +
         partitions.describe();
}

Result<CudaMatrix> upload(const Matrix& from, CudaCompute& compute,
                          std::vector<CudaMemory>& memory) {
  const std::vector<float> numbers(from.data(), from.data() + from.size());
  const std::size_t bytes = numbers.size() * sizeof(float);
  Result<CudaMemory> made = CudaMemory::create(bytes, "a matrix");
  if (!made.ok()) return made.error();
  memory.push_back(std::move(*made));
  std::byte* const to = memory.back().data();
  compute.run("cudaMemcpyAsync", [&](cudaStream_t on) {
    return cudaMemcpyAsync(to, numbers.data(), bytes, cudaMemcpyHostToDevice, on);
  });
  if (Result<void> waited = compute.wait(); !waited.ok()) return waited.error();
  return CudaMatrix::dense(reinterpret_cast<float*>(to), static_cast<int>(from.rows()),
                           static_cast<int>(from.cols()));
}

// Numbers of few bits: sums of their products are exact in any order, and so is what cuBLAS says.
Matrix small_integers(int rows, int columns) {
  Matrix made(rows, columns);
  for (Eigen::Index i = 0; i < made.size(); ++i) {
    made.data()[i] = static_cast<Real>((i * 7 + i / 5) % 15 - 7);
  }
  return made;
}

Result<std::string> check_products(CudaCompute& compute) {
  constexpr int kRows = 96;
  constexpr int kInner = 200;
  constexpr int kColumns = 160;
  const Matrix a = small_integers(kRows, kInner);
  const Matrix b = small_integers(kInner, kColumns);
  const Matrix c = small_integers(kColumns, kInner);
  std::vector<CudaMemory> memory;
  std::vector<CudaMatrix> on_device;
  for (const Matrix& matrix :
       {a, b, c, Matrix(Matrix::Zero(kRows, kColumns)), Matrix(Matrix::Ones(kInner, kInner))}) {
    const Result<CudaMatrix> uploaded = upload(matrix, compute, memory);
    if (!uploaded.ok()) return uploaded.error();
    on_device.push_back(*uploaded);
  }
  const auto differs = [&](const CudaMatrix& found, const Matrix& expected) -> Result<bool> {
    const Result<Matrix> fetched = fetch(found, compute);
    if (!fetched.ok()) return fetched.error();
    return *fetched != expected;
  };
  const CudaMatrix& to = on_device[3];
  const CudaMatrix& sum = on_device[4];
  compute.product(on_device[0], on_device[1], to);
  Result<bool> wrong = differs(to, a * b);
  if (wrong.ok() && *wrong) return Error{"a product of integers is not exact"};
  compute.product_by_transposed(on_device[0], on_device[2], to);
  if (wrong.ok()) wrong = differs(to, a * c.transpose());
  if (wrong.ok() && *wrong) return Error{"a product by a transposed matrix is not exact"};
  compute.add_transposed_product(on_device[0], on_device[0], sum);
  if (wrong.ok()) wrong = differs(sum, Matrix::Ones(kInner, kInner) + a.transpose() * a);
  if (wrong.ok() && *wrong) return Error{"a sum with a transposed product is not exact"};
  if (!wrong.ok()) return wrong.error();
  return std::string("cuBLAS loads; three kinds of products of integers are exact");
}

// Two microbatches, a step, and one more, so that no weight is still 0.
Result<std::string> check_model(const ModelSpec& spec, int stages, CudaCompute& compute) {
  Result<std::unique_ptr<CudaModelComparison>> model =
      CudaModelComparison::create(spec, stages, compute);
  if (!model.ok()) return model.error();
  std::vector<Deviation> all;
  const auto add = [&](const Result<std::vector<Deviation>>& some) -> Result<void> {
    if (!some.ok()) return some.error();
    all.insert(all.end(), some->begin(), some->end());
    return {};
  };
  const Real scale = 1 / static_cast<Real>(2 * spec.longest);
  Result<void> done = add((*model)->pass(spec.longest, scale));
  if (done.ok()) done = add((*model)->pass(spec.longest / 2 + 1, scale));
  if (done.ok()) done = add((*model)->step({}));
  if (done.ok()) done = add((*model)->pass(spec.longest, scale));
  if (!done.ok()) return done.error();
  const Deviation& most = *std::max_element(
      all.begin(), all.end(),
      [](const Deviation& a, const Deviation& b) { return a.largest < b.largest; });
  const std::string text = "of " + std::to_string(all.size()) + " tensors the furthest is " +
                           most.of + ", by " + scientific(most.largest);
  if (!(most.largest <= kMostDeviation)) {
    return Error{text + "; allowed: " + scientific(kMostDeviation)};
  }
  return text;
}

ModelSpec model_of(int width, int heads, int longest) {
  ModelSpec spec;
  spec.width = width;
  spec.heads = heads;
  spec.mlp_width = 2 * width;
  spec.blocks = 3;
  spec.longest = longest;
  return spec;
}

void tell_of(std::string what, const Result<std::string>& came, const OnCudaCheck& tell) {
  tell({std::move(what), came.ok(), came.ok() ? *came : came.error().message});
}

void check_training(cudaStream_t stream, const OnCudaCheck& tell) {
  const Result<std::unique_ptr<CudaCompute>> compute = CudaCompute::create(stream, false);
  if (!compute.ok()) return tell({"matrix products", false, compute.error().message});
  tell_of("matrix products", check_products(**compute), tell);
  // Sizes that fill no block of threads, and some that fill several.
  tell_of("small model against the CPU's", check_model(model_of(24, 3, 9), 3, **compute), tell);
  tell_of("wide model against the CPU's", check_model(model_of(192, 6, 80), 2, **compute), tell);
}

}  // namespace

void check_cuda_device(int device, const OnCudaCheck& tell) {
  Result<CudaDevicePartitions> partitions = CudaDevicePartitions::create(device, kPartitions);
  if (!partitions.ok()) return tell({"partitions", false, partitions.error().message});
  const Result<std::string> worked = check_partitions(*partitions);
  tell_of("partitions", worked, tell);
  if (!worked.ok()) return;
  check_training(partitions->partition(0).compute(), tell);
  tell_of("NCCL", check_cuda_nccl(kNcclBytes), tell);
}

#if !RRFP_CUDA_NCCL
Result<std::string> check_cuda_nccl(std::size_t) {
  return Error{"rrfp was built without NCCL (there was no nccl.h)"};
}
#endif

}  // namespace rrfp
