#include "traces/workload_machine.h"

#include <array>
#include <string>
#include <vector>

#include "scheduler_core/nearest.h"

namespace rrfp {

namespace {

// name, title, FLOP/s, memory, memory bandwidth, NVLink, network, source
constexpr std::array<Gpu, 4> kGpus = {{
    {"a100", "A100 80GB SXM", 312e12, 80e9, 2.039e12, 300e9, 25e9,
     "NVIDIA A100 data sheet; a 200 Gbit/s port per GPU, as in DGX A100"},
    {"a100-40gb", "A100 40GB SXM", 312e12, 40e9, 1.555e12, 300e9, 25e9,
     "NVIDIA A100 data sheet; a 200 Gbit/s port per GPU, as in DGX A100"},
    {"h100", "H100 SXM", 989e12, 80e9, 3.35e12, 450e9, 50e9,
     "NVIDIA H100 data sheet; a 400 Gbit/s port per GPU, as in DGX H100"},
    {"h200", "H200 SXM", 989e12, 141e9, 4.8e12, 450e9, 50e9,
     "NVIDIA H200 data sheet; a 400 Gbit/s port per GPU, as in DGX H200"},
}};

}  // namespace

std::span<const Gpu> named_gpus() { return kGpus; }

Result<Gpu> find_gpu(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Gpu& gpu : kGpus) {
    if (gpu.name == name) return gpu;
    names.push_back(gpu.name);
  }
  std::string all;
  for (const std::string_view known : by_nearness(name, names)) {
    all += (all.empty() ? "" : ", ") + std::string(known);
  }
  return Error{"no GPU is called " + std::string(name) + "; expected one of " + all};
}

}  // namespace rrfp
