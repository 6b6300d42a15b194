#include "executor/cuda_double_loading.h"

#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

#include "executor/cuda_double_devices.h"
#include "executor/cuda_double_streams.h"

namespace rrfp {

namespace {

struct Loaded {
  std::mutex mutex;
  std::set<std::pair<int, std::string>> kernels;  // with their device
};

Loaded& loaded() {
  static Loaded* const of_process = new Loaded;
  return *of_process;
}

}  // namespace

void load_library_kernel(const std::string& kernel) {
  const int device = current_double_device();
  {
    const std::lock_guard<std::mutex> lock(loaded().mutex);
    if (!loaded().kernels.insert({device, kernel}).second) return;
  }
  if (spinning_kernels(device) == 0) return;
  DoubleMachine::get().check([&](DoubleChecks& checks) {
    checks.object("the first use of " + kernel + " loads it, which waits for device " +
                  std::to_string(device) +
                  ", on which a kernel of NCCL waits for its peer: use it before");
  });
}

void load_kernel(const std::string& kernel) {
  const char* const loading = std::getenv("CUDA_MODULE_LOADING");
  if (loading != nullptr && std::string(loading) == "EAGER") return;
  load_library_kernel(kernel);
}

}  // namespace rrfp
