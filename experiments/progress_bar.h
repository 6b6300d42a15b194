// How far a long command is, on a terminal; elsewhere it prints nothing.
//
// Thread safety: add() may be called by any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <iosfwd>
#include <mutex>

namespace rrfp {

class ProgressBar {
 public:
  /// `visible` says whether `out` is a terminal, see is_terminal_stderr().
  ProgressBar(std::ostream& out, bool visible, std::size_t total);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Wipes the line.
  ~ProgressBar();

  void add(std::size_t done = 1);

 private:
  void draw(std::size_t done);

  std::ostream& out_;
  const bool visible_;
  const std::size_t total_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<std::size_t> done_{0};
  std::mutex mutex_;
  std::chrono::steady_clock::time_point drawn_;  // guarded by mutex_
};

bool is_terminal_stderr();

}  // namespace rrfp
