// What bounds a wait in which other processes take part through NCCL, and ends
// it early: NCCL notices no peer that is gone, so they are looked at over the
// control plane meanwhile.
//
// Invariants
//  1. go_on() fails soon after a process of `everyone` said that it cannot go on,
//     or was lost (not over MPI, whose runtime ends the job); and from then on.
//     Without `everyone` it bounds the wait, no more.
//  2. After give_up(), agree() ends in one error for all, wherever all can still
//     be asked; where they cannot, each has its own.
//  3. From its beginning to the end of agree() it takes the patience and
//     kBrieflyNs at most.
//
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "executor/lane_exchange.h"
#include "scheduler_core/result.h"

namespace rrfp {

class CudaPeerWait {
 public:
  /// Until then nobody is told.
  static constexpr std::int64_t kSlowNs = 5'000'000'000;
  /// So long after the patience all have given up, and say so, but for those that
  /// are stuck.
  static constexpr std::int64_t kBrieflyNs = 2'000'000'000;
  /// Told what is waited for where it takes long, for people.
  using Tell = std::function<void(const std::string& what)>;

  /// Nobody is looked at: for a wait in a run, whose workers do. The patience is
  /// that of --patience-ms.
  explicit CudaPeerWait(std::int64_t patience_ns);
  /// For what all processes do at the same point, `what` ("connecting NCCL"),
  /// which ends with agree(). The patience is that of --agree-ms. `everyone`
  /// outlives it; `tell` may be empty.
  CudaPeerWait(std::int64_t patience_ns, LaneExchange& everyone, std::string what, Tell tell,
               std::int64_t slow_ns = kSlowNs);

  /// The part of it that is waited for from now on, for people.
  void begin(std::string step) { step_ = std::move(step); }
  /// Ok: the wait goes on. The error begins with `late` where it has taken too
  /// long; else it names the process at fault.
  Result<void> go_on(const char* late);

  /// This process cannot go on; the others learn it by go_on(), unless it is they
  /// who are at fault.
  void give_up(const Error& why);
  /// Whether all processes came to the end of it: all call this, and get one
  /// error. Where one is lost each gets its own, which names that one.
  Result<void> agree(const Result<void>& mine);
  /// What to say where all could not be asked, for `error`.
  Error not_all(const Error& error) const;

 private:
  Result<void> look(std::int64_t now_ns);
  Result<std::string> ask_all(const Result<void>& mine);
  void tell_if_slow(std::int64_t now_ns);

  const std::int64_t patience_ns_;
  const std::int64_t begin_ns_;
  LaneExchange* const everyone_ = nullptr;  // null: nobody is looked at
  const std::string what_;
  const Tell tell_;
  std::string step_;
  std::int64_t next_look_ns_ = 0;
  std::int64_t tell_after_ns_ = 0;
  bool late_ = false;
  std::optional<Error> trouble_;  // of another process
};

}  // namespace rrfp
