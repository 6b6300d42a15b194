#include "executor/lane_group.h"

#include <algorithm>
#include <bit>
#include <string>

#include "executor/letter_check.h"
#include "executor/loop_letter.h"

namespace rrfp {

LaneGroup::LaneGroup(const LoopContext& context)
    : context_(context),
      program_(context.world->program()),
      machines_(*context.machines),
      lanes_(context.grid.lanes),
      leads_(context.place.lane == 0),
      votes_(lanes_ > 1 && !context.world->leader_decides_alone()),
      states_(static_cast<std::size_t>(program_.task_ids())) {}

Error LaneGroup::wrong(const Letter& letter, const std::string& why) const {
  return out_of_turn(letter, context_.grid, program_, why);
}

bool LaneGroup::on_arrival(EdgeId edge, TaskId task, std::int64_t now_ns) {
  if (!votes_) return leads_;
  if (leads_) return machines_.on_lane(edge, program_.microbatch_of(task), 0);
  Letter vote = letter_of(context_, Tag::kVote);
  vote.to = peer_of(context_, context_.place.rank, 0);
  vote.task = task;
  vote.edge = edge;
  vote.due_ns = now_ns + context_.world->vote_ns();
  context_.mail->tell(vote);
  return false;
}

Result<bool> LaneGroup::take_vote(const Letter& letter) {
  if (!votes_) return wrong(letter, "where the leader decides alone");
  const int microbatch = program_.microbatch_of(letter.task);
  if (machines_.has_vote(letter.edge, microbatch, letter.lane)) return wrong(letter, kSentBefore);
  return machines_.on_lane(letter.edge, microbatch, letter.lane);
}

void LaneGroup::announce(TaskId task, std::int64_t not_before_ns) {
  Letter start = letter_of(context_, Tag::kStart);
  start.sequence = machines_.announced();
  start.task = task;
  start.time_ns = not_before_ns;
  for (int lane = 1; lane < lanes_; ++lane) {
    start.to = peer_of(context_, context_.place.rank, lane);
    context_.mail->tell(start);
  }
  machines_.on_announced(start.sequence, task);
}

Result<void> LaneGroup::take_start(const Letter& letter) {
  if (letter.sequence != machines_.announced()) {
    return wrong(letter, "as number " + std::to_string(letter.sequence) + ", where number " +
                             std::to_string(machines_.announced()) + " comes next");
  }
  if (at(letter.task).announced) return wrong(letter, kSentBefore);
  if (const TaskId before = own_input_to_come(letter.task); before != kNoTask) {
    return wrong(letter,
                 "and none before it for " + to_string(program_.task(before)) + ", which it needs");
  }
  machines_.on_announced(letter.sequence, letter.task);
  at(letter.task).announced = true;
  return {};
}

// On a lane that does not lead: what `task` needs of this rank and is not announced; kNoTask:
// nothing.
TaskId LaneGroup::own_input_to_come(TaskId task) const {
  const int stage = program_.stage_of(task);
  const int microbatch = program_.microbatch_of(task);
  const Slot slot = program_.slot_of(task);
  if (slot != Slot::kForward) {
    const Slot before = slot == Slot::kBackward ? Slot::kForward : Slot::kBackward;
    const TaskId own = program_.task_id(stage, before, microbatch);
    if (!at(own).announced) return own;
  }
  for (const EdgeId edge : program_.edges_to(stage, slot)) {
    if (!program_.edge(edge).local()) continue;
    const TaskId producer = program_.task_id(program_.edge(edge).from, slot, microbatch);
    if (!at(producer).announced) return producer;
  }
  return kNoTask;
}

void LaneGroup::on_start(TaskId task, std::int64_t start_ns) {
  if (is_one_lane()) return;
  Letter started = letter_of(context_, Tag::kLaneStart);
  started.task = task;
  started.time_ns = start_ns;
  for (int lane = 0; lane < lanes_; ++lane) {
    if (lane == context_.place.lane) continue;
    started.to = peer_of(context_, context_.place.rank, lane);
    context_.mail->tell(started);
  }
  lane_started(task, context_.place.lane, start_ns);
}

Result<void> LaneGroup::take_lane_start(const Letter& letter) {
  const int lane = context_.grid.place(letter.from).lane;
  if ((at(letter.task).lanes_started >> lane & 1) != 0) return wrong(letter, kSentBefore);
  lane_started(letter.task, lane, letter.time_ns);
  return {};
}

void LaneGroup::lane_started(TaskId task, int lane, std::int64_t start_ns) {
  TaskState& state = at(task);
  state.last_start_ns = std::max(state.last_start_ns, start_ns);
  state.lanes_started |= std::uint64_t{1} << lane;
  if (std::popcount(state.lanes_started) == lanes_) {
    context_.device->on_group_start(task, state.last_start_ns);
  }
}

}  // namespace rrfp
