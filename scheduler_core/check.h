// A broken invariant ends the program, in release builds too: a scheduler that
// goes on after its own state is wrong would report times nobody can trust.
#pragma once

namespace rrfp {

/// Prints `expression (file:line)` on standard error and aborts.
[[noreturn]] void check_failed(const char* expression, const char* file, int line);

}  // namespace rrfp

/// REQUIRES: `condition` has no side effects. Active in every build type.
#define RRFP_CHECK(condition)                                \
  (__builtin_expect(!!(condition), 1) ? static_cast<void>(0) \
                                      : ::rrfp::check_failed(#condition, __FILE__, __LINE__))
