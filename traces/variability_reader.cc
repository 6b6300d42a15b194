#include <utility>

#include "traces/distribution_file.h"
#include "traces/episode_timeline.h"
#include "traces/length_draws.h"
#include "traces/lengths_file.h"
#include "traces/preset.h"
#include "traces/quantity.h"
#include "traces/saturating.h"
#include "traces/time_axis.h"
#include "traces/variability_file.h"
#include "traces/variability_parts.h"
#include "traces/variability_words.h"

namespace rrfp {

namespace {

constexpr double kMostFactor = 1e6;
constexpr int kMostSamples = 10'000;
constexpr double kMostLength = 1e12;
constexpr double kMostCyclesPerIteration = 100'000;

// Reads the entries of one scenario.
class Reader {
 public:
  Reader(const Scenario& scenario, std::string folder)
      : scenario_(scenario), folder_(std::move(folder)) {}

  VariabilityModel read(const JsonCursor& in) const {
    if (in.ok() && in.value().object() == nullptr) {
      in.expected(
          "the name of a preset, or a model such as {\"model\": \"lognormal\", \"on\": "
          "\"compute\", "
          "\"cv\": 0.1}");
    }
    const ModelWord word = in.at("model").choice(kModelWords);
    switch (word) {
      case ModelWord::kLognormal:
        return lognormal(in);
      case ModelWord::kSpikes:
        return spikes(in);
      case ModelWord::kLengths:
        return lengths(in);
      case ModelWord::kWave:
        return wave(in);
      default:
        return read_draw_model(in, word, scenario_);
    }
  }

 private:
  VariabilityModel lognormal(const JsonCursor& in) const {
    const DrawTarget target = in.at("on").choice(kTargets);
    if (target == DrawTarget::kLatency) {
      in.only_keys({"model", "on", "cv"});
      return LognormalLatency{read_fraction(in.at("cv"), kMostCv)};
    }
    if (target != DrawTarget::kCompute) {
      in.at("on").expected("\"compute\" or \"latency\" for lognormal");
    }
    in.only_keys({"model", "on", "scope", "cv", "known"});
    LognormalCompute compute;
    if (const auto scope = in.find("scope")) compute.scope = scope->choice(kComputeScopes);
    compute.cv = read_fraction(in.at("cv"), kMostCv);
    compute.known = in.boolean_or("known", compute.scope == ComputeScope::kMicrobatch);
    return compute;
  }

  VariabilityModel spikes(const JsonCursor& in) const {
    KnownKeys({"model", "on", "probability"}).with("extra", time_units()).check(in);
    if (in.at("on").choice(kTargets) != DrawTarget::kLatency) {
      in.at("on").expected("\"latency\" for spikes");
    }
    LatencySpikes spikes;
    spikes.probability = read_fraction(in.at("probability"), 1);
    spikes.extra_ns = need_quantity(in, "extra", time_units()).value();
    return spikes;
  }

