// The streams of the double: ordered queues, each worked off by a CPU thread.
//
// Thread safety: any; one lock guards everything but the work itself.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor/cuda_double_checks.h"

namespace rrfp {

class DoubleMachine;

class DoubleStream {
 public:
  DoubleStream(DoubleMachine& machine, int number);
  /// Does what it still holds, first.
  ~DoubleStream();
  DoubleStream(const DoubleStream&) = delete;
  DoubleStream& operator=(const DoubleStream&) = delete;

  void enqueue(DoubleWork work, std::function<void()> run);
  bool idle() const;
  void wait_until_idle();

 private:
  void work_off();

  DoubleMachine& machine_;
  const int number_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  // the front is being done
  bool closing_ = false;
  std::thread thread_;
};

/// Recorded in a stream, and reached when the stream gets there.
struct DoubleEvent {
  std::uint64_t recorded = 0;  // how often
  std::uint64_t reached = 0;
  std::int64_t time_ns = 0;
};

/// The one device of the double.
class DoubleMachine {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 30;

  /// Of this process. Never destroyed, as threads may outlive main().
  static DoubleMachine& get();

  /// False where an objection was made, now or before.
  template <typename Function>
  bool check(Function&& function) {
    const std::lock_guard<std::mutex> lock(mutex_);
    function(checks_);
    return checks_.objection().empty();
  }
  std::string objection();
  /// Forgets everything. REQUIRES: no stream, no memory. For tests.
  void reset();

  DoubleStream* add_stream();
  void remove_stream(DoubleStream* stream);
  /// Among those that are there, in the order in which they were made.
  int position_of(const DoubleStream& stream);
  void record(const std::shared_ptr<DoubleEvent>& event, DoubleStream& stream);
  bool reached(const DoubleEvent& event);
  void wait_for(const DoubleEvent& event);

 private:
  friend class DoubleStream;

  std::mutex mutex_;
  std::condition_variable event_reached_;
  DoubleChecks checks_;
  std::list<std::unique_ptr<DoubleStream>> streams_;
  int streams_made_ = 0;
};

}  // namespace rrfp
