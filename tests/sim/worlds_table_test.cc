// Goal: what readiness and anticipation win and lose over the same schedule as
// a fixed order, at the same memory, in eight kinds of worlds, is what an
// independent simulator measured, on draws of our own; and so are what fixed
// orders take, and what the arrangement of microbatches is worth.
//
// The published cells are means over 16 worlds, so they carry an error of
// their own. With d the standard deviation over our worlds of one world's
// ratio, a cell may differ by kErrors * d * sqrt(1/16 + 1/ours), plus half of
// its last digit. In world "no jitter" d is 0 and only the digit is left.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/eager_engine.h"
#include "sim/lower_bound.h"
#include "traces/scenario_resolve.h"

namespace rrfp {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kWorlds = 24;
#else
constexpr int kWorlds = 240;
#endif
// Under a sanitizer too: 24 worlds miss these means by more than .03.
constexpr int kArrangedWorlds = 240;
constexpr int kRanks = 8;
constexpr int kMicrobatches = 32;
constexpr int kPublishedWorlds = 16;
constexpr double kErrors = 3.5;  // over 80 cells; the largest measured is 2.8
constexpr double kHalfDigit = 0.0005;
constexpr Anticipation kAnticipation = {750, 500};
constexpr std::int64_t kUnitNs = 1'000'000;

struct Ratio {
  double ready;
  double anticipating;
};

struct World {
  const char* name;
  double compute_cv;     // per task, not known beforehand
  double microbatch_cv;  // per microbatch, known
  double latency;        // mean, in units
  double latency_cv;
  std::array<Ratio, 4> published;  // by hint, as in kHints
  std::array<double, 2> bfw;       // at zb-h1's and zb-h2's budget
};

constexpr std::array kTable = {
    World{"no jitter", 0, 0, .1, 0, {{{1, 1}, {1, 1}, {.950, .998}, {1, 1}}}, {.920, 1.000}},
    World{"compute CV .1",
          .1,
          0,
          .1,
          1,
          {{{.993, 1}, {1, 1}, {.978, 1.005}, {1.002, 1}}},
          {.951, 1.001}},
    World{"compute CV .3",
          .3,
          0,
          .1,
          1,
          {{{.963, .996}, {1, 1}, {1.019, 1.021}, {1.022, 1.010}}},
          {.981, 1.019}},
    World{"compute CV .6",
          .6,
          0,
          .1,
          1,
          {{{.983, 1.001}, {1.007, 1.005}, {1.083, 1.086}, {1.072, 1.056}}},
          {1.044, 1.066}},
    World{"microbatch CV .5",
          0,
          .5,
          .1,
          1,
          {{{.978, 1.001}, {.972, 1.002}, {.994, 1.026}, {1.001, 1.026}}},
          {.960, .956}},
    World{"both (.2, .5)",
          .2,
          .5,
          .1,
          1,
          {{{.971, .998}, {.984, 1}, {1, 1.025}, {1.016, 1.025}}},
          {.965, .982}},
    World{"links .5, CV 2",
          .1,
          .1,
          .5,
          2,
          {{{1.024, 1.034}, {1.069, 1.062}, {1.125, 1.144}, {1.166, 1.149}}},
          {1.110, 1.126}},
    World{"links 2, CV 2",
          .1,
          .1,
          2,
          2,
          {{{1.298, 1.290}, {1.405, 1.396}, {1.557, 1.538}, {1.658, 1.637}}},
          {1.547, 1.657}}};

struct Hint {
  const char* name;
  bool split;
  std::int64_t (*budget)(int rank);  // activations of its own fixed order
};

constexpr std::array kHints = {
    Hint{"1f1b", false, [](int rank) { return std::int64_t{kRanks - rank}; }},
    Hint{"eager-1f1b", false, [](int rank) { return std::int64_t{2 * (kRanks - rank) - 1}; }},
    Hint{"zb-h1", true, [](int) { return std::int64_t{kRanks}; }},
    Hint{"zb-h2", true, [](int) { return std::int64_t{2 * kRanks - 1}; }}};

// The pipeline of all tables: unit tasks, split, one byte per activation.
Scenario pipeline() {
  Scenario scenario;
  scenario.seed = 6;
  scenario.iterations = std::max(kWorlds, kArrangedWorlds);
  scenario.pipeline.ranks = kRanks;
  scenario.pipeline.microbatches = kMicrobatches;
  scenario.pipeline.split_backward = true;
  for (int stage = 0; stage < kRanks; ++stage) {
    scenario.pipeline.stages.push_back({stage, {}, Backward::kFull});
    if (stage > 0) scenario.pipeline.stages.back().predecessors = {stage - 1};
  }
  for (StageTable* table : {&scenario.forward_ns, &scenario.backward_ns, &scenario.weight_ns}) {
    table->values = {kUnitNs};
  }
  scenario.policies.emplace_back();
  return scenario;
}

LognormalCompute compute(ComputeScope scope, double cv, bool known) {
  LognormalCompute model;
  model.scope = scope;
  model.cv = cv;
  model.known = known;
  return model;
}

ScenarioResolver resolver(Scenario scenario) {
  return ScenarioResolver::create(std::move(scenario)).value();
}

ScenarioResolver resolver(const World& world) {
  Scenario scenario = pipeline();
  scenario.network.latency_ns = std::llround(world.latency * kUnitNs);
  scenario.variability = {compute(ComputeScope::kOperation, world.compute_cv, false),
                          compute(ComputeScope::kMicrobatch, world.microbatch_cv, true),
                          LognormalLatency{world.latency_cv}};
  return resolver(std::move(scenario));
}

// The same durations with each I and W as one B: all policies are compared in
// the same world.
Case unsplit(const Case& split) {
  ProgramSpec spec = split.program.spec();
  spec.split_backward = false;
  Case whole = split;
  whole.program = Program::create(spec).value();
  for (std::vector<std::int64_t>* table : {&whole.duration_ns, &whole.expected_ns}) {
    for (TaskId id = 0; id < static_cast<TaskId>(table->size()); ++id) {
      if (whole.program.slot_of(id) != Slot::kBackward) continue;
      std::int64_t& weight_ns = (*table)[static_cast<std::size_t>(id + kMicrobatches)];
      (*table)[static_cast<std::size_t>(id)] += weight_ns;
      weight_ns = 0;
    }
  }
  return whole;
}

struct Choice {
  const char* hint = "bf";
  int window = kNoWindow;
  bool anticipating = false;
  Arrangement arrangement = Arrangement::kGiven;
};

/// A world with whole and with split backwards.
struct Drawn {
  explicit Drawn(const ScenarioResolver& resolver, int iteration)
      : split(resolver.draw_world(iteration, 0)), whole(unsplit(split)) {}

