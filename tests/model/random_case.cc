#include "tests/model/random_case.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scheduler_core/check.h"
#include "scheduler_core/random.h"
#include "traces/case_file.h"

namespace rrfp::model {

namespace {

/// Draws with names, so that the generators below read as a list of choices.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : stream_({seed, 0, 0x63617365, 0}) {}

  int below(int bound) {
    return static_cast<int>(stream_.below(static_cast<std::uint64_t>(bound)));
  }
  int between(int low, int high) { return low + below(high - low + 1); }
  bool one_in(int n) { return below(n) == 0; }
  bool coin() { return one_in(2); }
  template <typename T>
  T pick(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<int>(choices.size()))];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) {
      std::swap(items[i - 1], items[static_cast<std::size_t>(below(static_cast<int>(i)))]);
    }
  }

 private:
  RandomStream stream_;
};

/// How the numbers of one case are spread. Few values give many ties, which
/// is where rounds, queues and tie breaks show.
enum class Spread : std::uint8_t { kZero, kBits, kTies, kSame, kWide, kHuge };

Spread random_spread(Dice& dice) {
  // Products of these leave 64 bits.
  if (dice.one_in(20)) return Spread::kHuge;
  return dice.pick({Spread::kZero, Spread::kBits, Spread::kTies, Spread::kTies, Spread::kTies,
                    Spread::kSame, Spread::kWide, Spread::kWide});
}

std::int64_t draw(Dice& dice, Spread spread) {
  switch (spread) {
    case Spread::kZero:
      return 0;
    case Spread::kBits:
      return dice.below(3);
    case Spread::kTies:
      return 100 * dice.below(4);
    case Spread::kSame:
      return 100;
    case Spread::kWide:
      return dice.below(1000);
    case Spread::kHuge:
      break;
  }
  return dice.below(1000) * std::int64_t{1'000'000'000'007};
}

std::vector<std::int64_t> draw_many(Dice& dice, Spread spread, int count) {
  std::vector<std::int64_t> values;
  for (int i = 0; i < count; ++i) values.push_back(draw(dice, spread));
  return values;
}

// Chain, tree (one predecessor at most), or any DAG with several roots and joins.
void draw_graph(Dice& dice, ProgramSpec& spec) {
  const int style = dice.below(4);
  for (int stage = 0; stage < static_cast<int>(spec.stages.size()); ++stage) {
    std::vector<int>& before = spec.stages[static_cast<std::size_t>(stage)].predecessors;
    if (stage == 0) continue;
    if (style <= 1) {
      before = {stage - 1};
    } else if (style == 2) {
      if (!dice.one_in(4)) before = {dice.below(stage)};
    } else {
      for (int candidate = 0; candidate < stage; ++candidate) {
        if (dice.one_in(candidate == stage - 1 ? 2 : 3)) before.push_back(candidate);
      }
      dice.shuffle(before);
    }
  }
}

// A frozen stage may only follow frozen stages.
void draw_backwards(Dice& dice, ProgramSpec& spec) {
  if (dice.coin()) return;
  for (StageSpec& stage : spec.stages) {
    const bool after_frozen =
        std::all_of(stage.predecessors.begin(), stage.predecessors.end(), [&](int before) {
          return spec.stages[static_cast<std::size_t>(before)].backward == Backward::kNone;
        });
    if (after_frozen && dice.one_in(3)) {
      stage.backward = Backward::kNone;
    } else if (dice.one_in(4)) {
      stage.backward = Backward::kInput;
    }
  }
}

Program draw_program(Dice& dice, const RandomCaseOptions& options, bool plain) {
  ProgramSpec spec;
  spec.ranks = dice.between(1, options.max_ranks);
  spec.microbatches = dice.between(1, options.max_microbatches);
  spec.split_backward = dice.coin();
  spec.ordered_accumulation = dice.one_in(3);
  // Plain: one stage per rank in a chain, the shape that most named schedules need.
  if (plain) {
    spec.ranks = std::max(2, spec.ranks);
    for (int rank = 0; rank < spec.ranks; ++rank) {
      spec.stages.push_back({rank, {}, Backward::kFull});
      if (rank > 0) spec.stages.back().predecessors = {rank - 1};
    }
    if (dice.one_in(4)) draw_backwards(dice, spec);
  } else {
    const int stages = dice.between(1, options.max_stages);
    const int placement = dice.below(3);
    for (int stage = 0; stage < stages; ++stage) {
      const int turn = stage % (2 * spec.ranks);
      const int v_rank = std::min(turn, 2 * spec.ranks - 1 - turn);
      const int rank = placement == 0   ? stage % spec.ranks
                       : placement == 1 ? v_rank
                                        : dice.below(spec.ranks);
      spec.stages.push_back({rank, {}, Backward::kFull});
    }
    draw_graph(dice, spec);
    draw_backwards(dice, spec);
  }
  Result<Program> program = Program::create(std::move(spec));
  RRFP_CHECK(program.ok());
  return *std::move(program);
}

