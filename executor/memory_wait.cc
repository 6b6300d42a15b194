#include "executor/memory_wait.h"

#include <algorithm>
#include <vector>

namespace rrfp {

namespace {

// The first that is ready and that the rank's memory does not admit, with the number of its stage
// among those of the rank; kNoTask: none.
struct Refused {
  TaskId task = kNoTask;
  int local_stage = 0;
};

Refused first_refused(const Program& program, const RankScheduler& scheduler, int rank) {
  std::vector<TaskId> ready(static_cast<std::size_t>(scheduler.size()));
  ready.resize(scheduler.ready(ready));
  const auto& stages = program.stages_of(rank);
  for (const TaskId task : ready) {
    if (program.slot_of(task) != Slot::kForward) continue;
    const auto found = std::find(stages.begin(), stages.end(), program.stage_of(task));
    const auto local = static_cast<int>(found - stages.begin());
    if (!scheduler.admission().admits(local, program.microbatch_of(task))) return {task, local};
  }
  return {};
}

// A rank without one waits for a while, and not for ever.
std::string wider_window(int window) {
  return window == kNoWindow ? "an order that needs less"
                             : "a larger \"window\" than " + std::to_string(window) + ", or none";
}

}  // namespace

std::string memory_wait(const PreparedCase& world, const CoreMachines& machines, int rank) {
  const RankScheduler& scheduler = machines.scheduler();
  if (!scheduler.admission().limited() || scheduler.decided() == scheduler.size()) return {};
  const Program& program = world.program();
  const Admission& memory = scheduler.admission();
  const Refused refused = first_refused(program, scheduler, rank);
  if (refused.task == kNoTask) return {};
  // What would fit may be ready too, outside the window.
  const bool is_next = scheduler.task_at(scheduler.first_undecided()) == refused.task;
  if (!is_next && machines.last_reason() != WaitReason::kMemory) return {};
  const int microbatch = program.microbatch_of(refused.task);
  const std::optional<std::int64_t>& budget =
      world.input().memory.budget_bytes[static_cast<std::size_t>(rank)];
  const bool eager = world.input().network.mode == NetworkMode::kEager;
  return "waits for memory to run " + to_string(program.task(refused.task)) + ": it takes " +
         std::to_string(memory.activation(refused.local_stage, microbatch)) +
         " bytes; of the rank's budget of " + std::to_string(*budget) + " bytes " +
         std::to_string(memory.held_bytes()) + " are in use and " +
         std::to_string(memory.room(refused.local_stage)) + " are free for stage " +
         std::to_string(program.stage_of(refused.task)) + "; raise the memory budget of rank " +
         std::to_string(rank) + ", in the units that its file counts in, or give the policy " +
         (eager ? wider_window(world.input().policy.window) : "an order that needs less");
}

}  // namespace rrfp
