#include "executor/outgoing_messages.h"

#include <algorithm>

#include "executor/letter_check.h"
#include "executor/loop_letter.h"

namespace rrfp {

OutgoingMessages::OutgoingMessages(const LoopContext& context)
    : context_(context),
      world_(*context.world),
      program_(world_.program()),
      machines_(*context.machines),
      microbatches_(program_.microbatches()),
      link_free_ns_(static_cast<std::size_t>(program_.ranks())),
      end_ns_(static_cast<std::size_t>(program_.task_ids())),
      uses_credit_(program_.edges().size() * static_cast<std::size_t>(microbatches_)) {}

Result<void> OutgoingMessages::on_finished(TaskId task, std::int64_t end_ns, std::int64_t now_ns) {
  end_ns_[static_cast<std::size_t>(task)] = end_ns;
  const int microbatch = program_.microbatch_of(task);
  const Slot slot = program_.slot_of(task);
  for (const EdgeId edge : program_.edges_from(program_.stage_of(task), slot)) {
    if (program_.edge(edge).local()) continue;
    Result<void> sent;
    if (slot == Slot::kForward) {
      machines_.on_output(edge, microbatch);
      sent = send_granted(edge, now_ns);
    } else {
      sent = send(edge, microbatch, end_ns);
    }
    if (!sent.ok()) return sent;
  }
  return {};
}

Result<void> OutgoingMessages::take_credit(const Letter& letter, std::int64_t now_ns) {
  const std::size_t of = message(letter.edge, program_.microbatch_of(letter.task));
  if (!uses_credit_[of]) {
    return out_of_turn(letter, context_.grid, program_, "for a message that uses none");
  }
  uses_credit_[of] = false;
  machines_.on_credit(letter.edge);
  return send_granted(letter.edge, now_ns);
}

Result<void> OutgoingMessages::send_granted(EdgeId edge, std::int64_t now_ns) {
  for (int m = machines_.next(edge); m != EdgeCredits::kNothing; m = machines_.next(edge)) {
    uses_credit_[message(edge, m)] = true;
    Result<void> sent = send(edge, m, now_ns);
    if (!sent.ok()) return sent;
  }
  return {};
}

Result<void> OutgoingMessages::send(EdgeId id, int microbatch, std::int64_t now_ns) {
  const Edge& edge = program_.edge(id);
  const Slot slot = edge.slot();
  const TaskId producer = program_.task_id(edge.from, slot, microbatch);
  Result<Payload> payload = context_.device->output(producer, id);
  if (!payload.ok()) return payload.error();
  std::int64_t& free_ns = link_free_ns_[static_cast<std::size_t>(edge.to_rank)];
  Letter letter = letter_of(context_, Tag::kMessage);
  letter.to = peer_of(context_, edge.to_rank, context_.place.lane);
  letter.task = program_.task_id(edge.to, slot, microbatch);
  letter.edge = id;
  letter.time_ns = end_ns_[static_cast<std::size_t>(producer)];
  letter.sent_ns = std::max(now_ns, free_ns);
  free_ns = letter.sent_ns + world_.busy_ns()[message(id, microbatch)];
  letter.due_ns = free_ns + world_.lane_latency_ns(id, context_.place.lane, microbatch);
  context_.mail->send(letter, std::move(*payload));
  return {};
}

}  // namespace rrfp
