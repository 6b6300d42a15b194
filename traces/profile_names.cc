#include "traces/profile_names.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rrfp {

namespace {

using What = ProfileAction::What;

constexpr std::size_t kMostCachedNames = 1 << 16;
/// Longer names are looked at anew each time.
constexpr std::size_t kMostCachedBytes = 512;
constexpr int kMostIndex = 1 << 20;

struct Pattern {
  What what = What::kTask;
  Kind kind = Kind::kForward;
  std::unique_ptr<const RE2> regex;
  /// The whole match and groups 1 and 2, of those that there are.
  int parts = 1;
};

std::optional<int> whole_number(std::string_view text, int least, int most) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value < least || value > most) return std::nullopt;
  return value;
}

ProfileAction refused(std::string why) {
  ProfileAction action;
  action.what = What::kRefused;
  action.text = std::move(why);
  return action;
}

ProfileAction task_of(Kind kind, int stage, int microbatch) {
  ProfileAction action;
  action.what = What::kTask;
  action.kind = kind;
  action.stage = stage;
  action.microbatch = microbatch;
  return action;
}

ProfileAction span_of(std::string_view name) {
  ProfileAction action;
  action.what = What::kSpan;
  action.text = std::string(name);
  return action;
}

/// "PP:3F0" and its like, without "PP:".
ProfileAction torch_action(std::string_view text, BMeans b_means) {
  if (text.ends_with("OVERLAP_F_B")) {
    return refused("PP: an overlapped pair is one annotation: its times are not told apart");
  }
  const Result<TorchAction> parsed = parse_torch_action(text);
  if (!parsed.ok()) return refused("PP: is followed by no action");
  if (parsed->stage >= kMostIndex || parsed->microbatch >= kMostIndex) {
    return refused("stage or microbatch is too large");
  }
  ProfileAction action;
  switch (parsed->op) {
    case TorchOp::kForward:
      return task_of(Kind::kForward, parsed->stage, parsed->microbatch);
    case TorchOp::kInputGradient:
      return task_of(Kind::kInputGradient, parsed->stage, parsed->microbatch);
    case TorchOp::kBackward:
      return task_of(b_means == BMeans::kFull ? Kind::kBackward : Kind::kInputGradient,
                     parsed->stage, parsed->microbatch);
    case TorchOp::kWeightGradient:
      return task_of(Kind::kWeightGradient, parsed->stage, parsed->microbatch);
    case TorchOp::kUnshard:
    case TorchOp::kReshard:
    case TorchOp::kReduceGrad:
      return span_of(name(parsed->op));
    default:
      break;
  }
  action.what = sends(parsed->op) ? What::kSend : What::kReceive;
  const bool activation = parsed->op == message_op(sends(parsed->op), Kind::kForward);
  action.kind = activation ? Kind::kForward : Kind::kBackward;
  action.stage = parsed->stage;
  action.microbatch = parsed->microbatch;
  return action;
}

/// "nccl:send 0->1" and its like, without "nccl:".
ProfileAction process_group_action(std::string_view text) {
  const std::size_t blank = text.find(' ');
  const std::string_view operation = text.substr(0, blank);
  if (operation != "send" && operation != "recv") {
    const bool plain = std::all_of(operation.begin(), operation.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    return plain && !operation.empty() ? span_of("nccl:" + std::string(operation))
                                       : ProfileAction();
  }
  ProfileAction action;
  action.what = operation == "send" ? What::kSend : What::kReceive;
  if (blank == std::string_view::npos) return action;
  const std::string_view ranks = text.substr(blank + 1);
  const std::size_t arrow = ranks.find(action.what == What::kSend ? "->" : "<-");
  if (arrow == std::string_view::npos) return refused("nccl:send or nccl:recv without its ranks");
  const std::optional<int> own = whole_number(ranks.substr(0, arrow), 0, kMostIndex);
  const std::optional<int> peer = whole_number(ranks.substr(arrow + 2), 0, kMostIndex);
  if (!own || !peer) return refused("nccl:send or nccl:recv without its ranks");
  action.own_rank = *own;
  action.peer_rank = *peer;
  return action;
}

ProfileAction builtin_action(std::string_view name, BMeans b_means) {
  constexpr int kUnknown = ProfileAction::kUnknown;
  const auto behind = [&](std::string_view prefix) -> std::optional<std::string_view> {
    if (!name.starts_with(prefix)) return std::nullopt;
    return name.substr(prefix.size());
  };
  if (const auto action = behind("PP:")) return torch_action(*action, b_means);
  if (const auto operation = behind("nccl:")) return process_group_action(*operation);
  if (const auto number = behind("ProfilerStep#")) {
    const std::optional<int> iteration = whole_number(*number, 0, (1 << 30));
    if (!iteration) return refused("ProfilerStep# is followed by no number");
    ProfileAction step;
    step.what = What::kStep;
    step.iteration = *iteration;
    return step;
  }
  if (name == "forward_step") return task_of(Kind::kForward, kUnknown, kUnknown);
  if (name == "backward_step") return task_of(Kind::kBackward, kUnknown, kUnknown);
  for (const auto& [word, kind] :
       {std::pair{"Forward ", Kind::kForward}, std::pair{"Backward ", Kind::kBackward}}) {
    const auto number = behind(word);
    const auto microbatch = number ? whole_number(*number, 0, kMostIndex) : std::nullopt;
    if (microbatch) return task_of(kind, kUnknown, *microbatch);
  }
  if (name.starts_with("Optimizer.step#")) return span_of("optimizer");
  return {};
}

/// Enough of a text to know it by.
std::string beginning(const std::string& text) {
  constexpr std::size_t kMostShown = 80;
  if (text.size() <= kMostShown) return text;
  std::size_t end = kMostShown;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole UTF-8
  return text.substr(0, end) + "...";
}

Result<std::unique_ptr<const RE2>> compiled(const std::string& text) {
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_unique<const RE2>(text, options);
  if (regex->ok()) return regex;
  return Error{"\"" + beginning(text) +
               "\" is no regular expression: " + beginning(regex->error()) +
               " (RE2's syntax, which has no lookarounds and no back references)"};
}

/// So that a string_view is looked up without making a string of it.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

}  // namespace