  std::unique_ptr<const PreparedCase> prepare(const Hint& like, const Choice& choice,
                                              bool limited = true) {
    Case& world = like.split ? split : whole;
    world.policy = Policy{};
    world.policy.hint.name = choice.hint;
    world.policy.window = choice.window;
    world.policy.arrangement = choice.arrangement;
    if (choice.anticipating) world.policy.anticipation = kAnticipation;
    world.memory.budget_bytes.clear();
    for (int rank = 0; limited && rank < kRanks; ++rank) {
      world.memory.budget_bytes.emplace_back(like.budget(rank));
    }
    return PreparedCase::create(world).value();
  }

  double run(const Hint& like, const Choice& choice, bool limited = true) {
    const std::unique_ptr<const PreparedCase> prepared = prepare(like, choice, limited);
    EagerEngine engine(*prepared, {});
    engine.run();
    EXPECT_TRUE(engine.completed());
    return static_cast<double>(engine.makespan_ns());
  }

  Case split;
  Case whole;
};

/// A ratio of means over worlds, and how far one world strays from it.
struct Estimate {
  double ratio = 0;
  double deviation = 0;
};

Estimate estimate(const std::vector<double>& fixed_ns, const std::vector<double>& policy_ns) {
  double fixed = 0;
  double policy = 0;
  for (std::size_t i = 0; i < fixed_ns.size(); ++i) {
    fixed += fixed_ns[i];
    policy += policy_ns[i];
  }
  Estimate result{fixed / policy, 0};
  const auto count = static_cast<double>(fixed_ns.size());
  for (std::size_t i = 0; i < fixed_ns.size(); ++i) {
    const double stray = (fixed_ns[i] - result.ratio * policy_ns[i]) / (policy / count);
    result.deviation += stray * stray / (count - 1);
  }
  result.deviation = std::sqrt(result.deviation);
  return result;
}

/// The runs of one world, and of one hint's schedule as a fixed order.
class Cells {
 public:
  explicit Cells(const World& world) : world_(world), resolver_(resolver(world)) {
    for (int iteration = 0; iteration < kWorlds; ++iteration) {
      drawn_.emplace_back(resolver_, iteration);
    }
  }

