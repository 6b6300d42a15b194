// Looped placement: rank r holds stages r, p + r, 2p + r, ... (Narayanan et
// al., SC'21). A chunk is the set of stages that one lap over the ranks visits.
#include <algorithm>
#include <string>
#include <vector>

#include "scheduler_core/order_writer.h"
#include "scheduler_core/schedule_families.h"

namespace rrfp {

namespace {

Result<void> need_loop(const Program& program, std::string_view name) {
  const std::string needs =
      "schedule " + std::string(name) + " needs looped placement (stage = chunk * ranks + rank); ";
  if (program.stages() % program.ranks() != 0) {
    return Error{needs + std::to_string(program.stages()) + " stages are no multiple of " +
                 std::to_string(program.ranks()) + " ranks"};
  }
  for (int stage = 0; stage < program.stages(); ++stage) {
    if (program.rank_of(stage) == stage % program.ranks()) continue;
    return Error{needs + "stage " + std::to_string(stage) + " is on rank " +
                 std::to_string(program.rank_of(stage)) + ", not " +
                 std::to_string(stage % program.ranks())};
  }
  return {};
}

struct Visit {
  int microbatch = 0;
  int chunk = 0;
};

// The order in which a rank's forwards visit its chunks: microbatches in
// groups, each group through all chunks before the next group starts.
std::vector<Visit> visits(int microbatches, int chunks, int group) {
  std::vector<Visit> table;
  table.reserve(static_cast<std::size_t>(microbatches) * static_cast<std::size_t>(chunks));
  for (int first = 0; first < microbatches; first += group) {
    const int end = std::min(microbatches, first + group);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int microbatch = first; microbatch < end; ++microbatch) {
        table.push_back({microbatch, chunk});
      }
    }
  }
  return table;
}

// What the three interleaved schedules differ in.
struct Interleaving {
  int group = 1;      // microbatches per group
  int hops = 2;       // forwards of warm-up per rank that follows
  bool late = false;  // W starts r backwards late instead of directly after I
};

Schedule interleave(const Program& program, const Interleaving& how) {
  const int p = program.ranks();
  const int chunks = program.stages() / p;
  const std::vector<Visit> table = visits(program.microbatches(), chunks, how.group);
  const int count = static_cast<int>(table.size());
  OrderWriter order(program);
  for (int rank = 0; rank < p; ++rank) {
    const auto at = [&table](int k) { return table[static_cast<std::size_t>(k)]; };
    const auto forward_stage = [&](int k) { return at(k).chunk * p + rank; };
    const auto backward_stage = [&](int k) { return (chunks - 1 - at(k).chunk) * p + rank; };
    const int warm_up = std::min(count, how.hops * (p - 1 - rank) + (chunks - 1) * how.group);
    const int delay = how.late ? rank : 0;
    for (int k = 0; k < warm_up; ++k) order.forward(forward_stage(k), at(k).microbatch);
    for (int k = 0; k < count; ++k) {
      const int next = warm_up + k;
      if (next < count) order.forward(forward_stage(next), at(next).microbatch);
      order.input_gradient(backward_stage(k), at(k).microbatch);
      const int weight = k - delay;
      if (weight >= 0) order.weight_gradient(backward_stage(weight), at(weight).microbatch);
    }
    for (int k = std::max(0, count - delay); k < count; ++k) {
      order.weight_gradient(backward_stage(k), at(k).microbatch);
    }
  }
  return std::move(order).finish();
}

// Torch cuts the microbatches into equal rounds.
Result<int> torch_group(const Program& program, std::string_view name) {
  const int m = program.microbatches();
  const int rounds = std::max(1, m / program.ranks());
  if (m % rounds != 0) {
    return Error{"schedule " + std::string(name) + " needs microbatches that divide into " +
                 std::to_string(rounds) + " equal rounds (microbatches / ranks, rounded down); " +
                 std::to_string(m) + " do not"};
  }
  return m / rounds;
}

}  // namespace

Result<Schedule> make_interleaved_1f1b(const Program& program, const ScheduleContext& context) {
  constexpr std::string_view kName = "interleaved-1f1b";
  if (Result<void> fits = need_loop(program, kName); !fits) return fits.error();
  const int p = program.ranks();
  const int m = program.microbatches();
  const int group = context.hint != nullptr && context.hint->group != 0 ? context.hint->group : p;
  if (group < p || group > m) {
    return Error{"schedule interleaved-1f1b: group is " + std::to_string(group) +
                 (m < p ? "; it must be at least the ranks (" + std::to_string(p) +
                              ") and at most the microbatches, of which there are only " +
                              std::to_string(m)
                        : "; allowed are " + std::to_string(p) + " (the ranks) to " +
                              std::to_string(m) + " (the microbatches)")};
  }
  if (const int rest = m % group; rest != 0 && rest < p) {
    return Error{"schedule interleaved-1f1b: " + std::to_string(m) + " microbatches in groups of " +
                 std::to_string(group) + " leave a last group of " + std::to_string(rest) +
                 "; it must be empty or at least the ranks (" + std::to_string(p) + ")"};
  }
  return interleave(program, {.group = group, .hops = 2, .late = false});
}

Result<Schedule> make_interleaved_1f1b_torch(const Program& program, const ScheduleContext&) {
  constexpr std::string_view kName = "interleaved-1f1b-torch";
  if (Result<void> fits = need_loop(program, kName); !fits) return fits.error();
  const Result<int> group = torch_group(program, kName);
  if (!group) return group.error();
  return interleave(program, {.group = *group, .hops = 2, .late = false});
}

Result<Schedule> make_interleaved_zb(const Program& program, const ScheduleContext&) {
  constexpr std::string_view kName = "interleaved-zb";
  if (Result<void> fits = need_loop(program, kName); !fits) return fits.error();
  if (!program.split_backward()) {
    return Error{
        "schedule interleaved-zb needs split backwards (split_backward true): it places "
        "W apart from I"};
  }
  const Result<int> group = torch_group(program, kName);
  if (!group) return group.error();
  return interleave(program, {.group = *group, .hops = 1, .late = true});
}

Result<Schedule> make_looped_bfs(const Program& program, const ScheduleContext&) {
  if (Result<void> fits = need_loop(program, "looped-bfs"); !fits) return fits.error();
  const int m = program.microbatches();
  OrderWriter order(program);
  // Ascending stages are ascending chunks on every rank.
  for (int stage = 0; stage < program.stages(); ++stage) {
    for (int i = 0; i < m; ++i) order.forward(stage, i);
  }
  for (int stage = program.stages() - 1; stage >= 0; --stage) {
    for (int i = m - 1; i >= 0; --i) order.backward(stage, i);
  }
  return std::move(order).finish();
}

}  // namespace rrfp
