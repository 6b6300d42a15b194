#include "experiments/fit_scenario.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "experiments/display_units.h"
#include "experiments/recorded_order.h"
#include "experiments/sample.h"

namespace rrfp {

namespace {

constexpr int kIterations = 200;
/// Factors stay above this.
constexpr double kLeastFactor = 0.01;
/// From this constant difference on, a device has an entry of its own: of many
/// devices, and of few.
constexpr double kLeastDifference = 0.005;
constexpr double kLeastDifferenceOfFew = 0.001;
constexpr std::size_t kFew = 32;
/// With fewer messages a link shares the quantiles of all.
constexpr std::size_t kMessagesOfLink = 20;
/// From this correlation on, F and B of a stage share the draw of their
/// residual.
constexpr double kShared = 0.5;
/// As in the scenarios of this folder: a message is 2 % of what a stage keeps.
constexpr std::int64_t kMessagesOfActivation = 50;

double rounded(double value) { return std::round(value * 1e6) / 1e6; }

class ScenarioBuilder {
 public:
  ScenarioBuilder(const FitObservations& observed, const VarianceComponents& components,
                  std::optional<double> split_fraction)
      : observed_(observed),
        components_(components),
        table_(observed.durations),
        split_fraction_(split_fraction) {}

  FittedScenario build(const std::string& name) && {
    Scenario& scenario = fitted_.scenario;
    scenario.name = name;
    scenario.seed = 1;
    scenario.iterations = kIterations;
    scenario.pipeline = observed_.program.spec();
    if (split_fraction_) scenario.pipeline.split_backward = true;
    add_durations();
    add_lengths(components_.microbatch);
    for (const CommonFactor& factor : components_.of_kind) add_lengths(factor);
    add_residuals();
    add_drawn(VarianceSource::kGpuIteration, DrawScope::kGpu);
    add_drawn(VarianceSource::kReplicaIteration, DrawScope::kReplica);
    add_drawn(VarianceSource::kIteration, DrawScope::kIteration);
    add_always(VarianceSource::kReplica, DrawScope::kReplica);
    add_always(VarianceSource::kGpu, DrawScope::kGpu);
    add_network();
    add_sizes();
    add_surroundings();
    add_policies();
    tell_unknown();
    return std::move(fitted_);
  }

 private:
  void say(std::string sentence) { fitted_.unknown.push_back(std::move(sentence)); }
  std::vector<VariabilityModel>& models() { return fitted_.scenario.variability; }

  void add_durations() {
    Scenario& scenario = fitted_.scenario;
    for (StageTable* table : {&scenario.forward_ns, &scenario.backward_ns, &scenario.weight_ns}) {
      table->shape = StageTable::Shape::kPerStage;
      table->values.assign(scenario.pipeline.stages.size(), 0);
    }
    for (std::size_t column = 0; column < table_.columns.size(); ++column) {
      const Kind kind = table_.columns[column].kind;
      StageTable& table = kind == Kind::kForward          ? scenario.forward_ns
                          : kind == Kind::kWeightGradient ? scenario.weight_ns
                                                          : scenario.backward_ns;
      table.values[static_cast<std::size_t>(table_.columns[column].stage)] =
          std::llround(components_.mean_ns[column]);
    }
    if (split_fraction_) split_backwards();
    if (!scenario.pipeline.split_backward) scenario.weight_ns = StageTable();
  }

  void split_backwards() {
    Scenario& scenario = fitted_.scenario;
    for (int stage = 0; stage < observed_.program.stages(); ++stage) {
      if (observed_.program.backward_of(stage) != Backward::kFull) continue;
      std::int64_t& input_ns = scenario.backward_ns.values[static_cast<std::size_t>(stage)];
      const std::int64_t weight_ns = std::llround(static_cast<double>(input_ns) * *split_fraction_);
      scenario.weight_ns.values[static_cast<std::size_t>(stage)] = weight_ns;
      input_ns -= weight_ns;
    }
  }

