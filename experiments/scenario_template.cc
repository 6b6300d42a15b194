#include "experiments/scenario_template.h"

#include <array>
#include <charconv>
#include <cmath>
#include <vector>

namespace rrfp {

namespace {

constexpr double kAssumedModelShare = 0.4;
constexpr double kAssumedLatencyUs = 50;

// At most nine decimals, without trailing zeros and without an exponent.
std::string number(double value) {
  std::array<char, 64> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, 9);
  std::string digits(text.data(), error == std::errc{} ? end : text.data());
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

std::string assumed(bool given, const std::string& what) {
  return given ? "" : "  // assumed: " + what;
}

// One line of the list of policies.
struct PolicyLine {
  std::string name;
  std::string rest;
  int activations = 0;  // on the rank that needs the most; 0: whatever the budget is
};

// Those that do not fit stand as comments, so that the file runs as it is.
std::string policies(int ranks, int activations_that_fit) {
  const std::string waits = ", \"anticipation\": true";
  // As frameworks run it, and as `init --model` writes it.
  const auto whole = [](const std::string& name) {
    return "\"hint\": {\"name\": \"" + name + "\", \"whole_backward\": true}, \"fixed\": true";
  };
  const std::vector<PolicyLine> lines = {
      {"1f1b", whole("1f1b"), ranks},
      {"1f1b split", "\"hint\": \"1f1b\", \"fixed\": true", ranks},
      {"zb-h1", "\"hint\": \"zb-h1\", \"fixed\": true", ranks},
      {"zb-h1 ready+wait", "\"hint\": \"zb-h1\", \"budget_activations\": \"zb-h1\"" + waits, ranks},
      {"eager-1f1b", whole("eager-1f1b"), 2 * ranks - 1},
      {"eager-1f1b split", "\"hint\": \"eager-1f1b\", \"fixed\": true", 2 * ranks - 1},
      {"zb-h2", "\"hint\": \"zb-h2\", \"fixed\": true", 2 * ranks - 1},
      {"zb-h2 ready+wait", "\"hint\": \"zb-h2\", \"budget_activations\": \"zb-h2\"" + waits,
       2 * ranks - 1},
      {"bfw, all the memory", "\"hint\": \"bfw\"" + waits, 0},
  };
  std::string text;
  bool first = true;
  for (const PolicyLine& line : lines) {
    const std::string entry = "{\"name\": \"" + line.name + "\", " + line.rest + "}";
    if (line.activations > activations_that_fit) {
      text += "    // " + entry + " needs " + std::to_string(line.activations) + " activations\n";
      continue;
    }
    text += std::string(first ? "    " : "    , ") + entry + "\n";
    first = false;
  }
  return text;
}

// Without worlds a start to edit.
std::string variability(const Worlds& worlds) {
  if (!worlds.empty()) {
    return "  // Presets of what varies; `rrfp presets` has all, with their sources.\n" +
           variability_text(worlds, [](const std::string&) { return ""; });
  }
  std::string text;
  const auto line = [&text](const std::string& words) { text += words + "\n"; };
  line("  // What varies, all with the mean kept. \"known\": the scheduler knows it beforehand.");
  line("  \"variability\": [");
  line(
      "    {\"model\": \"lognormal\", \"on\": \"compute\", \"scope\": \"operation\", \"cv\": "
      "0.1},");
  line("    {\"model\": \"lognormal\", \"on\": \"latency\", \"cv\": 1.0}");
  line(
      "    // , {\"model\": \"lognormal\", \"on\": \"compute\", \"scope\": \"microbatch\", "
      "\"cv\": 0.3, \"known\": true}");
  line(
      "    // , {\"model\": \"spikes\", \"on\": \"latency\", \"probability\": 0.05, "
      "\"extra_ms\": 10}");
  line("  ],");
  return text;
}

// What tasks and messages take.
std::string times(const JobNumbers& job, double weight_ms) {
  const std::string halves = "half of the backward each";
  std::string text;
  const auto line = [&text](const std::string& words) { text += words + "\n"; };
  line("  // Of one stage and microbatch: a number, a list by stage, or by stage and microbatch.");
  line("  \"durations\": {");
  line("    \"forward_ms\": " + number(job.forward_ms) + ",");
  line("    \"input_gradient_ms\": " + number(job.backward_ms - weight_ms) + "," +
       assumed(job.weight_ms.has_value(), halves));
  line("    \"weight_gradient_ms\": " + number(weight_ms) +
       assumed(job.weight_ms.has_value(), halves));
  line("  },");
  line("");
  line("  \"network\": {");
  line("    \"mode\": \"eager\",");
  line("    \"latency_us\": " + number(job.latency_us.value_or(kAssumedLatencyUs)) +
       assumed(job.latency_us.has_value(), "measure yours"));
  line("    // , \"activation_mb\": 64, \"bandwidth_gbyte_per_second\": 25");
  line("    // of a message (2 bytes x sequence x hidden in bf16); without, it has 0 bytes");
  line("  },");
  line("");
  return text;
}

}  // namespace

std::string scenario_template(const JobNumbers& job) {
  const double weight_ms = job.weight_ms.value_or(job.backward_ms / 2);
  const double model_gb = job.model_gb.value_or(job.gpu_gb * kAssumedModelShare);
  const double budget_gb = job.gpu_gb - model_gb;
  const double activation_gb =
      std::max(job.activation_gb.value_or(std::floor(1e6 * budget_gb / job.ranks) / 1e6), 1e-9);
  const int fit = static_cast<int>(std::min(budget_gb / activation_gb + 1e-9, 1e9));
  std::string text;
  const auto line = [&text](const std::string& words) { text += words + "\n"; };
  line("// A scenario for `rrfp sweep` and `rrfp simulate`. Keys end in their unit; comments are");
  line("// allowed. Compare policies at equal memory: the table of `rrfp sweep` shows it.");
  line("{");
  line("  \"schema\": \"rrfp.scenario/1\",");
  line("  \"name\": \"my job\",");
  line("  \"seed\": 1,");
  line("  \"iterations\": 200,  // worlds that every policy meets");
  line("");
  line("  // One stage per rank. \"shape\": \"looped\" with \"chunks\", or \"v\", for more.");
  line("  \"pipeline\": {\"ranks\": " + std::to_string(job.ranks) +
       ", \"microbatches\": " + std::to_string(job.microbatches) + ", \"split_backward\": true},");
  line("");
  text += times(job, weight_ms);
  line("  // A device has " + number(job.gpu_gb) +
       " GB, of which weights, gradients and optimizer " + "take " + number(model_gb) + " GB" +
       (job.model_gb ? "" : " (assumed: --model-gb says it)") + ".");
  line("  // The rest holds " + std::to_string(fit) + " activations.");
  line("  \"memory\": {");
  line("    \"activation_gb\": " + number(activation_gb) + "," +
       assumed(job.activation_gb.has_value(), "what lets 1f1b just fit; --activation-gb says it"));
  line("    \"budget_gb\": " + number(budget_gb));
  line("  },");
  line("");
  text += variability(job.worlds);
  line("");
  line(
      "  // \"fixed\": a pre-committed order; otherwise the hint ranks whatever is ready. 1f1b as");
  line(
      "  // frameworks run it has whole backwards; \"split\" is the same order with I and W "
      "apart.");
  line("  \"baseline\": \"" + std::string(fit >= job.ranks ? "1f1b" : "bfw, all the memory") +
       "\",");
  line("  \"policies\": [");
  text += policies(job.ranks, fit);
  line("  ]");
  // That of several worlds stands above.
  if (job.worlds.empty()) {
    line("");
    line("  // A grid runs every combination of its values:");
    line(
        "  // , \"grid\": {\"/variability/0/cv\": [0, 0.1, 0.3], \"/network/latency_us\": [50, "
        "500]}");
  }
  line("}");
  return text;
}

}  // namespace rrfp