struct ProfileNames::State {
  BMeans b_means = BMeans::kFull;
  std::vector<Pattern> patterns;
  // Looked up, never gone through.
  std::unordered_map<std::string, ProfileAction, TextHash, std::equal_to<>> cache;
  ProfileAction last;

  ProfileAction classify(std::string_view name) const {
    for (const Pattern& pattern : patterns) {
      Parts parts;
      if (pattern.regex->Match(name, 0, name.size(), RE2::UNANCHORED, parts.data(),
                               pattern.parts)) {
        return matched(pattern, parts);
      }
    }
    return builtin_action(name, b_means);
  }

  using Parts = std::array<re2::StringPiece, 3>;

  static ProfileAction matched(const Pattern& pattern, const Parts& parts) {
    std::array<int, 2> numbers = {ProfileAction::kUnknown, ProfileAction::kUnknown};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const re2::StringPiece& group = parts[i + 1];
      if (group.data() == nullptr) continue;  // absent, or took no part in the match
      const std::optional<int> number = whole_number({group.data(), group.size()}, 0, kMostIndex);
      if (!number) return refused("a group of the pattern is no number from 0 to 2^20");
      numbers[i] = *number;
    }
    if (pattern.what == What::kTask) return task_of(pattern.kind, numbers[1], numbers[0]);
    if (numbers[0] == ProfileAction::kUnknown) return refused("the pattern of a step has no group");
    ProfileAction step;
    step.what = What::kStep;
    step.iteration = numbers[0];
    return step;
  }
};

Result<ProfileNames> ProfileNames::create(const ProfilePatterns& patterns, BMeans b_means) {
  auto state = std::make_unique<State>();
  state->b_means = b_means;
  struct Row {
    const char* option;
    const std::string& text;
    What what;
    Kind kind;
  };
  const Row rows[] = {
      {"forward", patterns.forward, What::kTask, Kind::kForward},
      {"backward", patterns.backward, What::kTask, Kind::kBackward},
      {"input-gradient", patterns.input_gradient, What::kTask, Kind::kInputGradient},
      {"weight-gradient", patterns.weight_gradient, What::kTask, Kind::kWeightGradient},
      {"step", patterns.step, What::kStep, Kind::kForward}};
  for (const Row& row : rows) {
    if (row.text.empty()) continue;
    Result<std::unique_ptr<const RE2>> regex = compiled(row.text);
    if (!regex.ok()) return Error{"--" + std::string(row.option) + ": " + regex.error().message};
    const int groups = (*regex)->NumberOfCapturingGroups();
    state->patterns.push_back({row.what, row.kind, std::move(*regex), 1 + std::min(groups, 2)});
  }
  return ProfileNames(std::move(state));
}

ProfileNames::ProfileNames(std::unique_ptr<State> state) : state_(std::move(state)) {}
ProfileNames::ProfileNames(ProfileNames&&) noexcept = default;
ProfileNames& ProfileNames::operator=(ProfileNames&&) noexcept = default;
ProfileNames::~ProfileNames() = default;

const ProfileAction& ProfileNames::classify(std::string_view name) {
  const auto known = state_->cache.find(name);
  if (known != state_->cache.end()) return known->second;
  state_->last = state_->classify(name);
  if (state_->cache.size() >= kMostCachedNames || name.size() > kMostCachedBytes) {
    return state_->last;
  }
  return state_->cache.emplace(std::string(name), state_->last).first->second;
}

bool is_communication_kernel(std::string_view name) {
  return name.find("nccl") != std::string_view::npos || name.find("rccl") != std::string_view::npos;
}

std::string_view without_nvtx_suffix(std::string_view name) {
  return name.substr(0, std::min(name.find(", seq = "), name.find(", op_id = ")));
}

std::optional<int> rank_in_name(std::string_view file_name) {
  std::optional<int> rank;
  for (std::size_t at = file_name.find("rank"); at != std::string_view::npos;
       at = file_name.find("rank", at + 1)) {
    std::size_t first = at + 4;
    if (first < file_name.size() && (file_name[first] == '_' || file_name[first] == '-')) ++first;
    std::size_t last = first;
    while (last < file_name.size() && file_name[last] >= '0' && file_name[last] <= '9') ++last;
    const auto number = whole_number(file_name.substr(first, last - first), 0, kMostIndex);
    if (!number) continue;
    if (rank && *rank != *number) return std::nullopt;
    rank = number;
  }
  return rank;
}

}  // namespace rrfp