  /// A factor 1 + load z is a constant plus a multiple of the length 1 + most z,
  /// with nothing below 0 where `most` is the largest load.
  void add_lengths(const CommonFactor& factor) {
    if (!factor.found()) return;
    const double most = *std::max_element(factor.load.begin(), factor.load.end());
    if (most <= 0) return;
    MicrobatchLengths lengths;
    lengths.length = quantile_distribution(factor.scores, 1, most, kLeastFactor);
    for (std::size_t column = 0; column < table_.columns.size(); ++column) {
      const double share = rounded(factor.load[column] / most);
      if (share <= 0) continue;
      const DurationColumn& of = table_.columns[column];
      lengths.costs.push_back({{of.kind}, {of.stage}, rounded(1 - share), share, 0});
    }
    models().emplace_back(std::move(lengths));
  }

  void add_residuals() {
    for (std::size_t first = 0; first < table_.columns.size();) {
      const int stage = table_.columns[first].stage;
      std::size_t last = first;
      while (last < table_.columns.size() && table_.columns[last].stage == stage) ++last;
      const bool shared =
          components_.residual_correlation[static_cast<std::size_t>(stage)] >= kShared;
      DrawModel together;
      together.selection.stages = {stage};
      for (std::size_t column = first; column < last; ++column) {
        const double variance = components_.residual_variance[column];
        if (variance <= 0) continue;
        const Kind kind = table_.columns[column].kind;
        Distribution factor = factor_of(components_.residuals[column], std::sqrt(variance));
        if (shared) {
          together.by_kind[static_cast<std::size_t>(kind)] = std::move(factor);
          continue;
        }
        DrawModel alone;
        alone.selection.stages = {stage};
        alone.selection.kinds = {kind};
        alone.distribution = std::move(factor);
        models().emplace_back(std::move(alone));
      }
      if (together.has_kinds()) models().emplace_back(std::move(together));
      first = last;
    }
  }

  static Distribution factor_of(const std::vector<double>& deviations, double deviation) {
    return quantile_distribution(deviations, 1, deviation, kLeastFactor);
  }

  void add_drawn(VarianceSource effect, DrawScope scope) {
    const EffectEstimate& estimate = components_.effect(effect);
    if (!estimate.significant()) return;
    DrawModel model;
    model.scope = scope;
    model.distribution = factor_of(estimate.to_draw_from(), std::sqrt(estimate.variance));
    models().emplace_back(std::move(model));
  }

  /// What is always so of a replica or a device is this job's own: each of
  /// those that differ by much keeps its factor. What little the others differ
  /// by is drawn, once for the job.
  void add_always(VarianceSource source, DrawScope scope) {
    const EffectEstimate& estimate = components_.effect(source);
    if (!estimate.significant()) return;
    const std::vector<double> best = estimate.best();
    std::vector<double> little = estimate.to_draw_from();
    const double least = best.size() <= kFew ? kLeastDifferenceOfFew : kLeastDifference;
    for (std::size_t i = 0; i < best.size(); ++i) {
      if (std::abs(best[i]) < least) continue;
      little[i] = 0;
      DrawModel model;
      model.scope = scope;
      model.is_static = true;
      const auto replicas = static_cast<std::size_t>(table_.replicas);
      model.selection.replicas = {static_cast<int>(i % replicas)};
      if (scope == DrawScope::kGpu) model.selection.ranks = {components_.ranks[i / replicas]};
      model.distribution = FixedValue{rounded(1 + best[i])};
      models().emplace_back(std::move(model));
    }
    if (standard_deviation(little) <= 0) return;
    DrawModel rest;
    rest.scope = scope;
    rest.is_static = true;
    rest.distribution = factor_of(little, standard_deviation(little));
    models().emplace_back(std::move(rest));
  }

