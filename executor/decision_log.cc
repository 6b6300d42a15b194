#include "executor/decision_log.h"

#include <array>

#include "traces/case_file.h"
#include "traces/json_cursor.h"

namespace rrfp {

namespace {

using Kind_ = CoreCall::Kind;

constexpr Choice<Kind_> kKinds[] = {
    {"input", Kind_::kInput},       {"notice", Kind_::kNotice},
    {"finished", Kind_::kFinished}, {"expected", Kind_::kExpected},
    {"decide", Kind_::kDecide},     {"tells", Kind_::kToldOf},
    {"vote", Kind_::kVote},         {"announced", Kind_::kAnnounced},
    {"launch", Kind_::kLaunch},     {"output", Kind_::kOutput},
    {"credit", Kind_::kCredit},     {"send", Kind_::kNext},
};
constexpr Choice<Decision::Action> kActions[] = {
    {"start", Decision::Action::kStart},
    {"wait", Decision::Action::kWait},
    {"idle", Decision::Action::kIdle},
};
constexpr Choice<WaitReason> kReasons[] = {
    {"first in hint order", WaitReason::kNone},
    {"a better task is about to arrive", WaitReason::kAnticipation},
    {"ready work stands outside the window", WaitReason::kOrder},
    {"ready work does not fit in memory", WaitReason::kMemory},
    {"nothing is ready", WaitReason::kNotReady},
};

// Which fields a call has, and what they are called. Empty: it has none.
struct Columns {
  Kind_ kind;
  bool task;
  std::string_view at, other, value, flag, answer;
};
constexpr std::array<Columns, 12> kColumns = {{
    {Kind_::kInput, true, {}, "from", {}, {}, {}},
    {Kind_::kNotice, true, {}, "from", "eta_ns", {}, {}},
    {Kind_::kFinished, true, "at_ns", {}, {}, {}, {}},
    {Kind_::kExpected, false, {}, "stage", "ns", "kind", {}},
    {Kind_::kDecide, true, "at_ns", {}, "until_ns", {}, {}},
    {Kind_::kToldOf, true, {}, "to_rank", "eta_ns", {}, {}},
    {Kind_::kVote, false, {}, "message", {}, "lane", "arrived"},
    {Kind_::kAnnounced, true, {}, {}, "sequence", {}, {}},
    {Kind_::kLaunch, true, {}, {}, "sequence", {}, {}},
    {Kind_::kOutput, false, {}, "edge", "microbatch", {}, {}},
    {Kind_::kCredit, false, {}, "edge", {}, {}, {}},
    {Kind_::kNext, false, {}, "edge", "microbatch", {}, {}},
}};

const Columns& columns_of(Kind_ kind) { return kColumns[static_cast<std::size_t>(kind)]; }

JsonValue task_name(TaskId task, const Program& program) {
  return task == kNoTask ? JsonValue() : JsonValue(to_string(program.task(task)));
}

TaskId read_task(const JsonCursor& in, const Program& program) {
  if (in.value().is_null()) return kNoTask;
  const Result<Task> task = parse_task(in.string());
  const TaskId id = task.ok() ? program.find(*task) : kNoTask;
  if (id == kNoTask) in.fail("expected a task of the case");
  return id;
}

std::int64_t read_any(const JsonCursor& in) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return in.integer({-kMost, kMost});
}

}  // namespace

JsonValue call_to_json(const CoreCall& call, const Program& program) {
  const Columns& columns = columns_of(call.kind);
  JsonValue json{JsonObject{}};
  json.add("call", JsonValue(to_word(kKinds, call.kind)));
  if (!columns.at.empty()) json.add(columns.at, JsonValue(call.at_ns));
  if (call.kind == Kind_::kDecide) {
    json.add("action", JsonValue(to_word(kActions, call.action)));
    json.add("reason", JsonValue(to_word(kReasons, call.reason)));
    JsonArray candidates;
    for (std::size_t i = 0; i < call.candidate_count; ++i) {
      candidates.push_back(task_name(call.candidates[i], program));
    }
    json.add("candidates", JsonValue(std::move(candidates)));
  }
  if (columns.task) json.add("task", task_name(call.task, program));
  if (!columns.other.empty()) json.add(columns.other, JsonValue(std::int64_t{call.other}));
  if (!columns.value.empty()) json.add(columns.value, JsonValue(call.value));
  if (!columns.flag.empty()) json.add(columns.flag, JsonValue(std::int64_t{call.flag}));
  if (!columns.answer.empty()) json.add(columns.answer, JsonValue(call.answer));
  return json;
}

