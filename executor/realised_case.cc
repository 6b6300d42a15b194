#include "executor/realised_case.h"

#include <algorithm>

namespace rrfp {

namespace {

// The leader's record of a rank.
const WorkerRecord& leader_of(const RunPlan& plan, const IterationRecord& record, int replica,
                              int rank) {
  return record.workers[static_cast<std::size_t>(plan.grid.endpoint({replica, rank, 0}))];
}

std::size_t message_of(const Program& program, EdgeId edge, int microbatch) {
  return static_cast<std::size_t>(edge * program.microbatches() + microbatch);
}

// By message, as the receiving rank's leader saw it; null where it saw none.
std::vector<const ArrivalRecord*> arrivals_of(const RunPlan& plan, const IterationRecord& record,
                                              int replica, const Program& program) {
  std::vector<const ArrivalRecord*> arrivals(program.edges().size() *
                                             static_cast<std::size_t>(program.microbatches()));
  for (int rank = 0; rank < plan.grid.ranks; ++rank) {
    for (const ArrivalRecord& arrival : leader_of(plan, record, replica, rank).arrivals) {
      arrivals[message_of(program, arrival.edge, arrival.microbatch)] = &arrival;
    }
  }
  return arrivals;
}

// When a transfer of a rendezvous phase is over: as the world has it, for both
// ends. What an end sees of it later is late by itself, and holds up its own
// next task alone.
constexpr auto kTransferEnd = &ArrivalRecord::due_ns;

// Where a rendezvous phase ends in the model: when the last of its transfers
// has, each at `end_of`.
std::int64_t phase_end_ns(const Program& program, TaskId before, TaskId next,
                          std::int64_t previous_end_ns,
                          const std::vector<const ArrivalRecord*>& arrivals,
                          std::int64_t ArrivalRecord::*end_of) {
  std::int64_t end_ns = previous_end_ns;
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    const Edge& edge = program.edges()[id];
    if (!edge.crosses()) continue;
    const Slot slot = edge.slot();
    for (const TaskId task : {before, next}) {
      if (task == kNoTask || program.slot_of(task) != slot) continue;
      if (program.stage_of(task) != (task == before ? edge.from : edge.to)) continue;
      const ArrivalRecord* arrival =
          arrivals[message_of(program, static_cast<EdgeId>(id), program.microbatch_of(task))];
      if (arrival != nullptr) end_ns = std::max(end_ns, arrival->*end_of);
    }
  }
  return end_ns;
}

// By TaskId. `end_of`: of a transfer, in rendezvous mode.
std::vector<std::int64_t> lengths_of(const RunPlan& plan, const IterationRecord& record,
                                     int replica, const std::vector<const ArrivalRecord*>& arrivals,
                                     std::int64_t ArrivalRecord::*end_of) {
  const PreparedCase& world = plan.world(record.iteration, replica);
  const Program& program = world.program();
  const bool rendezvous = world.input().network.mode == NetworkMode::kRendezvous;
  const int depth = world.input().queue_depth;
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(program.task_ids()), 0);
  for (int rank = 0; rank < plan.grid.ranks; ++rank) {
    TaskId before = kNoTask;
    std::int64_t previous_end_ns = 0;
    for (const TaskRecord& task : leader_of(plan, record, replica, rank).tasks) {
      std::int64_t begin_ns =
          rendezvous ? phase_end_ns(program, before, task.task, previous_end_ns, arrivals, end_of)
                     : task.decided_ns;
      begin_ns += world.start_delay_ns();
      // A rank that holds one task at a time decides after the end of the last.
      if (depth > 1) begin_ns = std::max(begin_ns, previous_end_ns);
      lengths[static_cast<std::size_t>(task.task)] =
          std::max<std::int64_t>(0, task.end_ns - begin_ns);
      before = task.task;
      previous_end_ns = task.end_ns;
    }
  }
  return lengths;
}

// What the leader's link took of a message beyond what the world took.
std::int64_t own_link_extra_ns(const PreparedCase& world, const ArrivalRecord& arrival,
                               std::span<const CalibratedLink> links) {
  const Program& program = world.program();
  const Edge& edge = program.edge(arrival.edge);
  const CalibratedLink* link = find_link(links, edge.from_rank, edge.to_rank, 0);
  if (link == nullptr) return 0;
  const std::int64_t busy_ns =
      world.busy_ns()[message_of(program, arrival.edge, arrival.microbatch)];
  return link_extra_ns(*link, arrival.bytes,
                       busy_ns + world.lane_latency_ns(arrival.edge, 0, arrival.microbatch));
}

}  // namespace

