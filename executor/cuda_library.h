// Looks functions up in a library that is opened while the program runs.
//
// Thread safety: any.
#pragma once

#include <dlfcn.h>

namespace rrfp {

/// False where the library has none of that name; dlerror() then says so.
template <typename Function>
bool look_up(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

}  // namespace rrfp
