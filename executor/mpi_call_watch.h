// Bounds calls of MPI that wait for other processes and have no bound of their
// own: one of the others may have ended, or run something else.
//
// Thread safety: the handlers are called by a thread of the watch.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace rrfp {

class MpiCallWatch {
 public:
  struct Limit {
    std::int64_t ns = 0;
    std::function<void()> handler;
  };

  /// From now until its end. `slow` is told of it once. `late` ends the process,
  /// for the call cannot be left.
  MpiCallWatch(Limit slow, Limit late);
  ~MpiCallWatch();
  MpiCallWatch(const MpiCallWatch&) = delete;
  MpiCallWatch& operator=(const MpiCallWatch&) = delete;

 private:
  bool over_within(std::int64_t ns);
  void watch(const Limit& slow, const Limit& late);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace rrfp
