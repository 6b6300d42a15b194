// What the executor costs: from a message in to a decision out, across threads
// and on one, and how short tasks may be before that shows.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "executor/emulated_device.h"
#include "executor/rank_loop.h"
#include "executor/threads_run.h"
#include "executor/threads_transport.h"
#include "scheduler_core/check.h"
#include "sim/simulate.h"

namespace rrfp {
namespace {

constexpr int kMicrobatches = 512;

Case two_ranks(std::int64_t task_ns, int microbatches) {
  ProgramSpec spec{
      2, microbatches, false, false, {{0, {}, Backward::kFull}, {1, {0}, Backward::kFull}}};
  Case made{"two ranks", *Program::create(spec)};
  made.duration_ns.assign(static_cast<std::size_t>(made.program.task_ids()), task_ns);
  return made;
}

// Rank 1 of two, with the transport that a run on threads gives it; the bench
// is rank 0.
struct Bench {
  explicit Bench(bool record)
      : world(std::move(*PreparedCase::create(two_ranks(0, kMicrobatches)))),
        machines(*world, {0, 1, 0}, {0, false, record}),
        device(1, 0),
        mail(network.transport(1), 1) {}

  void begin() {
    machines.reset();
    machines.take_calls();
    RRFP_CHECK(device.begin(*world, 0).ok());
    LoopContext context;
    context.grid = {1, 2, 1};
    context.place = {0, 1, 0};
    context.world = world.get();
    context.end = &end;
    context.machines = &machines;
    context.device = &device;
    context.mail = &mail;
    loop = std::make_unique<RankLoop>(context);
  }

  static constexpr std::array<std::pair<int, int>, 2> kPairs = {{{0, 1}, {1, 0}}};
  ThreadsNetwork network{2, kPairs, ThreadsTuning{}};
  std::unique_ptr<const PreparedCase> world;
  IterationEnd end;
  CoreMachines machines;
  EmulatedDevice device;
  Mail mail;
  std::unique_ptr<RankLoop> loop;
};

void add_percentiles(std::vector<std::int64_t> took_ns, benchmark::State& state) {
  std::sort(took_ns.begin(), took_ns.end());
  const std::size_t last = took_ns.size() - 1;
  state.counters["p50_ns"] = static_cast<double>(took_ns[last / 2]);
  state.counters["p99_ns"] = static_cast<double>(took_ns[last * 99 / 100]);
}

// The part that is no transport: one thread polls, feeds the core, decides.
void executor_decision(benchmark::State& state) {
  Bench bench(state.range(0) != 0);
  const Program& program = bench.world->program();
  const EdgeId edge = program.find_edge(Kind::kForward, 0, 1);
  MonotonicClock clock;
  Transport& sender = bench.network.transport(0);
  Transport& receiver = bench.network.transport(1);
  std::vector<std::int64_t> took_ns;
  Delivery delivery;
  int microbatch = kMicrobatches;
  for ([[maybe_unused]] const auto& step : state) {
    if (microbatch == kMicrobatches) {
      microbatch = 0;
      bench.begin();
    }
    Letter letter;
    letter.tag = Tag::kMessage;
    letter.to = 1;
    letter.edge = edge;
    letter.task = program.task_id(1, Slot::kForward, microbatch++);
    sender.tell(letter);

    const int before = bench.machines.scheduler().decided();
    const std::int64_t begin_ns = clock.now_ns();
    RRFP_CHECK(receiver.poll(delivery));
    RRFP_CHECK(bench.loop->on_letter(delivery.letter, std::move(delivery.payload), begin_ns).ok());
    RRFP_CHECK(bench.loop->step(begin_ns).ok());
    const std::int64_t end_ns = clock.now_ns();
    RRFP_CHECK(bench.machines.scheduler().decided() == before + 1);
    state.SetIterationTime(static_cast<double>(end_ns - begin_ns) * 1e-9);
    took_ns.push_back(end_ns - begin_ns);
    // Off the clock: the task and its backward run, and rank 0 takes its mail.
    while (bench.loop->next_ns() != kNever) RRFP_CHECK(bench.loop->step(clock.now_ns()).ok());
    while (sender.poll(delivery)) {
    }
  }
  add_percentiles(std::move(took_ns), state);
}
BENCHMARK(executor_decision)->Arg(0)->Arg(1)->ArgName("log")->UseManualTime();

// Rank 0 as a thread of its own: sends one activation each time it is asked to.
class Sender {
 public:
  Sender(Transport& transport, const Program& program)
      : transport_(transport),
        program_(program),
        edge_(program.find_edge(Kind::kForward, 0, 1)),
        thread_([this] { work(); }) {}
  ~Sender() {
    asked_.store(kStop);
    thread_.join();
  }

