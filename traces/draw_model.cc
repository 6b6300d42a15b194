#include "traces/draw_model.h"

#include <algorithm>
#include <map>

#include "scheduler_core/random.h"
#include "traces/saturating.h"

namespace rrfp {

namespace {

constexpr double kLeastBandwidth = 1e-6;
constexpr std::uint64_t kJob = ~std::uint64_t{0};  // instead of an iteration

enum Lane : std::uint64_t { kValue, kWhether, kPhase, kJitter };

template <typename T>
bool lists(const std::vector<T>& list, const T& one) {
  return list.empty() || std::find(list.begin(), list.end(), one) != list.end();
}

std::int64_t draw_below(std::uint64_t bits, std::int64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>((Wide{bits} * static_cast<std::uint64_t>(bound)) >> 64);
}

std::size_t kind_index(Kind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

Kind kind_of(Slot slot, bool split_backward) {
  if (slot == Slot::kForward) return Kind::kForward;
  if (slot == Slot::kWeight) return Kind::kWeightGradient;
  return split_backward ? Kind::kInputGradient : Kind::kBackward;
}

bool means(const std::vector<Kind>& kinds, Slot slot, bool split_backward) {
  if (lists(kinds, kind_of(slot, split_backward))) return true;
  return slot != Slot::kForward && lists(kinds, Kind::kBackward);
}

// The draws of one world, of one lane.
class CompiledDraw::Draws {
 public:
  struct Drawn {
    bool there = false;
    double value = 0;
  };

  Draws(const CompiledDraw& of, const WorldId& world, int lane)
      : of_(of),
        world_(world),
        purpose_(purpose_of(of.position_, of.of_all_replicas() ? 0 : world.replica, lane)),
        series_(series(of.model_.is_static ? kJob : static_cast<std::uint64_t>(world.iteration))) {
    if (const auto* steps = std::get_if<RepeatedSteps>(&of_.model_.timing)) steps_ = steps;
    if (!of_.timeline_) return;
    start_ns_ = of_.axis_->start_ns(world.iteration);
    episodes_ =
        of_.timeline_->overlapping(start_ns_, capped_sum(start_ns_, of_.axis_->iteration_ns() + 1));
  }

  Drawn at(const Row& row, int microbatch) const {
    const Episode* episode = nullptr;
    std::int64_t now_ns = 0;
    if (of_.timeline_) {
      now_ns = time_ns(row, microbatch);
      episode = episode_at(row, now_ns);
      if (episode == nullptr) return {};
      if (of_.model_.effect == DrawEffect::kHold) {
        return {true, static_cast<double>(episode->end_ns - now_ns)};
      }
    }
    const bool each = of_.by_microbatch();
    const std::uint64_t index = element(row.scope_row, each ? microbatch : 0);
    if (steps_ != nullptr && !repeats(index)) return {};
    const DrawSeries draws = episode != nullptr && !each ? series(episode->number) : series_;
    if (of_.model_.probability < 1 &&
        unit_of(draws.bits(index, kWhether)) >= of_.model_.probability) {
      return {};
    }
    const Sampler& sampler = of_.samplers_[static_cast<std::size_t>(row.sampler)];
    return {true, std::max(0.0, sampler.at(draws.bits(index, kValue)))};
  }

 private:
  DrawSeries series(std::uint64_t iteration) const {
    return DrawSeries(DrawKey{of_.seed_, iteration, purpose_, 0});
  }

  // A task is where it starts, a message where it is sent.
  std::int64_t time_ns(const Row& row, int microbatch) const {
    const TimeAxis& axis = *of_.axis_;
    switch (of_.model_.target) {
      case DrawTarget::kCompute:
        return capped_sum(start_ns_, axis.task_start_ns(row.stage, row.slot, microbatch));
      case DrawTarget::kInput:
        return start_ns_;
      default:
        return capped_sum(start_ns_, axis.task_end_ns(row.stage, row.slot, microbatch));
    }
  }

  const Episode* episode_at(const Row& row, std::int64_t now_ns) const {
    const auto after = std::upper_bound(
        episodes_.begin(), episodes_.end(), now_ns,
        [](std::int64_t now, const Episode& episode) { return now < episode.begin_ns; });
    if (after == episodes_.begin()) return nullptr;
    const Episode& episode = *std::prev(after);
    if (now_ns >= episode.end_ns) return nullptr;
    if (of_.hit_index_.empty()) return &episode;
    const auto place =
        static_cast<std::size_t>(world_.replica * of_.hit_elements_ + row.hit_element);
    const int number = of_.hit_index_[place];
    return number >= 0 && episode.hits(number) ? &episode : nullptr;
  }

  // Whether this iteration is phase + k * every + jitter for some k.
  bool repeats(std::uint64_t index) const {
    const auto purpose = steps_->same ? purpose_of(of_.position_, 0, 0) : purpose_;
    const std::uint64_t element = steps_->same ? 0 : index;
    const std::int64_t every = steps_->every;
    const DrawSeries job(DrawKey{of_.seed_, kJob, purpose, 0});
    const std::int64_t phase = draw_below(job.bits(element, kPhase), every);
    // Counted from 1, so that jitter cannot lead below the first iteration.
    const std::int64_t since = world_.iteration + every - phase;
    for (std::int64_t k = since / every; k >= std::max<std::int64_t>(0, since / every - 1); --k) {
      const DrawSeries draws(DrawKey{of_.seed_, static_cast<std::uint64_t>(k), purpose, 0});
      const std::int64_t jitter =
          draw_below(draws.bits(element, kJitter), std::int64_t{steps_->spread} + 1);
      if (k * every + jitter == since) return true;
    }
    return false;
  }

  const CompiledDraw& of_;
  WorldId world_;
  std::uint64_t purpose_;
  DrawSeries series_;
  const RepeatedSteps* steps_ = nullptr;
  std::int64_t start_ns_ = 0;
  std::vector<Episode> episodes_;
};

CompiledDraw::CompiledDraw(const DrawModel& model, std::size_t position, const Scenario& scenario,
                           const Program& program, std::shared_ptr<const TimeAxis> axis)
    : model_(model),
      position_(position),
      seed_(scenario.seed),
      lanes_(scenario.tensor_parallel.lanes),
      replicas_(scenario.data_parallel.replicas),
      microbatches_(program.microbatches()),
      axis_(std::move(axis)) {
  if (!model_.has_kinds()) samplers_.emplace_back(model_.distribution);
  switch (model_.target) {
    case DrawTarget::kCompute:
      add_task_rows(program);
      break;
    case DrawTarget::kInput:
      rows_.push_back({.microbatches = microbatches_});
      break;
    default:
      add_message_rows(program);
  }
  long_run_ = model_.probability;
  if (const auto* steps = std::get_if<RepeatedSteps>(&model_.timing)) long_run_ /= steps->every;
  if (const auto* episodes = std::get_if<Episodes>(&model_.timing)) {
    compile_timeline(*episodes, program);
    long_run_ *= timeline_->share();
  }
}

int CompiledDraw::scope_row(int stage, Slot slot, int rank) const {
  switch (model_.scope) {
    case DrawScope::kOperation:
      return model_.has_kinds() ? stage : stage * kSlots + static_cast<int>(slot);
    case DrawScope::kStage:
      return stage;
    case DrawScope::kRank:
    case DrawScope::kGpu:
      return rank / model_.group;
    default:
      return 0;
  }
}

void CompiledDraw::add_task_rows(const Program& program) {
  const Selection& selection = model_.selection;
  const bool split = program.split_backward();
  std::array<int, 4> sampler_of_kind{};
  for (std::size_t kind = 0; kind < model_.by_kind.size(); ++kind) {
    sampler_of_kind[kind] = -1;
    if (!model_.by_kind[kind]) continue;
    sampler_of_kind[kind] = static_cast<int>(samplers_.size());
    samplers_.emplace_back(*model_.by_kind[kind]);
  }
  for (int stage = 0; stage < program.stages(); ++stage) {
    const int rank = program.rank_of(stage);
    if (!lists(selection.stages, stage) || !lists(selection.ranks, rank)) continue;
    for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
      if (!program.exists(program.task_id(stage, slot, 0))) continue;
      if (!means(selection.kinds, slot, split)) continue;
      const bool first = slot == Slot::kForward && program.stages_of(rank).front() == stage;
      if (selection.first_of_iteration && !first) continue;
      int sampler = 0;
      if (model_.has_kinds()) {
        sampler = sampler_of_kind[kind_index(kind_of(slot, split))];
        if (sampler < 0 && slot != Slot::kForward) {
          sampler = sampler_of_kind[kind_index(Kind::kBackward)];
        }
        if (sampler < 0) continue;
      }
      rows_.push_back({stage * kSlots + static_cast<int>(slot), scope_row(stage, slot, rank), stage,
                       slot, selection.first_of_iteration ? 1 : microbatches_, sampler, rank});
    }
  }
}

bool CompiledDraw::selects(const Edge& edge) const {
  const Selection& selection = model_.selection;
  if (!edge.crosses()) return false;
  if (!lists(selection.links, Link{edge.from_rank, edge.to_rank})) return false;
  return lists(selection.ranks, edge.from_rank) || lists(selection.ranks, edge.to_rank);
}

void CompiledDraw::add_message_rows(const Program& program) {
  std::map<Link, int> pairs;
  for (const Edge& edge : program.edges()) {
    if (!edge.crosses()) continue;
    pairs.emplace(
        Link{std::min(edge.from_rank, edge.to_rank), std::max(edge.from_rank, edge.to_rank)},
        static_cast<int>(pairs.size()));
  }
  for (EdgeId id = 0; id < static_cast<EdgeId>(program.edges().size()); ++id) {
    const Edge& edge = program.edge(id);
    if (!selects(edge)) continue;
    if (!means(model_.selection.kinds, edge.slot(), program.split_backward())) continue;
    int shared = 0;
    if (model_.scope == DrawScope::kMessage) shared = id;
    if (model_.scope == DrawScope::kLink) shared = edge.from_rank * kMostRanks + edge.to_rank;
    const auto pair = pairs.find(
        {std::min(edge.from_rank, edge.to_rank), std::max(edge.from_rank, edge.to_rank)});
    const auto* episodes = std::get_if<Episodes>(&model_.timing);
    const bool by_pair = episodes != nullptr && episodes->element == EpisodeElement::kLinkPair;
    rows_.push_back({id, shared, edge.from, edge.slot(), microbatches_, 0,
                     by_pair ? pair->second : edge.from_rank});
  }
}

void CompiledDraw::compile_timeline(const Episodes& episodes, const Program& program) {
  int elements = 1;
  if (episodes.element != EpisodeElement::kAll) {
    hit_elements_ = program.ranks();
    for (const Row& row : rows_) hit_elements_ = std::max(hit_elements_, row.hit_element + 1);
    hit_index_.assign(static_cast<std::size_t>(hit_elements_ * replicas_), -1);
    std::vector<bool> used(static_cast<std::size_t>(hit_elements_));
    for (const Row& row : rows_) used[static_cast<std::size_t>(row.hit_element)] = true;
    elements = 0;
    const bool everywhere = episodes.element == EpisodeElement::kRank;
    for (int replica = 0; replica < replicas_; ++replica) {
      if (!lists(model_.selection.replicas, replica)) continue;
      // A rank is hit in all replicas at once.
      if (everywhere) elements = 0;
      for (int one = 0; one < hit_elements_; ++one) {
        if (!used[static_cast<std::size_t>(one)]) continue;
        hit_index_[static_cast<std::size_t>(replica * hit_elements_ + one)] = elements++;
      }
    }
  }
  timeline_.emplace(episodes, elements, seed_, purpose_of(position_, 0, 0));
}

bool CompiledDraw::by_microbatch() const {
  return model_.scope == DrawScope::kOperation || model_.scope == DrawScope::kMessage ||
         model_.scope == DrawScope::kMicrobatch;
}

bool CompiledDraw::of_all_replicas() const {
  return model_.scope == DrawScope::kStage || model_.scope == DrawScope::kRank ||
         model_.scope == DrawScope::kIteration;
}

bool CompiledDraw::holds_in(const WorldId& world) const {
  const IterationRange& range = model_.selection.iterations;
  return world.iteration >= range.first &&
         world.iteration <= range.last.value_or(world.iteration) &&
         lists(model_.selection.replicas, world.replica);
}

// Of what is drawn, in ns or as a factor.
double CompiledDraw::mean_of(const Row& row) const {
  if (model_.effect == DrawEffect::kHold) {
    // A message that is held comes halfway through an episode.
    return Sampler(std::get<Episodes>(model_.timing).on_ns).mean() / 2;
  }
  return samplers_[static_cast<std::size_t>(row.sampler)].mean();
}

namespace {

void add_factor(Effect& effect, bool there, double value, bool known, double expected) {
  if (there) effect.factor *= value;
  if (!known) {
    effect.expected_factor *= expected;
  } else if (there) {
    effect.expected_factor *= value;
  }
}

void add_extra(Effect& effect, bool there, double value, bool known, double expected_ns) {
  const std::int64_t extra_ns = there ? rounded_ns(value) : 0;
  effect.extra_ns = capped_sum(effect.extra_ns, extra_ns);
  effect.expected_extra_ns += known ? static_cast<double>(extra_ns) : expected_ns;
}

}  // namespace

void CompiledDraw::apply(const WorldId& world, ComputeTable& out) const {
  if (model_.target != DrawTarget::kCompute || !holds_in(world)) return;
  out.all_known = out.all_known && model_.known;
  const Draws draws(*this, world, 0);
  const bool factor = model_.effect == DrawEffect::kFactor;
  const bool each = by_microbatch() || timeline_.has_value();
  for (const Row& row : rows_) {
    const double mean = mean_of(row);
    const double expected = factor ? 1 + long_run_ * (mean - 1) : long_run_ * mean;
    Draws::Drawn drawn;
    for (int m = 0; m < row.microbatches; ++m) {
      if (m == 0 || each) drawn = draws.at(row, m);
      Effect& effect = out.tasks[static_cast<std::size_t>(row.table_row * microbatches_ + m)];
      (factor ? add_factor : add_extra)(effect, drawn.there, drawn.value, model_.known, expected);
    }
  }
}

void CompiledDraw::apply(const WorldId& world, MessageTable& out) const {
  if (!is_on_messages(model_.target)) return;
  const bool on_latency = model_.target != DrawTarget::kBandwidth;
  const bool on_transmission = model_.target != DrawTarget::kLatency;
  const bool factor = model_.effect == DrawEffect::kFactor;
  // Whether tables are there at all must not depend on the iteration.
  out.varies = true;
  out.adds = out.adds || on_transmission || !factor;
  if (on_transmission && out.transmission.empty()) {
    for (const std::vector<Effect>& messages : out.latency) {
      out.transmission.emplace_back(messages.size());
    }
  }
  if (!holds_in(world)) return;
  const bool each = by_microbatch() || timeline_.has_value();
  for (int lane = 0; lane < lanes_; ++lane) {
    const Draws draws(*this, world, model_.scope == DrawScope::kMessage ? lane : 0);
    for (const Row& row : rows_) {
      const double mean = mean_of(row);
      const double expected = factor ? 1 + long_run_ * (mean - 1) : long_run_ * mean;
      const auto table_row = static_cast<std::size_t>(row.table_row);
      Draws::Drawn drawn;
      for (int m = 0; m < row.microbatches; ++m) {
        if (m == 0 || each) drawn = draws.at(row, m);
        const auto message = static_cast<std::size_t>(lane * microbatches_ + m);
        if (on_latency) {
          (factor ? add_factor : add_extra)(out.latency[table_row][message], drawn.there,
                                            drawn.value, model_.known, expected);
        }
        if (!on_transmission) continue;
        // A transmission takes as much longer as the bandwidth is less.
        const auto time = [on_latency](double value) {
          return on_latency ? value : 1 / std::max(value, kLeastBandwidth);
        };
        add_factor(out.transmission[table_row][message], drawn.there, time(drawn.value),
                   model_.known, time(expected));
      }
    }
  }
}

void CompiledDraw::delay_inputs(const WorldId& world,
                                std::vector<std::int64_t>& input_ready_ns) const {
  if (!on_inputs() || !holds_in(world)) return;
  const Draws draws(*this, world, 0);
  for (int m = 0; m < microbatches_; ++m) {
    const Draws::Drawn drawn = draws.at(rows_.front(), m);
    if (!drawn.there) continue;
    std::int64_t& ready_ns = input_ready_ns[static_cast<std::size_t>(m)];
    ready_ns = capped_sum(ready_ns, rounded_ns(drawn.value));
  }
}

}  // namespace rrfp
