#include "executor/letter_check.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <iterator>

namespace rrfp {

namespace {

constexpr const char* kLetterNames[] = {
    "a message",   "a notice",  "a vote",     "a start", "the start of a lane",
    "a credit",    "a posting", "a gradient", "a sum",   "a preparation",
    "a readiness", "a ping",    "a pong",     "a go",    "a record",
    "a heartbeat", "an end"};
static_assert(std::size(kLetterNames) == static_cast<std::size_t>(Tag::kEnd) + 1);

// Sums of two of them are no overflow. (Whatever a file gives is shorter.)
constexpr std::int64_t kMostLetterNs = std::int64_t{1} << 62;
// Clocks, and what they differ by: 36 years.
constexpr std::int64_t kMostClockNs = std::int64_t{1} << 60;
// Letters and heartbeats of a run; so many of each worker can be summed.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 40;
constexpr const char* kCannotBe = "processes that do not run the same, or a fault";

bool is_within(std::int64_t value, std::int64_t most) { return value > -most && value < most; }

const char* name_of(Tag tag) {
  return tag <= Tag::kEnd ? kLetterNames[static_cast<std::size_t>(tag)] : "a letter";
}

bool is_task(const Program& program, TaskId task) {
  return task >= 0 && task < program.task_ids() && program.exists(task);
}

bool is_task_of(const Program& program, TaskId task, int rank) {
  return is_task(program, task) && program.rank_of(program.stage_of(task)) == rank;
}

bool is_edge(const Program& program, EdgeId edge) {
  return edge >= 0 && static_cast<std::size_t>(edge) < program.edges().size();
}

bool is_edge_between(const Program& program, EdgeId id, int from_rank, int to_rank) {
  if (!is_edge(program, id)) return false;
  const Edge& edge = program.edge(id);
  return edge.crosses() && edge.from_rank == from_rank && edge.to_rank == to_rank;
}

// That gets what travels along the edge.
bool is_consumer(const Program& program, TaskId task, EdgeId id) {
  const Edge& edge = program.edge(id);
  return is_task(program, task) && program.stage_of(task) == edge.to &&
         program.slot_of(task) == edge.slot();
}

// Looks at the letters of an iteration, kind by kind. Each function gives the
// name of the first field that is wrong; null: none is.
class IterationLetter {
 public:
  IterationLetter(const Letter& letter, const RunPlan& plan, int to)
      : letter_(letter),
        program_(plan.world(letter.iteration, 0).program()),
        from_(plan.grid.place(letter.from)),
        to_(plan.grid.place(to)) {}

  const char* wrong_field() const {
    const bool timely = is_within(letter_.time_ns, kMostLetterNs) &&
                        is_within(letter_.sent_ns, kMostLetterNs) &&
                        is_within(letter_.due_ns, kMostLetterNs);
    return timely ? wrong_field_of_kind() : "time";
  }

 private:
  const char* wrong_field_of_kind() const {
    switch (letter_.tag) {
      case Tag::kMessage:
        return message();
      case Tag::kNotice:
        return notice();
      case Tag::kVote:
        return vote();
      case Tag::kStart:
        return from_.lane != 0 || to_.lane == 0 || !same_group() ? kSender : own_task();
      case Tag::kLaneStart:
        return same_group() ? own_task() : kSender;
      case Tag::kCredit:
      case Tag::kPost:
        return on_the_way_back();
      case Tag::kGradient:
      case Tag::kReduced:
        return gradient();
      default:
        return "tag";
    }
  }

  static constexpr const char* kSender = "sender";

