// Ctrl-C as a question that long work asks between two pieces of it, so that
// what is done can still be written. A second Ctrl-C ends the program at once.
#pragma once

#include <csignal>

namespace rrfp {

/// While one lives, SIGINT and SIGTERM set a flag. At most one at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  ~InterruptGuard();

  /// Any thread may ask.
  bool requested() const;

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace rrfp
