// Schedules with one stage per rank: GPipe (Huang et al., 2019), 1F1B
// (PipeDream-flush; Megatron and torch), eager 1F1B (Zhuang et al., MLSys'23)
// and the zero-bubble schedules H1 and H2 (Qi et al., 2023).
#include <algorithm>
#include <string>

#include "scheduler_core/order_writer.h"
#include "scheduler_core/schedule_families.h"

namespace rrfp {

namespace {

Result<void> need_one_stage_per_rank(const Program& program, std::string_view name) {
  for (int rank = 0; rank < program.ranks(); ++rank) {
    const std::size_t count = program.stages_of(rank).size();
    if (count == 1) continue;
    return Error{"schedule " + std::string(name) + " needs one stage per rank; rank " +
                 std::to_string(rank) + " has " + std::to_string(count)};
  }
  return {};
}

// One forward, one backward after `hops` forwards of warm-up per stage that
// follows. hops = 1 lets a backward meet its forward as early as it can;
// 2 hides the latency of each round trip behind one more forward.
Result<Schedule> one_forward_one_backward(const Program& program, std::string_view name, int hops) {
  if (Result<void> fits = need_one_stage_per_rank(program, name); !fits) return fits.error();
  OrderWriter order(program);
  const int m = program.microbatches();
  for (int stage = 0; stage < program.stages(); ++stage) {
    const int warm_up = std::min(m, hops * (program.stages() - 1 - stage));
    for (int i = 0; i < warm_up; ++i) order.forward(stage, i);
    for (int i = 0; i < m; ++i) {
      if (warm_up + i < m) order.forward(stage, warm_up + i);
      order.backward(stage, i);
    }
  }
  return std::move(order).finish();
}

// As above with split backwards: the weight gradients start `hops` rounds late
// per stage that came before, which fills what was the drain of each rank and
// leaves every rank with the same number of activations in flight.
Result<Schedule> zero_bubble(const Program& program, std::string_view name, int hops) {
  if (Result<void> fits = need_one_stage_per_rank(program, name); !fits) return fits.error();
  if (!program.split_backward()) {
    return Error{"schedule " + std::string(name) +
                 " needs split backwards (split_backward true): it places W apart from I"};
  }
  OrderWriter order(program);
  const int m = program.microbatches();
  for (int stage = 0; stage < program.stages(); ++stage) {
    const int warm_up = std::min(m, hops * (program.stages() - 1 - stage));
    const int delay = hops * stage;
    for (int i = 0; i < warm_up; ++i) order.forward(stage, i);
    for (int i = 0; i < m; ++i) {
      if (warm_up + i < m) order.forward(stage, warm_up + i);
      order.input_gradient(stage, i);
      if (i >= delay) order.weight_gradient(stage, i - delay);
    }
    for (int i = std::max(0, m - delay); i < m; ++i) order.weight_gradient(stage, i);
  }
  return std::move(order).finish();
}

}  // namespace

Result<Schedule> make_gpipe(const Program& program, const ScheduleContext&) {
  if (Result<void> fits = need_one_stage_per_rank(program, "gpipe"); !fits) return fits.error();
  OrderWriter order(program);
  for (int stage = 0; stage < program.stages(); ++stage) {
    for (int i = 0; i < program.microbatches(); ++i) order.forward(stage, i);
    for (int i = 0; i < program.microbatches(); ++i) order.backward(stage, i);
  }
  return std::move(order).finish();
}

Result<Schedule> make_1f1b(const Program& program, const ScheduleContext&) {
  return one_forward_one_backward(program, "1f1b", 1);
}

Result<Schedule> make_eager_1f1b(const Program& program, const ScheduleContext&) {
  return one_forward_one_backward(program, "eager-1f1b", 2);
}

Result<Schedule> make_zb_h1(const Program& program, const ScheduleContext&) {
  return zero_bubble(program, "zb-h1", 1);
}

Result<Schedule> make_zb_h2(const Program& program, const ScheduleContext&) {
  return zero_bubble(program, "zb-h2", 2);
}

}  // namespace rrfp