  std::vector<double> run(const Hint& like, const Choice& choice) {
    std::vector<double> times_ns;
    for (Drawn& drawn : drawn_) times_ns.push_back(drawn.run(like, choice));
    return times_ns;
  }

  Estimate expect(const std::vector<double>& fixed_ns, const Hint& like, const Choice& choice,
                  double published) {
    const Estimate ours = estimate(fixed_ns, run(like, choice));
    const double error = ours.deviation * std::sqrt(1.0 / kPublishedWorlds + 1.0 / kWorlds);
    std::printf("%-16s %-10s %-4s %-12s %.4f (published %.3f, %.1f errors)\n", world_.name,
                like.name, choice.hint == std::string("bfw") ? "bfw" : "",
                choice.anticipating ? "anticipating" : "ready", ours.ratio, published,
                error == 0 ? 0 : std::abs(ours.ratio - published) / error);
    EXPECT_NEAR(ours.ratio, published, kErrors * error + kHalfDigit)
        << world_.name << ", " << choice.hint << " at the budget of " << like.name;
    return ours;
  }

 private:
  const World& world_;
  ScenarioResolver resolver_;
  std::vector<Drawn> drawn_;
};

TEST(WorldsTable, EveryCellIsReproducedAndAnticipationLosesLittle) {
  for (const World& world : kTable) {
    Cells cells(world);
    for (std::size_t hint = 0; hint < kHints.size(); ++hint) {
      const Hint& like = kHints[hint];
      const std::vector<double> fixed_ns = cells.run(like, {like.name, 1});
      cells.expect(fixed_ns, like, {like.name}, world.published[hint].ready);
      const Estimate anticipating = cells.expect(fixed_ns, like, {like.name, kNoWindow, true},
                                                 world.published[hint].anticipating);
      EXPECT_GE(anticipating.ratio, .985) << world.name << ", " << like.name;
      if (like.split) cells.expect(fixed_ns, like, {"bfw"}, world.bfw[hint - 2]);
    }
  }
}

/// The worlds of section 6's first table: one kind of jitter each. It does not
/// give its latency; .05 is the one with its eager-1f1b of 1.02 without jitter.
ScenarioResolver first_table_world(const VariabilityModel& jitter) {
  Scenario scenario = pipeline();
  scenario.network.latency_ns = kUnitNs / 20;
  scenario.variability = {jitter};
  return resolver(std::move(scenario));
}

struct FirstTableRow {
  const char* name;
  const char* hint;
  int window;
  const Hint& like;
  bool limited;
  std::array<double, 4> published;
};

// Speed over fixed 1f1b. Its worlds are 20 and their errors are not given, so
// cells are only held to a twentieth of their value, and (a) and (b), what the
// section concludes from them, exactly.
TEST(WorldsTable, TheFirstTableIsReproducedWithinATwentieth) {
  const std::array<FirstTableRow, 9> rows = {{
      {"1f1b fixed", "1f1b", 1, kHints[0], true, {1, 1, 1, 1}},
      {"bf [p-r]", "bf", 0, kHints[0], true, {1, .91, .89, .97}},
      {"eager-1f1b fixed", "eager-1f1b", 1, kHints[1], true, {1.02, 1.13, 1.29, 1.23}},
      {"bf [no cap]", "bf", 0, kHints[0], false, {1.02, 1.12, 1.30, 1.30}},
      {"zb-h1 fixed", "zb-h1", 1, kHints[2], true, {1.15, 1.17, 1.35, 1.17}},
      {"bfw [p]", "bfw", 0, kHints[2], true, {1.08, 1.15, 1.24, 1.22}},
      {"zb-h2 fixed", "zb-h2", 1, kHints[3], true, {1.17, 1.27, 1.51, 1.37}},
      {"zb-h2 hint", "zb-h2", 0, kHints[3], true, {1.17, 1.30, 1.52, 1.50}},
      {"bfw [2p-1]", "bfw", 0, kHints[3], true, {1.17, 1.29, 1.48, 1.46}},
  }};
  const std::array<VariabilityModel, 4> worlds = {
      compute(ComputeScope::kOperation, 0, false), compute(ComputeScope::kOperation, .3, false),
      compute(ComputeScope::kMicrobatch, .3, false), LatencySpikes{.05, 3 * kUnitNs}};
  for (std::size_t world = 0; world < worlds.size(); ++world) {
    const ScenarioResolver resolver = first_table_world(worlds[world]);
    std::array<double, rows.size()> sums_ns{};
    for (int iteration = 0; iteration < kWorlds; ++iteration) {
      Drawn drawn(resolver, iteration);
      for (std::size_t row = 0; row < rows.size(); ++row) {
        sums_ns[row] +=
            drawn.run(rows[row].like, {rows[row].hint, rows[row].window}, rows[row].limited);
      }
    }
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const double published = rows[row].published[world];
      EXPECT_NEAR(sums_ns[0] / sums_ns[row], published, published / 20)
          << rows[row].name << ", world " << world;
    }
    if (world > 0) {
      EXPECT_GT(sums_ns[1], sums_ns[0]) << "(a) at 1f1b's own memory bf loses, world " << world;
    }
    EXPECT_LT(sums_ns[6], sums_ns[2]) << "(b) zb-h2 beats eager-1f1b, world " << world;
    EXPECT_LT(sums_ns[6], sums_ns[4]) << "(b) more memory pays, world " << world;
  }
}

