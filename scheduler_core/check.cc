#include "scheduler_core/check.h"

#include <cstdio>
#include <cstdlib>

namespace rrfp {

void check_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "rrfp: broken invariant: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace rrfp
