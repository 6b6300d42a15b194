#include "traces/policy_file.h"

namespace rrfp {

namespace {

constexpr int kMostWindow = std::numeric_limits<int>::max();
constexpr std::int64_t kMostPermille = 1'000'000'000;

constexpr Choice<Arrangement> kArrangements[] = {{"given", Arrangement::kGiven},
                                                 {"ascending", Arrangement::kAscending},
                                                 {"hill", Arrangement::kHill}};

std::vector<std::vector<Task>> read_order(const JsonCursor& in, int ranks) {
  std::vector<std::vector<Task>> order;
  for (const JsonCursor& row : in.items(static_cast<std::size_t>(ranks), "rank")) {
    std::vector<Task>& tasks = order.emplace_back();
    for (const JsonCursor& cell : row.items()) {
      const std::string text = cell.string();
      if (!in.ok()) return {};
      Result<Task> task = parse_task(text);
      if (!task.ok()) {
        cell.expected("a task such as \"3F0\": stage, one of F, B, I, W, microbatch");
        return {};
      }
      tasks.push_back(*task);
    }
  }
  return order;
}

}  // namespace

HintSpec read_hint(const JsonCursor& in, int ranks) {
  in.only_keys({"name", "order", "group", "seed"});
  HintSpec hint;
  const auto order = in.find("order");
  const auto name = in.find("name");
  if (in.ok() && order.has_value() == name.has_value()) {
    in.fail("a hint has either a \"name\" or an \"order\"; found " +
            std::string(order ? "both" : "neither"));
  }
  if (name) hint.name = name->string();
  if (order) hint.order = read_order(*order, ranks);
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
    for (const std::vector<Task>& tasks : hint.order) {
      JsonArray row;
      for (const Task& task : tasks) row.emplace_back(to_string(task));
      rows.emplace_back(std::move(row));
    }
    out.add("order", JsonValue(std::move(rows)));
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
