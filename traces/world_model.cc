#include "traces/world_model.h"

#include <cmath>
#include <utility>

#include "scheduler_core/random.h"
#include "traces/deterministic_math.h"
#include "traces/draw_model.h"
#include "traces/length_draws.h"
#include "traces/saturating.h"

namespace rrfp {

namespace {

// A factor exp(sigma z - sigma^2 / 2) with mean 1 and the given CV.
class LognormalFactor {
 public:
  explicit LognormalFactor(double cv)
      : variance_(deterministic_log(1 + cv * cv)), sigma_(std::sqrt(variance_)) {}

  double at(std::uint64_t bits) const {
    return deterministic_exp(sigma_ * normal_quantile(unit_of(bits)) - variance_ / 2);
  }

 private:
  double variance_;
  double sigma_;
};

// What all models of one pipeline need to know.
struct Place {
  std::uint64_t seed = 0;
  std::size_t position = 0;
  Program program;
  int lanes = 1;

  DrawSeries series(const WorldId& world, int lane) const {
    return DrawSeries(DrawKey{seed, static_cast<std::uint64_t>(world.iteration),
                              purpose_of(position, world.replica, lane), 0});
  }
};

class LognormalComputeDraw final : public WorldModel {
 public:
  LognormalComputeDraw(const LognormalCompute& model, Place place)
      : model_(model), factor_(model.cv), place_(std::move(place)) {}

  using WorldModel::apply;
  void apply(const WorldId& world, ComputeTable& out) const override {
    const Program& program = place_.program;
    const DrawSeries draws = place_.series(world, 0);
    out.all_known = out.all_known && model_.known;
    for (TaskId id = 0; id < program.task_ids(); ++id) {
      if (!program.exists(id)) continue;
      Effect& effect = out.tasks[static_cast<std::size_t>(id)];
      const double factor = factor_.at(draws.bits(element_of(id)));
      effect.factor *= factor;
      if (model_.known) effect.expected_factor *= factor;
    }
  }

 private:
  std::uint64_t element_of(TaskId id) const {
    const Program& program = place_.program;
    const int stage = program.stage_of(id);
    switch (model_.scope) {
      case ComputeScope::kOperation:
        return element(stage * kSlots + static_cast<int>(program.slot_of(id)),
                       program.microbatch_of(id));
      case ComputeScope::kMicrobatch:
        return element(0, program.microbatch_of(id));
      case ComputeScope::kRank:
        break;
    }
    return element(program.rank_of(stage), 0);
  }

  LognormalCompute model_;
  LognormalFactor factor_;
  Place place_;
};

// Both models of single messages: calls `add` with the effect and 64 bits.
template <typename Add>
void for_each_message(const Place& place, const WorldId& world, MessageTable& out, const Add& add) {
  const int microbatches = place.program.microbatches();
  for (int lane = 0; lane < place.lanes; ++lane) {
    const DrawSeries draws = place.series(world, lane);
    for (std::size_t id = 0; id < out.latency.size(); ++id) {
      if (out.latency[id].empty()) continue;
      for (int m = 0; m < microbatches; ++m) {
        add(out.latency[id][static_cast<std::size_t>(lane * microbatches + m)],
            draws.bits(element(static_cast<int>(id), m)));
      }
    }
  }
}

class LognormalLatencyDraw final : public WorldModel {
 public:
  LognormalLatencyDraw(const LognormalLatency& model, Place place)
      : factor_(model.cv), place_(std::move(place)) {}

  using WorldModel::apply;
  void apply(const WorldId& world, MessageTable& out) const override {
    out.varies = true;
    for_each_message(place_, world, out, [this](Effect& effect, std::uint64_t bits) {
      effect.factor *= factor_.at(bits);
    });
  }

 private:
  LognormalFactor factor_;
  Place place_;
};

class SpikeDraw final : public WorldModel {
 public:
  SpikeDraw(const LatencySpikes& model, Place place) : model_(model), place_(std::move(place)) {}

  using WorldModel::apply;
  void apply(const WorldId& world, MessageTable& out) const override {
    out.varies = true;
    out.adds = true;
    const double mean_ns = model_.probability * static_cast<double>(model_.extra_ns);
    for_each_message(place_, world, out, [&](Effect& effect, std::uint64_t bits) {
      if (unit_of(bits) < model_.probability) {
        effect.extra_ns = capped_sum(effect.extra_ns, model_.extra_ns);
      }
      effect.expected_extra_ns += mean_ns;
    });
  }

 private:
  LatencySpikes model_;
  Place place_;
};

class WaveDraw final : public WorldModel {
 public:
  WaveDraw(const ComputeWave& model, Place place, std::shared_ptr<const TimeAxis> axis)
      : model_(model), place_(std::move(place)), axis_(std::move(axis)) {}

  using WorldModel::apply;
  void apply(const WorldId& world, ComputeTable& out) const override {
    const Program& program = place_.program;
    out.all_known = out.all_known && model_.known;
    const std::int64_t start_ns = axis_->start_ns(world.iteration);
    for (TaskId id = 0; id < program.task_ids(); ++id) {
      if (!program.exists(id)) continue;
      const std::int64_t now_ns =
          capped_sum(start_ns, axis_->task_start_ns(program.stage_of(id), program.slot_of(id),
                                                    program.microbatch_of(id)));
      const double turns =
          static_cast<double>(now_ns % model_.period_ns) / static_cast<double>(model_.period_ns);
      const double factor = 1 + model_.amplitude * sine_of_turns(turns + model_.phase);
      Effect& effect = out.tasks[static_cast<std::size_t>(id)];
      effect.factor *= factor;
      if (model_.known) effect.expected_factor *= factor;
    }
  }

 private:
  ComputeWave model_;
  Place place_;
  std::shared_ptr<const TimeAxis> axis_;
};

struct Maker {
  Place place;
  const Scenario& scenario;
  const std::shared_ptr<const TimeAxis>& axis;

  using Made = std::shared_ptr<const WorldModel>;

  Made operator()(const LognormalCompute& model) const {
    if (model.cv == 0) return nullptr;
    return std::make_shared<LognormalComputeDraw>(model, place);
  }
  Made operator()(const LognormalLatency& model) const {
    if (model.cv == 0) return nullptr;
    return std::make_shared<LognormalLatencyDraw>(model, place);
  }
  Made operator()(const LatencySpikes& model) const {
    return std::make_shared<SpikeDraw>(model, place);
  }
  Made operator()(const DrawModel& model) const {
    return std::make_shared<CompiledDraw>(model, place.position, scenario, place.program, axis);
  }
  Made operator()(const MicrobatchLengths& model) const {
    return std::make_shared<CompiledLengths>(model, place.position, place.seed, place.program);
  }
  Made operator()(const ComputeWave& model) const {
    return std::make_shared<WaveDraw>(model, place, axis);
  }
};

}  // namespace

std::shared_ptr<const WorldModel> make_world_model(const VariabilityModel& model,
                                                   std::size_t position, const Scenario& scenario,
                                                   const Program& program,
                                                   const std::shared_ptr<const TimeAxis>& axis) {
  const Place place{scenario.seed, position, program, scenario.tensor_parallel.lanes};
  return std::visit(Maker{place, scenario, axis}, model);
}

}  // namespace rrfp