  void send(int microbatch) { asked_.store(microbatch); }

 private:
  static constexpr int kNothing = -1;
  static constexpr int kStop = -2;
  static constexpr std::int64_t kPause = 3'000;  // until the receiver waits

  void work() {
    Delivery delivery;
    while (true) {
      const int microbatch = asked_.exchange(kNothing);
      if (microbatch == kStop) return;
      while (transport_.poll(delivery)) {  // what rank 1 sends back
        if (delivery.event == Delivery::Event::kAnnounced) transport_.receive(delivery.letter);
      }
      if (microbatch < 0) continue;
      Letter letter;
      letter.tag = Tag::kMessage;
      letter.to = 1;
      letter.edge = edge_;
      letter.task = program_.task_id(1, Slot::kForward, microbatch);
      const std::int64_t begin_ns = MonotonicClock::read_ns() + kPause;
      do {
        letter.sent_ns = MonotonicClock::read_ns();
      } while (letter.sent_ns < begin_ns);
      transport_.tell(letter);
    }
  }

  Transport& transport_;
  const Program& program_;
  const EdgeId edge_;
  std::atomic<int> asked_{kNothing};
  std::thread thread_;
};

// A message in, a decision out, on the thread transport: from before it is sent
// on one thread until the other has fed the core and carried out the decision.
void executor_dispatch(benchmark::State& state) {
  Bench bench(false);
  Sender sender(bench.network.transport(0), bench.world->program());
  Transport& receiver = bench.network.transport(1);
  std::vector<std::int64_t> took_ns;
  Delivery delivery;
  int microbatch = kMicrobatches;
  for ([[maybe_unused]] const auto& step : state) {
    if (microbatch == kMicrobatches) {
      microbatch = 0;
      bench.begin();
    }
    const int before = bench.machines.scheduler().decided();
    sender.send(microbatch++);
    while (!receiver.poll(delivery)) {
    }
    const std::int64_t now_ns = MonotonicClock::read_ns();
    RRFP_CHECK(bench.loop->on_letter(delivery.letter, std::move(delivery.payload), now_ns).ok());
    RRFP_CHECK(bench.loop->step(now_ns).ok());
    const std::int64_t took = MonotonicClock::read_ns() - delivery.letter.sent_ns;
    RRFP_CHECK(bench.machines.scheduler().decided() == before + 1);
    state.SetIterationTime(static_cast<double>(took) * 1e-9);
    took_ns.push_back(took);
    while (bench.loop->next_ns() != kNever) {
      RRFP_CHECK(bench.loop->step(MonotonicClock::read_ns()).ok());
    }
  }
  add_percentiles(std::move(took_ns), state);
}
BENCHMARK(executor_dispatch)->UseManualTime()->Iterations(200'000);

class LastSink final : public IterationSink {
 public:
  Result<void> on_iteration(IterationRecord record) override {
    spans_ns.push_back(record.makespan_ns());
    return {};
  }
  std::vector<std::int64_t> spans_ns;
};

// Writes down when a message leaves rank 0 (its output is fetched, then sent)
// and when rank 1 launches what it was for.
class StampingDevice final : public Device {
 public:
  explicit StampingDevice(std::vector<std::int64_t>& stamps_ns) : stamps_ns_(&stamps_ns) {}

  Result<void> begin(const PreparedCase& world, int iteration) override {
    world_ = &world;
    return device_.begin(world, iteration);
  }
  Result<void> take_input(TaskId task, int producer, Payload payload) override {
    return device_.take_input(task, producer, std::move(payload));
  }
  void launch(TaskId task, std::int64_t not_before_ns, std::int64_t now_ns) override {
    const Task of = world_->program().task(task);
    if (of.stage == 1 && of.kind == Kind::kForward) stamp(of.microbatch);
    device_.launch(task, not_before_ns, now_ns);
  }
  std::optional<DeviceEvent> poll(std::int64_t now_ns) override { return device_.poll(now_ns); }
  std::int64_t next_event_ns() const override { return device_.next_event_ns(); }
  bool busy() const override { return device_.busy(); }
  void on_group_start(TaskId task, std::int64_t start_ns) override {
    device_.on_group_start(task, start_ns);
  }
  Result<Payload> output(TaskId task, EdgeId edge) override {
    Result<Payload> payload = device_.output(task, edge);
    const Task of = world_->program().task(task);
    if (of.stage == 0) stamp(of.microbatch);
    return payload;
  }
  Result<Payload> gradient(int stage) override { return device_.gradient(stage); }
  Result<Payload> reduce(int stage, std::span<Payload> replicas) override {
    return device_.reduce(stage, replicas);
  }
  Result<void> take_gradient(int stage, Payload sum) override {
    return device_.take_gradient(stage, std::move(sum));
  }
  Result<void> finish_iteration() override { return device_.finish_iteration(); }

 private:
  void stamp(int microbatch) {
    (*stamps_ns_)[static_cast<std::size_t>(microbatch)] = MonotonicClock::read_ns();
  }

  std::vector<std::int64_t>* stamps_ns_;
  const PreparedCase* world_ = nullptr;
  EmulatedDevice device_{1, 64};
};

// A run as users start it, workers and all: rank 1 is idle whenever an activation
// of 64 bytes comes; from its output on one thread to the launch on the other.
void executor_handover(benchmark::State& state) {
  Case input = two_ranks(0, kMicrobatches);
  const Program& program = input.program;
  for (TaskId task = 0; task < program.task_ids(); ++task) {
    const bool forward = program.slot_of(task) == Slot::kForward;
    input.duration_ns[static_cast<std::size_t>(task)] =
        program.stage_of(task) == 0 && forward ? 20'000 : 0;
  }
  input.network.message_bytes.assign(static_cast<std::size_t>(program.task_ids()), 64);
  const std::unique_ptr<const PreparedCase> world = std::move(*PreparedCase::create(input));
  auto plan = std::make_shared<RunPlan>();
  plan->grid = {1, 2, 1};
  plan->worlds = {{world.get()}};
  std::vector<std::int64_t> took_ns;
  for ([[maybe_unused]] const auto& step : state) {
    std::array<std::vector<std::int64_t>, 2> stamps_ns;
    for (std::vector<std::int64_t>& of_rank : stamps_ns) of_rank.resize(kMicrobatches);
    const RunOutcome outcome = run_on_threads(
        plan,
        [&stamps_ns](const Place& place) {
          return std::make_unique<StampingDevice>(stamps_ns[static_cast<std::size_t>(place.rank)]);
        },
        std::make_shared<LastSink>(), default_tuning(2),
        std::make_shared<std::atomic<bool>>(false));
    RRFP_CHECK(outcome.end == RunEnd::kCompleted);
    for (std::size_t m = 0; m < kMicrobatches; ++m) {
      took_ns.push_back(stamps_ns[1][m] - stamps_ns[0][m]);
    }
  }
  add_percentiles(std::move(took_ns), state);
}
BENCHMARK(executor_handover)->Iterations(100)->Unit(benchmark::kMillisecond);

// Two ranks on two threads, readiness-first; efficiency: what the simulator
// needs with no overhead over the median iteration.
void executor_efficiency(benchmark::State& state) {
  const Case input = two_ranks(state.range(0) * 1000, 64);
  const std::unique_ptr<const PreparedCase> world = std::move(*PreparedCase::create(input));
  auto plan = std::make_shared<RunPlan>();
  plan->grid = {1, 2, 1};
  plan->worlds.assign(11, {world.get()});
  double efficiency = 0;
  for ([[maybe_unused]] const auto& step : state) {
    auto sink = std::make_shared<LastSink>();
    const RunOutcome outcome = run_on_threads(
        plan, [](const Place&) { return std::make_unique<EmulatedDevice>(1, 0); }, sink,
        default_tuning(2), std::make_shared<std::atomic<bool>>(false));
    RRFP_CHECK(outcome.end == RunEnd::kCompleted);
    std::sort(sink->spans_ns.begin(), sink->spans_ns.end());
    efficiency = static_cast<double>(simulate(input)->makespan_ns) /
                 static_cast<double>(sink->spans_ns[sink->spans_ns.size() / 2]);
  }
  state.counters["efficiency"] = efficiency;
}
BENCHMARK(executor_efficiency)
    ->ArgName("task_us")
    ->Arg(2)
    ->Arg(5)
    ->Arg(10)
    ->Arg(20)
    ->Arg(50)
    ->Arg(100)
    ->Arg(200)
    ->Arg(500)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace rrfp
