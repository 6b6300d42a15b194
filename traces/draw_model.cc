#include "traces/draw_model.h"

#include <algorithm>

#include "scheduler_core/random.h"
#include "traces/saturating.h"

namespace rrfp {

namespace {

constexpr double kLeastBandwidth = 1e-6;
constexpr std::uint64_t kJob = ~std::uint64_t{0};  // instead of an iteration

enum Lane : std::uint64_t { kValue, kWhether, kPhase, kJitter };

std::int64_t draw_below(std::uint64_t bits, std::int64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::int64_t>((Wide{bits} * static_cast<std::uint64_t>(bound)) >> 64);
}

}  // namespace

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
         lists_or_all(model_.selection.replicas, world.replica);
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
