#include "executor/stop_signals.h"

#include <unistd.h>

#include <cerrno>

namespace rrfp {

namespace {

// What the handler may use: set before it is installed.
std::atomic<std::atomic<bool>*> stop_flag{nullptr};
std::atomic<const WaitingLine*> waiting_line{nullptr};

extern "C" void on_stop(int) {
  const int saved = errno;
  if (const WaitingLine* line = waiting_line.load()) line->write_to(STDERR_FILENO);
  if (std::atomic<bool>* flag = stop_flag.load()) flag->store(true);
  errno = saved;
}

}  // namespace

StopSignals::StopSignals(std::shared_ptr<std::atomic<bool>> stop, const WaitingLine* line)
    : stop_(std::move(stop)) {
  stop_flag.store(stop_.get());
  waiting_line.store(line);
  struct sigaction action {};
  action.sa_handler = on_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
  waiting_line.store(nullptr);
  stop_flag.store(nullptr);
}

}  // namespace rrfp
