#include "executor/module_loader.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

#include "executor/launcher.h"

namespace rrfp {

namespace {

// The folder of the running program, with its slash.
std::string program_folder() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) return "./";
  const std::string text(path.data(), static_cast<std::size_t>(length));
  return text.substr(0, text.rfind('/') + 1);
}

// Where the user has it; empty counts as unset, as it does in a shell.
std::optional<std::string> given_path(const char* variable) {
  const std::optional<std::string> path = environment(variable);
  return path && !path->empty() ? path : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<ProcessSession>> open_mpi(const MpiSettings& settings) {
  const std::string path =
      given_path("RRFP_MPI_MODULE").value_or(program_folder() + "librrfp_mpi.so");
  // Global, for the parts that MPI opens itself look for its symbols.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    return Error{"no MPI here: " + std::string(dlerror()) +
                 "; build with -DRRFP_MPI=ON, or set RRFP_MPI_MODULE to the module"};
  }
  const auto* offered = static_cast<const MpiModule*>(dlsym(module, kMpiModuleSymbol));
  if (offered == nullptr || offered->version != kMpiModuleVersion) {
    return Error{path + ": is no MPI module of this program, or of another version"};
  }
  std::string error;
  ProcessSession* session = offered->open(settings, error);
  if (session == nullptr) return Error{path + ": " + error};
  return std::unique_ptr<ProcessSession>(session);
}

Result<const CudaModule*> open_cuda() {
  const std::optional<std::string> given = given_path("RRFP_CUDA_MODULE");
  const std::string path = given.value_or(program_folder() + "librrfp_cuda.so");
  if (!given && access(path.c_str(), F_OK) != 0) {
    return Error{"no CUDA device: rrfp was built without CUDA (there is no " + path +
                 "); build with -DRRFP_CUDA=ON, or set RRFP_CUDA_MODULE to the module"};
  }
  // Local and to itself: a module and its double define the same names.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) {
    return Error{"no CUDA device: the module does not load: " + std::string(dlerror())};
  }
  const auto* offered = static_cast<const CudaModule*>(dlsym(module, kCudaModuleSymbol));
  if (offered == nullptr || offered->version != kCudaModuleVersion) {
    return Error{"no CUDA device: " + path +
                 " is no CUDA module of this program, or of another version"};
  }
  return offered;
}

}  // namespace rrfp
