// Libraries that are opened while the program runs, and functions looked up in
// them.
//
// Thread safety: any.
#pragma once

#include <dlfcn.h>

#include <string>

#include "scheduler_core/result.h"

namespace rrfp {

/// Stays open to the end of the program. `need`: who needs what, for the error,
/// which says where it was looked for.
inline Result<void*> open_library(const std::string& name, const std::string& need) {
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  return Error{need + ", which does not load: " + std::string(dlerror()) + "; add the folder of " +
               name + " to LD_LIBRARY_PATH"};
}

/// False where the library has none of that name; dlerror() then says so.
template <typename Function>
bool look_up(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

}  // namespace rrfp
