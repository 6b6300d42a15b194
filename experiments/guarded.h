// Where exceptions end: what asks for too much memory is an error like others.
//
// Thread safety: as the function.
#pragma once

#include <new>
#include <stdexcept>

#include "scheduler_core/result.h"

namespace rrfp {

/// What `function` returns, a Result.
template <typename Function>
auto without_exceptions(const Function& function) -> decltype(function()) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Error{"not enough memory for what this asks for"};
  } catch (const std::length_error&) {
    return Error{"not enough memory for what this asks for"};
  }
}

}  // namespace rrfp