Result<CoreCall> call_from_json(const JsonDocument& document, const Program& program) {
  JsonErrors errors(document.file);
  const JsonCursor in(errors, document.root);
  CoreCall call;
  call.kind = in.at("call").choice(kKinds);
  const Columns& columns = columns_of(call.kind);
  if (!columns.at.empty()) call.at_ns = read_any(in.at(columns.at));
  if (call.kind == Kind_::kDecide) {
    call.action = in.at("action").choice(kActions);
    call.reason = in.at("reason").choice(kReasons);
    const JsonCursor candidates = in.at("candidates");
    const std::vector<JsonCursor> items = candidates.items();
    const std::size_t count = items.size();
    if (count > CoreCall::kCandidates) candidates.fail("expected at most 4");
    call.candidates.fill(kNoTask);
    for (std::size_t i = 0; i < count && errors.ok(); ++i) {
      call.candidates[i] = read_task(items[i], program);
    }
    call.candidate_count = static_cast<std::uint8_t>(count);
  }
  if (columns.task) call.task = read_task(in.at("task"), program);
  if (!columns.other.empty()) {
    call.other = static_cast<std::int32_t>(in.at(columns.other).integer({-1, 1 << 30}));
  }
  if (!columns.value.empty()) call.value = read_any(in.at(columns.value));
  if (!columns.flag.empty()) {
    call.flag = static_cast<std::uint8_t>(in.at(columns.flag).integer({0, 255}));
  }
  if (!columns.answer.empty()) call.answer = in.at(columns.answer).boolean();
  if (!errors.ok()) return errors.status().error();
  return call;
}

std::string decision_log_header(const RunPlan& plan) {
  JsonValue grid{JsonObject{}};
  grid.add("replicas", JsonValue(plan.grid.replicas));
  grid.add("ranks", JsonValue(plan.grid.ranks));
  grid.add("lanes", JsonValue(plan.grid.lanes));
  JsonValue json{JsonObject{}};
  json.add("schema", JsonValue(kDecisionsSchema));
  json.add("grid", std::move(grid));
  json.add("credits", JsonValue(plan.core.credits));
  json.add("adapt_expected", JsonValue(plan.core.adapt_expected));
  return to_text(json, JsonLayout::kCompact) + "\n";
}

std::string decision_log_of(const RunPlan& plan, const IterationRecord& record) {
  std::string text;
  for (int replica = 0; replica < plan.grid.replicas; ++replica) {
    const PreparedCase& world = plan.world(record.iteration, replica);
    JsonValue head{JsonObject{}};
    head.add("iteration", JsonValue(record.iteration));
    head.add("replica", JsonValue(replica));
    std::size_t calls = 0;
    for (const WorkerRecord& worker : record.workers) {
      if (plan.grid.place(worker.endpoint).replica == replica) calls += worker.calls.size();
    }
    head.add("calls", JsonValue(static_cast<std::int64_t>(calls)));
    if (!plan.keeps_machines(record.iteration, replica)) {
      Case as_run = world.input();
      as_run.policy.arrangement = Arrangement::kGiven;  // it has been arranged
      head.add("case", case_to_json(as_run));
    }
    text += to_text(head, JsonLayout::kCompact) + "\n";
    for (const WorkerRecord& worker : record.workers) {
      if (plan.grid.place(worker.endpoint).replica != replica) continue;
      for (const CoreCall& call : worker.calls) {
        JsonValue line{JsonObject{}};
        line.add("w", JsonValue(worker.endpoint));
        JsonValue fields = call_to_json(call, world.program());
        for (JsonMember& member : *fields.object()) line.add(member.key, std::move(member.value));
        text += to_text(line, JsonLayout::kCompact) + "\n";
      }
    }
  }
  return text;
}

}  // namespace rrfp
