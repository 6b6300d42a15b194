#include "executor/cuda_double_streams.h"

#include <sys/prctl.h>

#include "executor/clock.h"

namespace rrfp {

DoubleStream::DoubleStream(DoubleMachine& machine, int number)
    : machine_(machine), number_(number), thread_([this] { work_off(); }) {}

DoubleStream::~DoubleStream() {
  {
    const std::lock_guard<std::mutex> lock(machine_.mutex_);
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void DoubleStream::enqueue(DoubleWork work, std::function<void()> run) {
  const std::lock_guard<std::mutex> lock(machine_.mutex_);
  machine_.checks_.on_enqueued(number_, work);
  // What has been objected to might crash.
  const bool harmless = work.accesses.empty() || machine_.checks_.objection().empty();
  queue_.push_back(harmless ? std::move(run) : [] {});
  changed_.notify_all();
}

bool DoubleStream::idle() const {
  const std::lock_guard<std::mutex> lock(machine_.mutex_);
  return queue_.empty();
}

void DoubleStream::wait_until_idle() {
  std::unique_lock<std::mutex> lock(machine_.mutex_);
  changed_.wait(lock, [this] { return queue_.empty(); });
}

// Work is forgotten before what it leaves behind (a mark, an event) can be seen:
// the run of a mark is therefore cheap, and comes with the next lock.
void DoubleStream::work_off() {
  // The default slack of 50 us would be added to every timer.
  prctl(PR_SET_TIMERSLACK, 1);
  std::unique_lock<std::mutex> lock(machine_.mutex_);
  while (true) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()>& run = queue_.front();
    lock.unlock();
    run();
    lock.lock();
    machine_.checks_.on_done(number_);
    queue_.pop_front();
    changed_.notify_all();
  }
}

DoubleMachine& DoubleMachine::get() {
  static DoubleMachine* const machine = new DoubleMachine;
  return *machine;
}

std::string DoubleMachine::objection() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return checks_.objection();
}

void DoubleMachine::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  checks_ = DoubleChecks();
}

DoubleStream* DoubleMachine::add_stream() {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.push_back(std::make_unique<DoubleStream>(*this, streams_made_++));
  return streams_.back().get();
}

void DoubleMachine::remove_stream(DoubleStream* stream) {
  std::unique_ptr<DoubleStream> removed;  // ends outside the lock, which its thread takes
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto entry = streams_.begin(); entry != streams_.end(); ++entry) {
    if (entry->get() != stream) continue;
    removed = std::move(*entry);
    streams_.erase(entry);
    return;
  }
}

int DoubleMachine::position_of(const DoubleStream& stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  int position = 0;
  for (const auto& other : streams_) {
    if (other.get() == &stream) break;
    ++position;
  }
  return position;
}

void DoubleMachine::record(const std::shared_ptr<DoubleEvent>& event, DoubleStream& stream) {
  std::uint64_t number = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    number = ++event->recorded;
  }
  stream.enqueue({"an event", {}}, [this, event, number] {
    const std::lock_guard<std::mutex> lock(mutex_);
    event->reached = number;
    event->time_ns = MonotonicClock::read_ns();
    event_reached_.notify_all();
  });
}

bool DoubleMachine::reached(const DoubleEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return event.reached == event.recorded;
}

void DoubleMachine::wait_for(const DoubleEvent& event) {
  std::unique_lock<std::mutex> lock(mutex_);
  event_reached_.wait(lock, [&] { return event.reached == event.recorded; });
}

}  // namespace rrfp