// Which backwards of a split program run as one task.
std::vector<bool> draw_fused(Dice& dice, const Program& program) {
  std::vector<bool> fused(static_cast<std::size_t>(program.stages() * program.microbatches()));
  const int share = dice.pick({0, 0, 1, 2, 4});
  for (std::size_t i = 0; i < fused.size(); ++i) {
    const int stage = static_cast<int>(i) / program.microbatches();
    fused[i] = program.backward_of(stage) != Backward::kNone && dice.below(4) < share;
  }
  return fused;
}

bool has_all_before(const Program& program, const std::vector<bool>& done, TaskId id) {
  const int stage = program.stage_of(id);
  const int microbatch = program.microbatch_of(id);
  const auto is_done = [&](int at, Slot slot) {
    return done[static_cast<std::size_t>(program.task_id(at, slot, microbatch))];
  };
  if (program.slot_of(id) == Slot::kWeight) return is_done(stage, Slot::kBackward);
  if (program.slot_of(id) == Slot::kForward) {
    const auto before = program.predecessors(stage);
    return std::all_of(before.begin(), before.end(),
                       [&](int at) { return is_done(at, Slot::kForward); });
  }
  const auto after = program.successors(stage);
  return is_done(stage, Slot::kForward) && std::all_of(after.begin(), after.end(), [&](int at) {
           return is_done(at, Slot::kBackward);
         });
}

// Any order of the tasks, or one in which each could run after those before
// it (so that it also works as a fixed order, memory permitting).
std::vector<std::vector<Task>> draw_order(Dice& dice, const Program& program, bool runnable) {
  std::vector<TaskId> ids;
  for (TaskId id = 0; id < program.task_ids(); ++id) {
    if (program.exists(id)) ids.push_back(id);
  }
  dice.shuffle(ids);
  // Mostly microbatch by microbatch, else a window of 1 hardly ever fits its memory.
  if (dice.coin()) {
    std::stable_sort(ids.begin(), ids.end(), [&](TaskId a, TaskId b) {
      return program.microbatch_of(a) < program.microbatch_of(b);
    });
  }
  std::vector<std::vector<Task>> order(static_cast<std::size_t>(program.ranks()));
  std::vector<bool> done(static_cast<std::size_t>(program.task_ids()), false);
  while (!ids.empty()) {
    auto next = ids.begin();
    if (runnable) {
      next = std::find_if(ids.begin(), ids.end(),
                          [&](TaskId id) { return has_all_before(program, done, id); });
      RRFP_CHECK(next != ids.end());
    }
    done[static_cast<std::size_t>(*next)] = true;
    const int rank = program.rank_of(program.stage_of(*next));
    order[static_cast<std::size_t>(rank)].push_back(program.task(*next));
    ids.erase(next);
  }
  return order;
}

void draw_policy(Dice& dice, const RandomCaseOptions& options, bool plain, Case& out) {
  Policy& policy = out.policy;
  if (options.rendezvous && dice.one_in(6)) out.network.mode = NetworkMode::kRendezvous;
  const bool rendezvous = out.network.mode == NetworkMode::kRendezvous;
  if (rendezvous) {
    policy.window = 1;
  } else if (options.windows && dice.one_in(3)) {
    policy.window = dice.pick({1, 1, 2, 3, 5, 1000000});
  }
  if (plain && !dice.one_in(4)) {
    const bool split = out.program.split_backward();
    policy.hint.name =
        split ? dice.pick({"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2", "bf", "bfw"})
              : dice.pick({"gpipe", "1f1b", "eager-1f1b", "bf", "bfw"});
  } else if (dice.one_in(3)) {
    policy.hint.name = dice.pick({"bf", "bfw"});
  } else {
    Program program = out.program;
    if (program.split_backward()) program = program.with_fused(draw_fused(dice, program));
    const bool runnable = policy.window == kNoWindow ? dice.coin() : !dice.one_in(8);
    policy.hint.name.clear();
    policy.hint.order = draw_order(dice, program, runnable);
  }
  policy.arrangement = dice.pick({Arrangement::kGiven, Arrangement::kGiven, Arrangement::kGiven,
                                  Arrangement::kAscending, Arrangement::kHill});
  if (dice.coin()) {
    policy.anticipation =
        Anticipation{dice.pick({std::int64_t{0}, std::int64_t{1}, std::int64_t{333},
                                std::int64_t{750}, std::int64_t{1000}, std::int64_t{20000}}),
                     dice.pick({std::int64_t{0}, std::int64_t{1}, std::int64_t{500},
                                std::int64_t{1000}, std::int64_t{5000}})};
  }
}

// A file has no row for what no task of the program can be; where it has
// one, as for the backward of a frozen stage, the row counts in arrangements.
void clear_slot(const Program& program, Slot slot, std::vector<std::int64_t>& by_task) {
  for (std::size_t id = 0; id < by_task.size(); ++id) {
    if (program.slot_of(static_cast<TaskId>(id)) == slot) by_task[id] = 0;
  }
}