  bool same_group() const { return from_.replica == to_.replica && from_.rank == to_.rank; }
  bool same_lane() const { return from_.replica == to_.replica && from_.lane == to_.lane; }
  const char* own_task() const {
    return is_task_of(program_, letter_.task, to_.rank) ? nullptr : "task";
  }
  const char* message() const {
    if (!same_lane()) return kSender;
    if (!is_edge_between(program_, letter_.edge, from_.rank, to_.rank)) return "edge";
    return is_consumer(program_, letter_.task, letter_.edge) ? nullptr : "task";
  }
  const char* notice() const {
    if (from_.replica != to_.replica || to_.lane != 0) return kSender;
    if (const char* wrong = own_task()) return wrong;
    const Slot slot = program_.slot_of(letter_.task);
    if (slot == Slot::kWeight) return "task";
    const Kind kind = slot == Slot::kForward ? Kind::kForward : Kind::kBackward;
    const EdgeId edge = program_.find_edge(kind, letter_.stage, program_.stage_of(letter_.task));
    return is_edge_between(program_, edge, from_.rank, to_.rank) ? nullptr : "stage";
  }
  const char* vote() const {
    if (!same_group() || to_.lane != 0) return kSender;
    if (letter_.lane != from_.lane) return "lane";
    if (!is_edge(program_, letter_.edge) || program_.edge(letter_.edge).to_rank != to_.rank ||
        !program_.edge(letter_.edge).crosses()) {
      return "edge";
    }
    return is_consumer(program_, letter_.task, letter_.edge) ? nullptr : "task";
  }
  // From the consumer of an edge to its producer.
  const char* on_the_way_back() const {
    if (!same_lane()) return kSender;
    const bool fits =
        is_edge_between(program_, letter_.edge, to_.rank, from_.rank) &&
        (letter_.tag == Tag::kPost || program_.edge(letter_.edge).slot() == Slot::kForward);
    if (!fits) return "edge";
    if (letter_.tag == Tag::kPost && letter_.time_ns < 0) return "time";
    return is_consumer(program_, letter_.task, letter_.edge) ? nullptr : "task";
  }
  const char* gradient() const {
    const int summing = letter_.tag == Tag::kGradient ? to_.replica : from_.replica;
    if (summing != 0 || from_.replica == to_.replica || from_.rank != to_.rank ||
        from_.lane != to_.lane) {
      return kSender;
    }
    if (letter_.tag == Tag::kGradient && letter_.lane != from_.replica) return "lane";
    const bool is_stage = letter_.stage >= 0 && letter_.stage < program_.stages();
    return is_stage && program_.rank_of(letter_.stage) == to_.rank ? nullptr : "stage";
  }

