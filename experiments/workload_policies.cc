#include "experiments/workload_policies.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "experiments/display_units.h"
#include "traces/scenario_budget.h"

namespace rrfp {

namespace {

constexpr std::string_view kWaits = ", \"anticipation\": true";

/// A fixed order and the memory that it needs, which its hints get as well.
struct Level {
  std::string_view schedule;
  bool whole_backward;  ///< frameworks run it with backwards that are not split
  std::string_view memory;
};

constexpr std::array<Level, 4> kOneChunk = {{
    {"1f1b", true, "p - r activations on rank r"},
    {"eager-1f1b", true, "2(p - r) - 1 activations on rank r"},
    {"zb-h1", false, "p activations on every rank"},
    {"zb-h2", false, "2p - 1 activations on every rank"},
}};

constexpr std::array<Level, 1> kInterleaved = {{
    {"interleaved-1f1b", true, "2(p - r - 1) + (v - 1)p + 1 activations of a chunk on rank r"},
}};

/// Collects policies, one a line.
class PolicyWriter {
 public:
  explicit PolicyWriter(bool arranges) : arranges_(arranges) {}

  void comment(const std::string& text) { text_.lines += "    // " + text + "\n"; }

  /// `rest`: what follows the name. Where microbatches differ, once as they
  /// come and once arranged.
  void policy(const std::string& name, const std::string& rest) {
    add(name, rest);
    if (arranges_) add(name + ", hill", rest + ", \"arrange\": \"hill\"");
  }

  PolicyText finish() && { return std::move(text_); }

 private:
  void add(const std::string& name, const std::string& rest) {
    if (text_.baseline.empty()) text_.baseline = name;
    text_.lines += first_ ? "    " : "    , ";
    text_.lines += "{\"name\": \"" + name + "\", " + rest + "}\n";
    first_ = false;
  }

  bool arranges_;
  bool first_ = true;
  PolicyText text_;
};

// The rank that lacks the most memory at the peak of a schedule, and what it would need.
struct Lack {
  int rank = 0;
  double needed_bytes = 0;
};

std::optional<Lack> lack_of(const Level& level, const PolicyNeeds& needs) {
  std::optional<Lack> lack;
  if (needs.budget_bytes.empty()) return lack;
  const std::vector<std::int64_t> peak = peak_activations(level.schedule, needs.pipeline);
  double most = 0;
  for (std::size_t rank = 0; rank < peak.size(); ++rank) {
    const double needed = static_cast<double>(peak[rank]) * needs.activation_bytes[rank];
    if (needed - needs.budget_bytes[rank] <= most) continue;
    most = needed - needs.budget_bytes[rank];
    lack = Lack{static_cast<int>(rank), needed};
  }
  return lack;
}

void write_level(const Level& level, PolicyWriter& out) {
  const std::string name(level.schedule);
  const std::string hint = "\"hint\": \"" + name + "\"";
  const std::string budget = ", \"budget_activations\": \"" + name + "\"";
  const std::string waits(kWaits);
  const auto whole = [](const std::string& schedule) {
    return "\"hint\": {\"name\": \"" + schedule + "\", \"whole_backward\": true}";
  };
  if (level.whole_backward) {
    out.policy(name, whole(name) + ", \"fixed\": true");
    out.policy(name + " split", hint + ", \"fixed\": true");
    out.policy("bf ready+wait @" + name, whole("bf") + budget + waits);
  } else {
    out.policy(name, hint + ", \"fixed\": true");
  }
  out.policy(name + " ready+wait", hint + budget + waits);
  out.policy("bfw ready+wait @" + name, "\"hint\": \"bfw\"" + budget + waits);
}

}  // namespace

PolicyText workload_policies(const PolicyNeeds& needs) {
  const bool chunked =
      needs.pipeline.stages.size() > static_cast<std::size_t>(needs.pipeline.ranks);
  const std::span<const Level> levels =
      chunked ? std::span<const Level>(kInterleaved) : std::span<const Level>(kOneChunk);
  PolicyWriter out(needs.arranges);
  for (const Level& level : levels) {
    const std::string name(level.schedule);
    if (const std::optional<Lack> lack = lack_of(level, needs)) {
      const auto rank = static_cast<std::size_t>(lack->rank);
      out.comment(name + " does not fit: rank " + std::to_string(lack->rank) + " would need " +
                  fixed(lack->needed_bytes / 1e9, 1) + " GB of the " +
                  fixed(needs.budget_bytes[rank] / 1e9, 1) + " GB left");
      continue;
    }
    out.comment(name + ": " + std::string(level.memory));
    write_level(level, out);
  }
  // A hint fits any budget, also one that its own order as a fixed one would not.
  out.comment(needs.budget_bytes.empty() ? "no limit" : "all the memory that is left");
  const std::string waits(kWaits);
  const std::string shaped = chunked ? "interleaved-zb" : "zb-h2";
  out.policy(shaped + " ready+wait @gpu", "\"hint\": \"" + shaped + "\"" + waits);
  out.policy("bfw ready+wait @gpu", "\"hint\": \"bfw\"" + waits);
  return std::move(out).finish();
}

}  // namespace rrfp