void draw_times(Dice& dice, Case& out) {
  const Program& program = out.program;
  const Spread spread = random_spread(dice);
  out.duration_ns = draw_many(dice, spread, program.task_ids());
  if (dice.one_in(3)) {
    out.expected_ns = draw_many(dice, random_spread(dice), program.task_ids());
  } else if (dice.coin()) {
    // A profile that is nearly right.
    out.expected_ns = out.duration_ns;
    for (std::int64_t& ns : out.expected_ns) ns += dice.one_in(3) ? dice.below(60) : 0;
  }
  if (!program.split_backward()) {
    clear_slot(program, Slot::kWeight, out.duration_ns);
    clear_slot(program, Slot::kWeight, out.expected_ns);
  }
  if (dice.one_in(3)) {
    const Spread inputs = dice.pick({Spread::kTies, Spread::kWide});
    out.input_ready_ns = draw_many(dice, inputs, program.microbatches());
  }
  if (dice.one_in(3)) out.dispatch_ns = dice.pick({1, 7, 50, 100});
  out.queue_depth = dice.pick({1, 1, 1, 2, 3});
  if (dice.one_in(3)) {
    out.tensor_parallel.lanes = dice.between(2, 3);
    out.tensor_parallel.coordination = dice.pick({Coordination::kVote, Coordination::kLeader});
    out.tensor_parallel.vote_ns = dice.pick({0, 1, 30, 100});
    out.tensor_parallel.announce_ns = dice.pick({0, 1, 20, 100});
  } else {
    // With one lane these do not apply.
    out.tensor_parallel.vote_ns = dice.pick({0, 100});
    out.tensor_parallel.announce_ns = dice.pick({0, 100});
  }
}

void draw_network(Dice& dice, Case& out) {
  const Program& program = out.program;
  Network& network = out.network;
  const int microbatches = program.microbatches();
  if (dice.coin()) {
    network.bytes_per_second =
        dice.pick({std::int64_t{300'000'000}, std::int64_t{1'000'000'000},
                   std::int64_t{7'000'000'000}, std::int64_t{299'792'458'000}});
  }
  if (dice.coin() || network.bytes_per_second > 0) {
    network.message_bytes = draw_many(dice, random_spread(dice), program.task_ids());
    clear_slot(program, Slot::kWeight, network.message_bytes);
  }
  network.notice_ns = dice.pick({0, 0, 1, 50, 100, 700});
  const Spread spread = random_spread(dice);
  if (!dice.one_in(4)) {
    for (std::size_t edge = 0; edge < program.edges().size(); ++edge) {
      network.latency_ns.emplace_back();
      if (program.edges()[edge].local() || dice.one_in(4)) continue;
      network.latency_ns.back() = draw_many(dice, spread, microbatches * out.tensor_parallel.lanes);
    }
  }
  if (dice.one_in(3)) {
    const Spread expected = random_spread(dice);
    for (std::size_t edge = 0; edge < program.edges().size(); ++edge) {
      network.expected_latency_ns.emplace_back();
      if (program.edges()[edge].local() || dice.coin()) continue;
      network.expected_latency_ns.back() = draw_many(dice, expected, microbatches);
    }
  }
}

void draw_memory(Dice& dice, Case& out) {
  const Program& program = out.program;
  const int count = program.stages() * program.microbatches();
  if (dice.one_in(4)) return;
  const Spread spread = random_spread(dice);
  out.memory.activation_bytes = draw_many(dice, spread, count);
  if (dice.coin()) {
    for (const std::int64_t bytes : out.memory.activation_bytes) {
      const std::int64_t half = bytes / 2;
      out.memory.weight_stash_bytes.push_back(
          dice.pick({std::int64_t{0}, half, bytes, bytes - half}));
    }
  }
  if (dice.one_in(5)) return;
  for (int rank = 0; rank < program.ranks(); ++rank) {
    std::int64_t least = 0;
    std::int64_t all = 0;
    for (const int stage : program.stages_of(rank)) {
      std::int64_t token = 0;
      for (int m = 0; m < program.microbatches(); ++m) {
        const std::int64_t bytes =
            out.memory
                .activation_bytes[static_cast<std::size_t>(stage * program.microbatches() + m)];
        token = std::max(token, bytes);
        all += bytes;
      }
      least += token;
    }
    const std::int64_t some = (all - std::min(least, all)) * dice.below(4) / 4;
    std::optional<std::int64_t> budget = least + dice.pick({std::int64_t{0}, some, some});
    if (dice.one_in(8)) budget.reset();
    out.memory.budget_bytes.push_back(budget);
  }
}

}  // namespace

Case random_case(std::uint64_t seed, const RandomCaseOptions& options) {
  Dice dice(seed);
  const bool plain = dice.one_in(3);
  Case out{"random-" + std::to_string(seed),
           draw_program(dice, options, plain),
           {},
           {},
           {},
           0,
           1,
           {},
           {},
           {},
           {}};
  draw_policy(dice, options, plain, out);
  draw_times(dice, out);
  draw_network(dice, out);
  draw_memory(dice, out);
  // Patience with tasks that take weeks adds up to more than a run may take.
  if (!check_magnitudes(out).ok()) out.policy.anticipation.reset();
  RRFP_CHECK(check_magnitudes(out).ok());
  return out;
}

}  // namespace rrfp::model