  void add_network() {
    std::vector<double> all;
    std::map<Link, std::vector<double>> by_link;
    for (std::size_t edge = 0; edge < observed_.transfers_ns.size(); ++edge) {
      const Edge& of = observed_.program.edge(static_cast<EdgeId>(edge));
      std::vector<double>& link = by_link[Link{of.from_rank, of.to_rank}];
      for (const std::int64_t ns : observed_.transfers_ns[edge]) {
        link.push_back(static_cast<double>(ns));
        all.push_back(static_cast<double>(ns));
      }
    }
    if (all.empty()) return;
    std::sort(all.begin(), all.end());
    const std::int64_t median_ns = std::llround(quantile(all, 0.5));
    const std::int64_t usual_ns = median_ns > 0 ? median_ns : std::llround(mean(all));
    fitted_.scenario.network.latency_ns = usual_ns;
    if (usual_ns == 0) return;
    DrawModel of_all;
    for (const auto& [link, transfers_ns] : by_link) {
      if (transfers_ns.empty()) continue;
      if (transfers_ns.size() < kMessagesOfLink) {
        of_all.selection.links.push_back(link);
        continue;
      }
      DrawModel model;
      model.selection.links = {link};
      add_latency(std::move(model), transfers_ns, usual_ns);
    }
    if (!of_all.selection.links.empty()) add_latency(std::move(of_all), all, usual_ns);
  }

  /// A stage sends each of its messages of a kind over one edge that crosses, or none.
  /// No bandwidth goes with the sizes: the latency is the whole transfer.
  void add_sizes() {
    ScenarioNetwork& network = fitted_.scenario.network;
    std::int64_t largest = 0;
    for (std::size_t edge = 0; edge < observed_.message_bytes.size(); ++edge) {
      const std::int64_t bytes = observed_.message_bytes[edge];
      if (bytes == 0) continue;
      const Edge& of = observed_.program.edge(static_cast<EdgeId>(edge));
      StageTable& table =
          of.kind == Kind::kForward ? network.activation_bytes : network.gradient_bytes;
      if (table.zero()) {
        table.shape = StageTable::Shape::kPerStage;
        table.values.assign(fitted_.scenario.pipeline.stages.size(), 0);
      }
      std::int64_t& size = table.values[static_cast<std::size_t>(of.from)];
      size = std::max(size, bytes);
      largest = std::max(largest, bytes);
    }
    if (largest == 0) return;
    fitted_.scenario.memory.activation_bytes.values = {
        std::min(largest, kMostQuantity / kMessagesOfActivation) * kMessagesOfActivation};
    has_sizes_ = true;
  }

  void add_latency(DrawModel model, const std::vector<double>& transfers_ns,
                   std::int64_t usual_ns) {
    std::vector<double> factors = transfers_ns;
    for (double& factor : factors) factor /= static_cast<double>(usual_ns);
    model.target = DrawTarget::kLatency;
    model.scope = DrawScope::kMessage;
    model.distribution =
        quantile_distribution(factors, mean(factors), standard_deviation(factors), 0);
    models().emplace_back(std::move(model));
  }

  void add_surroundings() {
    DataParallel& group = fitted_.scenario.data_parallel;
    group.replicas = table_.replicas;
    group.gradient_sync_ns.shape = StageTable::Shape::kPerStage;
    group.gradient_sync_ns.values = observed_.gradient_sync_ns;
    group.optimizer_ns = observed_.head_ns + observed_.optimizer_ns;
    std::vector<std::int64_t>& budget = fitted_.scenario.memory.budget.activations;
    budget = peak_activations_of(observed_.order);
    for (std::size_t rank = 0; rank < budget.size(); ++rank) {
      const auto stages = observed_.program.stages_of(static_cast<int>(rank));
      budget[rank] =
          std::max({budget[rank], std::int64_t{1}, static_cast<std::int64_t>(stages.size())});
    }
  }

  void add_policy(std::string name, const HintSpec& hint, int window, bool waits,
                  Arrangement arrangement) {
    ScenarioPolicy policy;
    policy.name = std::move(name);
    policy.policy.hint = hint;
    policy.policy.window = window;
    policy.policy.arrangement = arrangement;
    if (waits) policy.policy.anticipation = Anticipation{750, 500};
    // Admission keeps an activation's room for each stage of a rank, and a fixed order
    // may need that room: its memory is what it holds, whatever is allowed.
    if (window == 1 && !observed_.program.one_stage_per_rank()) {
      policy.budget = Budget{};
      policy.budget->bytes.assign(static_cast<std::size_t>(observed_.program.ranks()), {});
    }
    fitted_.scenario.policies.push_back(std::move(policy));
  }

