// May the sender of an activation transmit it yet? A credit stands for a
// buffer at the receiver of one edge of the stage graph. It is taken when a
// message is sent, and comes back when the F that uses the message is decided.
// Gradients need none: their buffer is taken together with the activation.
//
// Which message goes next follows the receiver's admission rule:
//  shares        in the order in which the outputs were finished.
//  oldest first  the lowest microbatch first, and the last free credit is kept
//                for the lowest microbatch not yet sent.
//
// Invariants
//  1. Messages sent and not yet used never exceed the credits.
//  2. Every microbatch is sent once, after its output.
//  3. Oldest first: whenever every credit has come back, the lowest microbatch
//     not yet sent can be sent as soon as it is there. (So with one credit the
//     messages of the edge go in microbatch order.)
//
// No allocation after construction. Not thread safe.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler_core/admission.h"
#include "scheduler_core/check.h"
#include "scheduler_core/position_set.h"

namespace rrfp {

class EdgeCredits {
 public:
  /// Of one edge. REQUIRES: credits >= 1.
  EdgeCredits(int microbatches, int credits, AdmissionRule rule)
      : rule_(rule),
        credits_(credits),
        fifo_(static_cast<std::size_t>(microbatches)),
        waiting_(microbatches),
        sent_(static_cast<std::size_t>(microbatches)) {
    RRFP_CHECK(credits >= 1);
    reset();
  }

  /// Back to the start of an iteration, all credits free.
  void reset() {
    free_ = credits_;
    finished_ = taken_ = sent_count_ = 0;
    lowest_unsent_ = 0;
    waiting_.clear();
    sent_.assign(sent_.size(), false);
  }

  /// The output of `microbatch` is there. REQUIRES: not reported before.
  void on_output(int microbatch) {
    RRFP_CHECK(!sent_[static_cast<std::size_t>(microbatch)] && !waiting_.contains(microbatch));
    waiting_.insert(microbatch);
    if (rule_ == AdmissionRule::kShares) {
      fifo_[static_cast<std::size_t>(finished_)] = microbatch;
    }
    ++finished_;
  }

  /// The receiver has decided an F that uses a message of this edge.
  void on_credit() {
    RRFP_CHECK(free_ < credits_);
    ++free_;
  }

  static constexpr int kNothing = -1;

  /// The microbatch to send now, which takes a credit; kNothing where none may
  /// go. Call until it says so.
  int next() {
    if (free_ == 0 || waiting_.empty()) return kNothing;
    int microbatch = waiting_.first();
    if (rule_ == AdmissionRule::kShares) {
      microbatch = fifo_[static_cast<std::size_t>(taken_++)];
    } else if (free_ == 1 && microbatch != lowest_unsent_) {
      return kNothing;
    }
    --free_;
    ++sent_count_;
    waiting_.erase(microbatch);
    sent_[static_cast<std::size_t>(microbatch)] = true;
    while (lowest_unsent_ < static_cast<int>(sent_.size()) &&
           sent_[static_cast<std::size_t>(lowest_unsent_)]) {
      ++lowest_unsent_;
    }
    return microbatch;
  }

  int free() const { return free_; }
  /// Outputs that are there and wait for a credit.
  bool waits() const { return !waiting_.empty(); }
  int sent() const { return sent_count_; }

 private:
  AdmissionRule rule_;
  int credits_;
  int free_ = 0;
  int finished_ = 0;  // outputs reported
  int taken_ = 0;     // of fifo_
  int sent_count_ = 0;
  int lowest_unsent_ = 0;
  std::vector<int> fifo_;  // shares: microbatches in order of finish
  PositionSet waiting_;
  std::vector<bool> sent_;
};

}  // namespace rrfp
