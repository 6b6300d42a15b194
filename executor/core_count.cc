#include "executor/core_count.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

namespace rrfp {

namespace {

// Those that a process may run on; 0 is the calling thread.
int cores_of_affinity(pid_t process) {
  // A mask that is shorter than the kernel's is refused.
  for (int cpus = 1024; cpus <= 1024 * 1024; cpus *= 4) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(static_cast<std::size_t>(cpus)), [](cpu_set_t* made) { CPU_FREE(made); });
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus));
    if (set != nullptr && sched_getaffinity(process, size, set.get()) == 0) {
      return CPU_COUNT_S(size, set.get());
    }
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

// The least that the process's control group and those around it allow.
std::optional<int> cores_of_control_groups() {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line) && line.rfind("0::/", 0) != 0) {
  }
  if (!groups) return std::nullopt;
  const std::filesystem::path root = "/sys/fs/cgroup";
  std::optional<int> least;
  for (std::filesystem::path group = root / line.substr(4);; group = group.parent_path()) {
    std::ifstream file(group / "cpu.max");
    std::string text;
    if (file && std::getline(file, text)) {
      if (const std::optional<int> cores = cores_of_quota(text)) {
        least = std::min(least.value_or(*cores), *cores);
      }
    }
    if (group == root || !group.has_relative_path()) return least;
  }
}

}  // namespace

std::optional<int> cores_of_quota(const std::string& cpu_max) {
  std::istringstream in(cpu_max);
  long long quota_us = 0;
  long long period_us = 0;
  if (!(in >> quota_us >> period_us) || quota_us <= 0 || period_us <= 0) return std::nullopt;
  return static_cast<int>(std::clamp(quota_us / period_us, 1LL, 1LL << 20));
}

int core_count() {
  const int cores = std::max(1, cores_of_affinity(0));
  return std::min(cores, cores_of_control_groups().value_or(cores));
}

int launcher_core_count() {
  const int cores = std::max({1, cores_of_affinity(0), cores_of_affinity(getppid())});
  return std::min(cores, cores_of_control_groups().value_or(cores));
}

}  // namespace rrfp