  VariabilityModel lengths(const JsonCursor& in) const {
    in.only_keys({"model", "length", "file", "column", "unit", "samples", "pack", "costs",
                  "messages", "known", "from_preset", "modelled"});
    MicrobatchLengths out;
    const auto file = in.find("file");
    if (file) {
      if (in.find("length")) in.fail("found \"length\" and \"file\"; give one of them");
      const std::string path = file->string();
      const std::string column = in.string_or("column", "");
      if (!in.ok()) return out;
      const Result<Quantiles> table =
          read_lengths(path.starts_with('/') ? path : folder_ + path, column);
      if (!table.ok()) {
        file->fail(table.error().message);
      } else {
        out.length = *table;
      }
    } else {
      if (in.find("column")) in.fail("\"column\" is only given with \"file\"");
      out.length = read_distribution(in.at("length"), kMostLength);
    }
    if (const auto unit = in.find("unit")) {
      out.unit = read_fraction(*unit, kMostLength);
      if (in.ok() && out.unit <= 0) unit->expected("a number above 0");
    }
    const bool pack = in.boolean_or("pack", false);
    if (pack && in.find("samples")) in.fail("found \"pack\" and \"samples\"; give one of them");
    out.samples = pack ? 0 : static_cast<int>(in.integer_or("samples", 1, {1, kMostSamples}));
    if (in.ok()) {
      if (const Result<void> packed = check_packed(out); !packed.ok()) {
        in.fail(packed.error().message);
      }
    }
    for (const JsonCursor& item : in.at("costs").items()) {
      item.only_keys({"tasks", "stages", "constant", "linear", "quadratic"});
      LengthCost cost;
      cost.kinds = read_kinds(item);
      cost.stages =
          read_indices(item, "stages", static_cast<int>(scenario_.pipeline.stages.size()) - 1);
      const auto coefficient = [&item](std::string_view key) {
        const auto member = item.find(key);
        return member ? read_fraction(*member, kMostFactor) : 0;
      };
      cost.constant = coefficient("constant");
      cost.linear = coefficient("linear");
      cost.quadratic = coefficient("quadratic");
      out.costs.push_back(std::move(cost));
    }
    out.messages = in.boolean_or("messages", false);
    out.known = in.boolean_or("known", true);
    out.origin = read_origin(in);
    return out;
  }

  VariabilityModel wave(const JsonCursor& in) const {
    KnownKeys({"model", "on", "amplitude", "phase", "known", "from_preset", "modelled"})
        .with("period", time_units())
        .check(in);
    if (in.at("on").choice(kTargets) != DrawTarget::kCompute) {
      in.at("on").expected("\"compute\" for a wave");
    }
    ComputeWave out;
    out.amplitude = read_fraction(in.at("amplitude"), 1);
    const Quantity period = need_quantity(in, "period", time_units());
    out.period_ns = period.value();
    if (in.ok() && out.period_ns < 1) period.in.expected("a time above 0");
    if (const auto phase = in.find("phase")) out.phase = read_fraction(*phase, 1);
    out.known = in.boolean_or("known", false);
    out.origin = read_origin(in);
    return out;
  }

  const Scenario& scenario_;
  std::string folder_;
};

}  // namespace

namespace {

// Episodes are listed for a whole iteration: refuses those that no task would
// notice one by one, but that would fill the memory.
void check_episodes(const JsonCursor& entry, const VariabilityModel& model,
                    const Scenario& scenario) {
  const auto* draw = std::get_if<DrawModel>(&model);
  const auto* episodes = draw == nullptr ? nullptr : std::get_if<Episodes>(&draw->timing);
  if (!entry.ok() || episodes == nullptr) return;
  const Result<Program> program = Program::create(scenario.pipeline);
  if (!program.ok()) return entry.fail(program.error().message);
  const double cycle_ns = EpisodeTimeline(*episodes, 1, 0, 0).cycle_ns();
  const std::int64_t iteration_ns = TimeAxis(scenario, *program).iteration_ns();
  if (static_cast<double>(iteration_ns) / cycle_ns <= kMostCyclesPerIteration) return;
  const auto member = entry.find("episodes");
  (member ? *member : entry)
      .fail("an iteration of " + std::to_string(iteration_ns) +
            " ns would have more than 100000 episodes, one every " +
            std::to_string(rounded_ns(cycle_ns)) + " ns; they must be longer, or further apart");
}

}  // namespace

void read_variability(const JsonCursor& list, const std::string& folder, Scenario& scenario) {
  const Reader reader(scenario, folder);
  std::size_t checked = scenario.variability.size();
  for (const JsonCursor& entry : list.items()) {
    if (!list.ok()) return;
    if (entry.value().string() != nullptr || entry.value().find("preset") != nullptr) {
      read_preset(entry, folder, scenario, scenario.variability);
    } else {
      VariabilityModel model = reader.read(entry);
      if (list.ok()) scenario.variability.push_back(std::move(model));
    }
    for (; checked < scenario.variability.size(); ++checked) {
      check_episodes(entry, scenario.variability[checked], scenario);
    }
  }
}

}  // namespace rrfp