// What is lost to the lower bound, given order and hill. The published figures
// do not say with which policy; readiness and the fixed order agree on them.
TEST(WorldsTable, ArrangementIsWorthWhatIsClaimed) {
  const World& world = kTable[4];
  ASSERT_EQ(world.microbatch_cv, .5);
  const ScenarioResolver worlds = resolver(world);
  struct Claim {
    const Hint& like;
    Arrangement arrangement;
    double over_bound;
  };
  for (const Claim& claim :
       {Claim{kHints[2], Arrangement::kGiven, 1.41}, Claim{kHints[2], Arrangement::kHill, 1.12},
        Claim{kHints[3], Arrangement::kGiven, 1.13}, Claim{kHints[3], Arrangement::kHill, 1.02}}) {
    for (const int window : {1, kNoWindow}) {
      double sum = 0;
      for (int iteration = 0; iteration < kArrangedWorlds; ++iteration) {
        Drawn drawn(worlds, iteration);
        const Choice choice = {claim.like.name, window, false, claim.arrangement};
        const std::unique_ptr<const PreparedCase> prepared = drawn.prepare(claim.like, choice);
        EagerEngine engine(*prepared, {});
        engine.run();
        sum += static_cast<double>(engine.makespan_ns()) /
               static_cast<double>(lower_bound_ns(*prepared));
      }
      EXPECT_NEAR(sum / kArrangedWorlds, claim.over_bound, .03)
          << claim.like.name << ", window " << window << ", arrangement "
          << static_cast<int>(claim.arrangement);
    }
  }
}

}  // namespace
}  // namespace rrfp
