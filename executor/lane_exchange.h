// The collective inside a task: the lanes of a group hand each other bytes, and
// each gets those of all, in lane order. Sums are made of that by whoever
// computes, in lane order, so that every lane has the same bits.
//
// Blocking: every lane must come, with the same tasks in the same order (which
// is what AnnouncedSequence is for).
//
// Thread safety: one thread per lane.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "executor/letter.h"
#include "scheduler_core/result.h"

namespace rrfp {

class LaneExchange {
 public:
  virtual ~LaneExchange() = default;
  virtual int lanes() const = 0;
  /// All lanes' bytes, by lane; all of one size. The error: a lane did not come
  /// within the patience, has left, or brought another size. Among processes it
  /// is that of all later ones, too: none waits again for one that did not come.
  virtual Result<std::vector<Payload>> exchange(Payload mine) = 0;
  /// This lane comes no more; whoever waits for it learns of it at once, where
  /// lanes can tell each other. (MPI processes cannot; their job is ended.)
  virtual void leave() {}
  /// `handler` is told, once, of the lane that the next exchange waits for, where
  /// it does so for `after_ns`, and lanes are processes. May be empty.
  virtual void on_slow([[maybe_unused]] std::int64_t after_ns,
                       [[maybe_unused]] std::function<void(int lane)> handler) {}

  /// The next exchange waits for no longer, whatever the patience is, where lanes
  /// are processes.
  virtual void next_waits_at_most([[maybe_unused]] std::int64_t ns) {}

  /// Whether all can still come to the next exchange; does not wait. For whoever
  /// waits for the others by other means. The error, where lanes can tell each
  /// other: one is lost (not over MPI, whose runtime ends the job), or has said
  /// warn().
  virtual Result<void> look() { return {}; }
  /// This lane cannot go on. It still comes to the next exchange, which is where
  /// it says so to all alike; until then the others learn it by look().
  virtual void warn([[maybe_unused]] const std::string& why) {}
};

/// One lane: gives back what it gets.
class LoneExchange final : public LaneExchange {
 public:
  int lanes() const override { return 1; }
  Result<std::vector<Payload>> exchange(Payload mine) override {
    std::vector<Payload> all;
    all.push_back(std::move(mine));
    return all;
  }
};

/// One that cannot take place.
class BrokenLaneExchange final : public LaneExchange {
 public:
  explicit BrokenLaneExchange(Error error) : error_(std::move(error)) {}
  int lanes() const override { return 1; }
  Result<std::vector<Payload>> exchange(Payload) override { return error_; }

 private:
  Error error_;
};

/// The lanes of one group as threads of one process.
class ThreadsLaneGroup {
 public:
  ThreadsLaneGroup(int lanes, std::int64_t patience_ns)
      : patience_ns_(patience_ns), parts_(static_cast<std::size_t>(lanes)) {}

  Result<std::vector<Payload>> exchange(int lane, Payload mine);
  void leave();
  int lanes() const { return static_cast<int>(parts_.size()); }

 private:
  const std::int64_t patience_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Payload> parts_;  // of this round
  int came_ = 0;
  int left_ = 0;
  std::uint64_t round_ = 0;
  bool open_ = true;   // for the parts of this round
  bool gone_ = false;  // a lane has left: no further round can be completed
};

/// One lane's end of a ThreadsLaneGroup.
class ThreadsLaneExchange final : public LaneExchange {
 public:
  ThreadsLaneExchange(std::shared_ptr<ThreadsLaneGroup> group, int lane)
      : group_(std::move(group)), lane_(lane) {}
  int lanes() const override { return group_->lanes(); }
  Result<std::vector<Payload>> exchange(Payload mine) override {
    return group_->exchange(lane_, std::move(mine));
  }
  void leave() override { group_->leave(); }

 private:
  std::shared_ptr<ThreadsLaneGroup> group_;
  int lane_;
};

}  // namespace rrfp