  void add_policies() {
    const bool split = fitted_.scenario.pipeline.split_backward;
    const std::string name = observed_.schedule.empty() ? "recorded" : observed_.schedule;
    HintSpec recorded;
    recorded.name = observed_.schedule;
    // By name, a schedule of a split program would split the recorded backwards.
    if (observed_.schedule.empty() || split_fraction_) recorded.order = observed_.order;
    HintSpec backward_first;
    backward_first.name = split ? "bfw" : "bf";
    std::vector<HintSpec> others = {backward_first};
    if (split_fraction_ && observed_.program.one_stage_per_rank()) {
      others.emplace_back();
      others.back().name = "zb-h1";
    }
    for (const Arrangement arrangement : {Arrangement::kGiven, Arrangement::kHill}) {
      const bool given = arrangement == Arrangement::kGiven;
      // Where microbatches are alike, their arrangement means nothing.
      if (!given && !components_.microbatch.found()) break;
      const std::string arranged = given ? "" : " hill";
      add_policy(name + arranged, recorded, 1, false, arrangement);
      if (given) add_policy(name + " ready", recorded, kNoWindow, false, arrangement);
      add_policy(name + " ready+wait" + arranged, recorded, kNoWindow, true, arrangement);
      for (const HintSpec& hint : others) {
        add_policy(hint.name + " ready+wait" + arranged, hint, kNoWindow, true, arrangement);
      }
    }
  }

  void tell_unknown() {
    say("launch delay is left out, as in a replay: the host is taken to be in time");
    if (has_sizes_) {
      say("messages have the sizes that were recorded; an activation is taken to be " +
          std::to_string(kMessagesOfActivation) +
          " of the largest, for that is not in a trace: set /memory to what it is. A budget is "
          "what the recorded order holds");
    } else {
      say("this trace has no bytes: memory counts activations, a budget is what the recorded order "
          "holds; set /memory and the sizes of /network to compare in bytes or to change them");
    }
    if (observed_.around_sd_ns > 0) {
      const DisplayUnit unit = time_unit(observed_.around_sd_ns);
      say("what stands around the pipeline (collectives, optimizer) has its mean in every "
          "iteration; in the trace it varied by " +
          in_unit(observed_.around_sd_ns, unit) + " " + std::string(unit.name) +
          " (standard deviation)");
    }
    if (split_fraction_) {
      say("the backward was recorded whole: that W is " + fixed(*split_fraction_, 3) +
          " of each is an assumption");
    } else if (!observed_.program.split_backward()) {
      say(observed_.merged_backwards
              ? "some backwards were recorded as I and W and some whole: all are whole here, so "
                "zero-bubble schedules cannot be tried"
              : "backwards were recorded whole: what W is of B is not known, so zero-bubble "
                "schedules cannot be tried; --split-fraction assumes it");
    }
    if (observed_.lanes > 1) {
      say(std::to_string(observed_.lanes) +
          " lanes were recorded: the slowest counts, differences between them are left out");
    }
    if (observed_.lost_transfers > 0) {
      say(std::to_string(observed_.lost_transfers) +
          " messages were not recorded: their transfer is taken to be as the others', or no time "
          "where there are none; /network/latency_us sets it");
    }
    if (observed_.other_orders > 0) {
      say(std::to_string(observed_.other_orders) + " of " +
          std::to_string(table_.iterations * table_.replicas) +
          " iterations of replicas ran another order than the first: the policies have the first");
    }
    if (table_.replicas == 1) {
      say("one replica was recorded: what differs between replicas and devices is not known");
    }
    if (table_.iterations < 10) {
      say(std::to_string(table_.iterations) +
          " iterations are few: what changes from one to the next is hardly known; 10 or more "
          "would tell");
    }
    if (table_.rows() < 100) {
      say(std::to_string(table_.rows()) +
          " microbatches are few: the tails of the quantiles are those of this sample");
    }
  }

  const FitObservations& observed_;
  const VarianceComponents& components_;
  const DurationTable& table_;
  const std::optional<double> split_fraction_;
  bool has_sizes_ = false;
  FittedScenario fitted_;
};

}  // namespace

FittedScenario fit_scenario(const std::string& name, const FitObservations& observed,
                            const VarianceComponents& components,
                            std::optional<double> split_fraction) {
  return ScenarioBuilder(observed, components, split_fraction).build(name);
}

}  // namespace rrfp