  const Letter& letter_;
  const Program& program_;
  const Place from_;
  const Place to_;
};

bool is_count(std::int64_t value) { return value >= 0 && value < kMostCounted; }

// Of the letters about a run as a whole.
const char* wrong_field_of_run(const Letter& letter, const RunPlan& plan, int to) {
  const bool from_first = letter.from == 0;
  switch (letter.tag) {
    case Tag::kPrepare:
      if (!from_first) return "sender";
      return letter.iteration < plan.iterations() ? nullptr : "iteration";
    case Tag::kPing:
    case Tag::kGo: {
      if (!from_first) return "sender";
      const bool timely = is_within(letter.time_ns, kMostClockNs) &&
                          is_within(letter.sent_ns, kMostClockNs) &&
                          is_within(letter.sequence, kMostClockNs);
      return timely ? nullptr : "time";
    }
    case Tag::kReady:
    case Tag::kPong:
    case Tag::kDone:
      if (to != 0) return "receiver";
      return is_within(letter.time_ns, kMostClockNs) ? nullptr : "time";
    case Tag::kBeat: {
      // Its number, and how many letters were sent and received.
      if (!is_count(letter.sequence) || !is_count(letter.time_ns) || !is_count(letter.sent_ns)) {
        return "count";
      }
      // Parts of getting ready, or -1.
      if (letter.stage < -1 || letter.edge < -1) return "part";
      const Place from = plan.grid.place(letter.from);
      const Program& program = plan.world(0, from.replica).program();
      return letter.task == kNoTask || is_task_of(program, letter.task, from.rank) ? nullptr
                                                                                   : "task";
    }
    case Tag::kEnd: {
      const auto end = static_cast<std::int32_t>(RunEnd::kStopped);
      if (!from_first && to != 0) return "sender";
      // Only the first worker knows that all of them are done.
      const auto least =
          static_cast<std::int32_t>(from_first ? RunEnd::kCompleted : RunEnd::kBlocked);
      return letter.stage >= least && letter.stage <= end ? nullptr : "stage";
    }
    default:
      return "tag";
  }
}

// Of what check_letter() has looked at.
std::string subject_of(const Letter& letter, const Program& program) {
  if (letter.tag >= Tag::kGradient) return " of stage " + std::to_string(letter.stage);
  std::string text = " for " + to_string(program.task(letter.task));
  if (letter.tag == Tag::kStart || letter.tag == Tag::kLaneStart) return text;
  if (letter.tag == Tag::kNotice) return text + " from stage " + std::to_string(letter.stage);
  const Edge& edge = program.edge(letter.edge);
  return text + " on channel rank " + std::to_string(edge.from_rank) + " -> rank " +
         std::to_string(edge.to_rank) + " (stage " + std::to_string(edge.from) + " -> " +
         std::to_string(edge.to) + ")";
}

bool is_call(const CoreCall& call, const Program& program) {
  const auto is_named = [&](TaskId task) { return task == kNoTask || is_task(program, task); };
  unsigned char answer = 0;  // as it travelled: a bool is one of two bytes
  std::memcpy(&answer, &call.answer, sizeof(answer));
  return answer <= 1 && call.kind <= CoreCall::Kind::kNext &&
         call.action <= Decision::Action::kIdle && call.reason <= WaitReason::kNotReady &&
         is_named(call.task) && call.candidate_count <= CoreCall::kCandidates &&
         std::all_of(call.candidates.begin(), call.candidates.begin() + call.candidate_count,
                     is_named);
}

}  // namespace

Result<void> check_letter(const Letter& letter, const RunPlan& plan, int to) {
  if (letter.from < 0 || letter.from >= plan.grid.size() || letter.from == to) {
    return Error{"a letter came from endpoint " + std::to_string(letter.from) +
                 ", which is no other worker"};
  }
  const char* wrong = nullptr;
  if (!is_of_iteration(letter.tag)) {
    wrong = wrong_field_of_run(letter, plan, to);
  } else if (letter.iteration < 0 || letter.iteration >= plan.iterations()) {
    wrong = "iteration";
  } else {
    wrong = IterationLetter(letter, plan, to).wrong_field();
  }
  if (wrong == nullptr) return {};
  return Error{worker_name(plan.grid, letter.from) + " has sent " + name_of(letter.tag) +
               " whose " + wrong + " cannot be (iteration " + std::to_string(letter.iteration) +
               ", task " + std::to_string(letter.task) + ", edge " + std::to_string(letter.edge) +
               ", stage " + std::to_string(letter.stage) + ", lane " + std::to_string(letter.lane) +
               ", time " + std::to_string(letter.time_ns) + " ns): " + kCannotBe};
}

Error out_of_turn(const Letter& letter, const Grid& grid, const Program& program,
                  const std::string& why) {
  return Error{worker_name(grid, letter.from) + " has sent " + name_of(letter.tag) +
               subject_of(letter, program) + ", " + why + ": " + kCannotBe};
}

Result<void> check_record(const WorkerRecord& record, const RunPlan& plan, int from,
                          int iteration) {
  const Place place = plan.grid.place(from);
  const Program& program = plan.world(iteration, place.replica).program();
  const auto is_message = [&](EdgeId edge, int microbatch) {
    return is_edge(program, edge) && microbatch >= 0 && microbatch < program.microbatches();
  };
  const auto is_time = [](std::initializer_list<std::int64_t> times) {
    return std::all_of(times.begin(), times.end(),
                       [](std::int64_t time_ns) { return is_within(time_ns, kMostLetterNs); });
  };
  const char* wrong = nullptr;
  if (record.endpoint != from) wrong = "endpoint";
  if (record.iteration != iteration) wrong = "iteration";
  if (!is_time(
          {record.end_ns, record.worst_stall_ns, record.clock_offset_ns, record.clock_error_ns})) {
    wrong = "time";
  }
  for (const TaskRecord& task : record.tasks) {
    if (!is_task_of(program, task.task, place.rank)) wrong = "task";
    if (!is_time({task.ready_ns, task.decided_ns, task.start_ns, task.end_ns})) wrong = "time";
  }
  for (const ArrivalRecord& arrival : record.arrivals) {
    if (!is_message(arrival.edge, arrival.microbatch)) wrong = "message";
    if (!is_time({arrival.finish_ns, arrival.sent_ns, arrival.due_ns, arrival.arrival_ns,
                  arrival.group_ns})) {
      wrong = "time";
    }
  }
  for (const SignalRecord& signal : record.signals) {
    if (!is_message(signal.edge, signal.microbatch)) wrong = "notice or credit";
    if (!is_time({signal.sent_ns, signal.seen_ns, signal.eta_ns})) wrong = "time";
  }
  for (const SyncRecord& sync : record.syncs) {
    if (sync.stage < 0 || sync.stage >= program.stages()) wrong = "stage";
    if (!is_time({sync.start_ns, sync.end_ns})) wrong = "time";
  }
  for (const CoreCall& call : record.calls) {
    if (!is_call(call, program)) wrong = "call";
  }
  if (wrong == nullptr) return {};
  return Error{"the record of " + worker_name(plan.grid, from) + " names a " + wrong +
               " that cannot be"};
}

}  // namespace rrfp
