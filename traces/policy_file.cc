#include "traces/policy_file.h"

#include <span>

#include "traces/torch_csv.h"

namespace rrfp {

namespace {

constexpr int kMostWindow = std::numeric_limits<int>::max();
constexpr std::int64_t kMostPermille = 1'000'000'000;

constexpr Choice<Arrangement> kArrangements[] = {{"given", Arrangement::kGiven},
                                                 {"ascending", Arrangement::kAscending},
                                                 {"hill", Arrangement::kHill}};

// The tasks of an order, and what is sent and received between them.
void read_order(const JsonCursor& in, int ranks, HintSpec* hint) {
  bool any_message = false;
  for (const JsonCursor& row : in.items(static_cast<std::size_t>(ranks), "rank")) {
    std::vector<Task>& tasks = hint->order.emplace_back();
    std::vector<OrderedMessage>& messages = hint->messages.emplace_back();
    for (const JsonCursor& cell : row.items()) {
      const std::string text = cell.string();
      if (!in.ok()) return;
      if (const Result<Task> task = parse_task(text); task.ok()) {
        tasks.push_back(*task);
        continue;
      }
      const Result<TorchAction> action = parse_torch_action(text);
      if (!action.ok() || !is_message(action->op)) {
        cell.expected(
            "a task such as \"3F0\": stage, one of F, B, I, W, microbatch; or a message "
            "such as \"3SEND_F0\"");
        return;
      }
      any_message = true;
      messages.push_back(to_message(*action, static_cast<int>(tasks.size())));
    }
  }
  if (!any_message) hint->messages.clear();
}

JsonArray row_to_json(const std::vector<Task>& tasks, std::span<const OrderedMessage> messages) {
  JsonArray row;
  std::size_t next = 0;
  for (std::size_t position = 0; position <= tasks.size(); ++position) {
    for (; next < messages.size() && messages[next].position == static_cast<int>(position);
         ++next) {
      const OrderedMessage& message = messages[next];
      TorchAction action;
      action.stage = message.stage;
      action.op = message_op(message.sends, message.tensor);
      action.microbatch = message.microbatch;
      row.emplace_back(to_string(action));
    }
    if (position < tasks.size()) row.emplace_back(to_string(tasks[position]));
  }
  return row;
}

}  // namespace

HintSpec read_hint(const JsonCursor& in, int ranks) {
  in.only_keys({"name", "order", "called", "group", "seed"});
  HintSpec hint;
  const auto order = in.find("order");
  const auto name = in.find("name");
  if (in.ok() && order.has_value() == name.has_value()) {
    in.fail("a hint has either a \"name\" or an \"order\"; found " +
            std::string(order ? "both" : "neither"));
  }
  if (name) hint.name = name->string();
  if (order) read_order(*order, ranks, &hint);
  const auto called = in.find("called");
  if (called && !order) called->fail("only an \"order\" is called something; a \"name\" is one");
  if (order) hint.name = called ? called->string() : "";
  if (called && called->ok() && hint.name.empty()) called->expected("a name");
  hint.group = static_cast<int>(in.integer_or("group", 0, {1, kMostWindow}));
  hint.seed = static_cast<std::uint64_t>(in.integer_or("seed", 0));
  return hint;
}

Arrangement read_arrangement(const JsonCursor& in) { return in.choice(kArrangements); }

Anticipation read_anticipation(const JsonCursor& in) {
  in.only_keys({"reach_permille", "grace_permille"});
  Anticipation anticipation;
  anticipation.reach_permille = in.at("reach_permille").integer({0, kMostPermille});
  anticipation.grace_permille = in.integer_or("grace_permille", 0, {0, kMostPermille});
  return anticipation;
}

Policy read_policy(const JsonCursor& in, int ranks) {
  in.only_keys({"hint", "window", "arrange", "anticipation"});
  Policy policy;
  if (const auto hint = in.find("hint")) policy.hint = read_hint(*hint, ranks);
  if (const auto window = in.find("window")) policy.window = window->small_integer(1, kMostWindow);
  if (const auto arrange = in.find("arrange")) policy.arrangement = read_arrangement(*arrange);
  if (const auto object = in.find("anticipation")) {
    policy.anticipation = read_anticipation(*object);
  }
  return policy;
}

JsonValue hint_to_json(const HintSpec& hint) {
  JsonValue out{JsonObject()};
  if (hint.order.empty()) {
    out.add("name", JsonValue(hint.name));
  } else {
    JsonArray rows;
    for (std::size_t rank = 0; rank < hint.order.size(); ++rank) {
      std::span<const OrderedMessage> messages;
      if (!hint.messages.empty()) messages = hint.messages[rank];
      rows.emplace_back(row_to_json(hint.order[rank], messages));
    }
    out.add("order", JsonValue(std::move(rows)));
    if (!hint.name.empty()) out.add("called", JsonValue(hint.name));
  }
  if (hint.group != 0) out.add("group", JsonValue(hint.group));
  if (hint.seed != 0) out.add("seed", JsonValue(static_cast<std::int64_t>(hint.seed)));
  return out;
}

JsonValue arrangement_to_json(Arrangement arrangement) {
  return JsonValue(to_word(kArrangements, arrangement));
}

JsonValue anticipation_to_json(const Anticipation& anticipation) {
  JsonValue out{JsonObject()};
  out.add("reach_permille", JsonValue(anticipation.reach_permille));
  out.add("grace_permille", JsonValue(anticipation.grace_permille));
  return out;
}

JsonValue policy_to_json(const Policy& policy) {
  JsonValue out{JsonObject()};
  out.add("hint", hint_to_json(policy.hint));
  if (policy.window != kNoWindow) out.add("window", JsonValue(policy.window));
  if (policy.arrangement != Arrangement::kGiven) {
    out.add("arrange", arrangement_to_json(policy.arrangement));
  }
  if (policy.anticipation) out.add("anticipation", anticipation_to_json(*policy.anticipation));
  return out;
}

}  // namespace rrfp
