#include "experiments/progress_bar.h"

#include <unistd.h>

#include <ostream>
#include <string>

#include "experiments/display_units.h"

namespace rrfp {

namespace {

constexpr std::size_t kWidth = 30;
constexpr std::chrono::milliseconds kBetweenDrawings{100};

}  // namespace

bool is_terminal_stderr() { return ::isatty(STDERR_FILENO) == 1; }

ProgressBar::ProgressBar(std::ostream& out, bool visible, std::size_t total)
    : out_(out),
      visible_(visible && total > 0),
      total_(total),
      start_(std::chrono::steady_clock::now()),
      drawn_(start_) {}

ProgressBar::~ProgressBar() {
  if (visible_) out_ << "\r\x1b[K" << std::flush;
}

void ProgressBar::add(std::size_t done) {
  const std::size_t now_done = done_.fetch_add(done, std::memory_order_relaxed) + done;
  if (!visible_) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;  // somebody else is drawing
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < kBetweenDrawings) return;
  drawn_ = now;
  draw(now_done);
}

void ProgressBar::draw(std::size_t done) {
  const std::size_t filled = kWidth * done / total_;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const double left = seconds * static_cast<double>(total_ - done) / static_cast<double>(done);
  out_ << "\r\x1b[K[" << std::string(filled, '#') << std::string(kWidth - filled, ' ') << "] "
       << done << "/" << total_ << ", " << fixed(left, 0) << " s left" << std::flush;
}

}  // namespace rrfp