Case realised_case(const RunPlan& plan, const IterationRecord& record, int replica) {
  const PreparedCase& world = plan.world(record.iteration, replica);
  const Program& program = world.program();
  const std::vector<const ArrivalRecord*> arrivals = arrivals_of(plan, record, replica, program);
  Case out = world.input();
  out.policy.arrangement = Arrangement::kGiven;  // it has been arranged
  if (out.expected_ns.empty()) out.expected_ns = out.duration_ns;
  out.dispatch_ns = world.start_delay_ns();
  out.tensor_parallel = {};
  out.duration_ns = lengths_of(plan, record, replica, arrivals, kTransferEnd);

  const bool rendezvous = out.network.mode == NetworkMode::kRendezvous;
  const bool paced = out.network.bytes_per_second > 0;
  std::vector<std::vector<std::int64_t>> expected(program.edges().size());
  out.network.latency_ns.assign(program.edges().size(), {});
  for (std::size_t id = 0; id < program.edges().size(); ++id) {
    const Edge& edge = program.edges()[id];
    if (edge.local()) continue;
    for (int m = 0; m < program.microbatches(); ++m) {
      const std::size_t message = message_of(program, static_cast<EdgeId>(id), m);
      expected[id].push_back(world.expected_transfer_ns()[message] - world.busy_ns()[message]);
      std::int64_t latency_ns = 0;
      if (const ArrivalRecord* arrival = arrivals[message]) {
        // A link of limited speed is in the model; waiting for it is not latency.
        const std::int64_t from_ns =
            (paced && !rendezvous ? arrival->sent_ns : arrival->finish_ns) +
            world.busy_ns()[message];
        const std::int64_t end_ns = rendezvous ? arrival->*kTransferEnd : arrival->group_ns;
        latency_ns = std::max<std::int64_t>(0, end_ns - from_ns);
      }
      out.network.latency_ns[id].push_back(latency_ns);
    }
  }
  out.network.expected_latency_ns = std::move(expected);

  if (rendezvous) return out;
  // When a root input was seen; where several stages are roots, the first.
  std::vector<std::int64_t> seen(static_cast<std::size_t>(program.microbatches()), kNever);
  for (int rank = 0; rank < plan.grid.ranks; ++rank) {
    for (const TaskRecord& task : leader_of(plan, record, replica, rank).tasks) {
      const int stage = program.stage_of(task.task);
      if (program.slot_of(task.task) != Slot::kForward || !program.predecessors(stage).empty()) {
        continue;
      }
      std::int64_t& first = seen[static_cast<std::size_t>(program.microbatch_of(task.task))];
      first = std::min(first, task.ready_ns);
    }
  }
  out.input_ready_ns = std::move(seen);
  return out;
}

std::int64_t replica_makespan_ns(const RunPlan& plan, const IterationRecord& record, int replica) {
  std::int64_t end_ns = 0;
  for (int rank = 0; rank < plan.grid.ranks; ++rank) {
    for (const TaskRecord& task : leader_of(plan, record, replica, rank).tasks) {
      end_ns = std::max(end_ns, task.end_ns);
    }
  }
  return end_ns;
}

void add_overheads(const RunPlan& plan, const IterationRecord& record,
                   std::span<const CalibratedLink> links, Overheads& to) {
  for (int replica = 0; replica < plan.grid.replicas; ++replica) {
    const PreparedCase& world = plan.world(record.iteration, replica);
    const Program& program = world.program();
    const std::vector<const ArrivalRecord*> arrivals = arrivals_of(plan, record, replica, program);
    const std::vector<std::int64_t> lengths =
        lengths_of(plan, record, replica, arrivals, &ArrivalRecord::arrival_ns);
    for (TaskId task = 0; task < program.task_ids(); ++task) {
      if (!program.exists(task)) continue;
      const auto id = static_cast<std::size_t>(task);
      to.task_ns.push_back(lengths[id] - world.duration_ns()[id]);
    }
    for (const ArrivalRecord* arrival : arrivals) {
      if (arrival == nullptr) continue;
      // In rendezvous the sender learns late that the other end has posted.
      const bool rendezvous = world.input().network.mode == NetworkMode::kRendezvous;
      to.message_ns.push_back(arrival->arrival_ns - arrival->due_ns +
                              (rendezvous ? arrival->sent_ns - arrival->finish_ns : 0) -
                              own_link_extra_ns(world, *arrival, links));
    }
  }
}

}  // namespace rrfp
