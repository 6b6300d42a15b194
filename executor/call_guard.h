// Says whether a call from a log may be made at all: machines end the program
// where a call breaks their rules, and a log may have been cut or altered.
//
// Not thread safe.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "executor/core_machines.h"
#include "executor/grid.h"
#include "traces/prepared_case.h"

namespace rrfp {

/// Of one worker.
class CallGuard {
 public:
  CallGuard(const PreparedCase& world, const Place& place) : world_(&world), place_(place) {}

  /// Back to the start of an iteration.
  void reset();

  /// Why `call` cannot be made on `machines` now; none where it can, and then
  /// it counts as made.
  std::optional<std::string> refuse(const CoreCall& call, const CoreMachines& machines);
  /// What a decision answered.
  void decided(TaskId task) { running_.insert(task); }

 private:
  std::optional<std::string> refuse_input(const CoreCall& call, bool notice);
  std::optional<std::string> refuse_vote(const CoreCall& call);
  std::optional<std::string> refuse_credits(const CoreCall& call);
  bool is_outgoing_activation(EdgeId edge) const;
  bool of_this_rank(TaskId task) const;

  const PreparedCase* world_;
  Place place_;
  std::set<std::pair<TaskId, int>> inputs_;
  std::set<std::pair<TaskId, int>> notices_;
  std::set<std::pair<int, int>> votes_;
  std::set<std::pair<int, std::int64_t>> outputs_;
  std::set<TaskId> running_;
  std::set<TaskId> announced_;
  std::set<std::pair<int, std::int64_t>> sent_;
  std::int64_t now_ns_ = 0;
};

}  // namespace rrfp
