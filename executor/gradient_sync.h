// The end of an iteration: stage by stage, the gradients of all replicas are
// summed once the last replica has finished the last accumulating task of the
// stage; replica 0 gathers and sums in the order of replicas. Then comes the
// optimizer.
//
// Not thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/iteration_loop.h"

namespace rrfp {

class GradientSync {
 public:
  explicit GradientSync(const LoopContext& context);

  /// `task` has ended.
  Result<void> on_finished(TaskId task, std::int64_t now_ns);
  /// kGradient or kReduced.
  Result<void> on_letter(const Letter& letter, Payload payload, std::int64_t now_ns);
  /// Applies what is due. True where something was.
  Result<bool> step(std::int64_t now_ns);
  std::int64_t next_ns() const;
  /// All stages of the rank are synchronised, and the optimizer is done.
  bool finished() const { return ended_; }
  std::int64_t end_ns() const { return end_ns_; }
  /// "the gradient of stage 3 from replica 1", or "".
  std::string waiting() const;
  std::vector<SyncRecord> take_records() { return std::move(records_); }

 private:
  struct Stage {
    int stage = 0;
    int accumulating = 0;                          // tasks of it that have yet to end
    std::vector<std::optional<Payload>> gathered;  // replica 0: by replica
    std::optional<Payload> reduced;                // waits for due_ns
    std::int64_t due_ns = kNever;
    std::int64_t start_ns = 0;
    bool done = false;
  };

  Stage* find(int stage);
  Result<void> gather(Stage& stage, int replica, Payload payload, std::int64_t now_ns);

  LoopContext context_;
  std::vector<Stage> stages_;
  int open_ = 0;
  std::int64_t optimizer_due_ns_ = kNever;
  bool ended_ = false;
  std::int64_t end_ns_ = 0;
  std::vector<SyncRecord> records_;
};

}  // namespace rrfp
