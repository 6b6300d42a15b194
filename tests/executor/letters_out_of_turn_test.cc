// Goal: a letter that is right by itself and comes twice, too early or not as the protocol has it
// ends the run by one sentence that names its sender and what it is about; no letter, whatever its
// fields, ends the process.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "executor/capture.h"
#include "executor/coordinator.h"
#include "executor/cpu_device.h"
#include "scheduler_core/random.h"
#include "tests/executor/letters_in_virtual_time.h"
#include "tests/executor/training_for_tests.h"

namespace rrfp {
namespace {

constexpr const char* kEnd = ": processes that do not run the same, or a fault";

VirtualWorkers::DeviceOf emulated(int lanes) {
  return [lanes](const Place&) { return std::make_unique<EmulatedDevice>(lanes, 64); };
}

// Three ranks of two lanes, which notice, vote, announce and give credits back.
Case eager_case() {
  Case input = chain_case(3, 4, true, kMillisecond);
  input.tensor_parallel.lanes = 2;
  input.policy.anticipation = Anticipation{750, 500};
  set_latency(input, kMillisecond / 4);
  return input;
}

Case rendezvous_case() {
  Case input = chain_case(3, 4, true, kMillisecond);
  input.network.mode = NetworkMode::kRendezvous;
  input.policy.window = 1;
  input.policy.hint.name = "1f1b";
  return input;
}

// What is wrong when the first letter that `is_it` fits is given once more, as `change` has it,
// at the end of the iteration.
template <typename IsIt, typename Change>
std::string told_at_the_end(const Case& input, int replicas, const IsIt& is_it,
                            const Change& change) {
  TestRun run;
  run.prepare(input, 1, replicas);
  VirtualWorkers workers(run, emulated(input.tensor_parallel.lanes));
  EXPECT_TRUE(workers.run().ok());
  EXPECT_TRUE(workers.finished());
  for (Letter letter : workers.sent()) {
    if (!is_it(letter)) continue;
    change(letter);
    const Result<void> taken = workers.give(letter);
    return taken.ok() ? "is taken" : taken.error().message;
  }
  return "was never sent";
}

std::string told_of_a_second(Tag tag, const Case& input, int replicas = 1) {
  return told_at_the_end(
      input, replicas, [tag](const Letter& letter) { return letter.tag == tag; }, [](Letter&) {});
}

TEST(LettersOutOfTurn, WhatComesTwiceIsNamedWithItsSender) {
  const std::string before = std::string(", ") + kSentBefore + kEnd;
  EXPECT_EQ(told_of_a_second(Tag::kMessage, eager_case()),
            "rank 0 lane 0 has sent a message for 1F0 on channel rank 0 -> rank 1 (stage 0 -> 1)" +
                before);
  EXPECT_EQ(told_of_a_second(Tag::kNotice, eager_case()),
            "rank 0 lane 0 has sent a notice for 1F0 from stage 0" + before);
  EXPECT_EQ(
      told_of_a_second(Tag::kVote, eager_case()),
      "rank 1 lane 1 has sent a vote for 1F0 on channel rank 0 -> rank 1 (stage 0 -> 1)" + before);
  EXPECT_EQ(told_of_a_second(Tag::kLaneStart, eager_case()),
            "rank 0 lane 0 has sent the start of a lane for 0F0" + before);
  EXPECT_EQ(told_of_a_second(Tag::kCredit, eager_case()),
            "rank 1 lane 0 has sent a credit for 1F0 on channel rank 0 -> rank 1 (stage 0 -> 1), "
            "for a message that uses none" +
                std::string(kEnd));
  EXPECT_EQ(told_of_a_second(Tag::kGradient, eager_case(), 2),
            "rank 1 lane 0 of replica 1 has sent a gradient of stage 1" + before);
  EXPECT_EQ(told_of_a_second(Tag::kReduced, eager_case(), 2),
            "rank 1 lane 0 of replica 0 has sent a sum of stage 1" + before);
  EXPECT_EQ(
      told_of_a_second(Tag::kPost, rendezvous_case()),
      "rank 1 has sent a posting for 1F0 on channel rank 0 -> rank 1 (stage 0 -> 1)" + before);
}

// As the next number, or as the one that it had.
TEST(LettersOutOfTurn, AStartComesOnceAndInOrder) {
  const auto is_start = [](const Letter& letter) { return letter.tag == Tag::kStart; };
  const std::string start = "rank 0 lane 0 has sent a start for 0F0, ";
  EXPECT_EQ(told_at_the_end(eager_case(), 1, is_start, [](Letter&) {}),
            start + "as number 0, where number 12 comes next" + kEnd);
  EXPECT_EQ(told_at_the_end(eager_case(), 1, is_start, [](Letter& of) { of.sequence = 12; }),
            start + kSentBefore + kEnd);
}

// A lane would run what it has no inputs for.
TEST(LettersOutOfTurn, AStartWaitsForWhatItsTaskNeedsOfTheRank) {
  TestRun run;
  run.prepare(eager_case());
  const Program& program = run.program();
  for (const auto& [kind, needs] :
       {std::pair(Kind::kInputGradient, "0F2"), std::pair(Kind::kWeightGradient, "0I2")}) {
    VirtualWorkers workers(run, emulated(2));
    Letter start;
    start.tag = Tag::kStart;
    start.to = 1;
    start.task = program.find({0, kind, 2});
    const Result<void> taken = workers.give(start);
    EXPECT_EQ(taken.ok() ? "" : taken.error().message,
              "rank 0 lane 0 has sent a start for " + to_string(program.task(start.task)) +
                  ", and none before it for " + needs + ", which it needs" + kEnd);
  }
}

TEST(LettersOutOfTurn, ACreditIsGivenBackForWhatWasSent) {
  TestRun run;
  run.prepare(eager_case());
  VirtualWorkers workers(run, emulated(2));
  Letter credit;
  credit.tag = Tag::kCredit;
  credit.from = run.plan->grid.endpoint({0, 1, 0});
  credit.to = 0;
  credit.edge = run.program().find_edge(Kind::kForward, 0, 1);
  credit.task = run.program().find({1, Kind::kForward, 3});
  const Result<void> taken = workers.give(credit);
  EXPECT_EQ(taken.ok() ? "" : taken.error().message,
            "rank 1 lane 0 has sent a credit for 1F3 on channel rank 0 -> rank 1 (stage 0 -> 1), "
            "for a message that uses none" +
                std::string(kEnd));
}

TEST(LettersOutOfTurn, ASumWaitsForTheGradientOfWhoGetsIt) {
  TestRun run;
  run.prepare(eager_case(), 1, 2);
  VirtualWorkers workers(run, emulated(2));
  Letter sum;
  sum.tag = Tag::kReduced;
  sum.from = run.plan->grid.endpoint({0, 2, 1});
  sum.to = run.plan->grid.endpoint({1, 2, 1});
  sum.stage = 2;
  const Result<void> taken = workers.give(sum);
  EXPECT_EQ(taken.ok() ? "" : taken.error().message,
            "rank 2 lane 1 of replica 0 has sent a sum of stage 2, to which this worker has yet to "
            "add its own" +
                std::string(kEnd));
}

// A number of a kind that letters hold, or any at all.
std::int64_t some_number(RandomStream& random) {
  const std::int64_t extremes[] = {std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max(), 0, -1};
  switch (random.below(8)) {
    case 0:
      return extremes[random.below(std::size(extremes))];
    case 1:
      return static_cast<std::int64_t>(random.next());
    case 2:
      return static_cast<std::int64_t>(random.below(20)) * kMillisecond;
    default:
      return static_cast<std::int64_t>(random.below(40)) - 4;
  }
}

void change_a_field(Letter& letter, RandomStream& random) {
  const std::int64_t number = some_number(random);
  std::int32_t* const small[] = {&letter.from, &letter.to,    &letter.iteration, &letter.task,
                                 &letter.edge, &letter.stage, &letter.lane};
  std::int64_t* const large[] = {&letter.sequence, &letter.time_ns, &letter.sent_ns,
                                 &letter.due_ns,   &letter.bytes,   &letter.device_bytes};
  const std::uint64_t field = random.below(std::size(small) + std::size(large) + 2);
  if (field < std::size(small)) {
    *small[field] = static_cast<std::int32_t>(number);
  } else if (field < std::size(small) + std::size(large)) {
    *large[field - std::size(small)] = number;
  } else if (field == std::size(small) + std::size(large)) {
    letter.flag = static_cast<std::uint8_t>(number);
  } else {
    letter.tag = static_cast<Tag>(random.below(20));
  }
}

Payload cut_or_changed(const Payload& payload, RandomStream& random) {
  if (random.below(2) == 0) {
    Payload other(random.below(200));
    if (!other.empty()) std::memset(other.data(), 0, other.size());
    return other;
  }
  Payload other = payload.copy();
  if (!other.empty()) {
    other.data()[random.below(other.size())] = static_cast<std::byte>(random.below(256));
  }
  return other;
}

// Loses, repeats, holds up or changes one letter in `every`.
VirtualWorkers::Tamper tampering(RandomStream& random, std::uint64_t every) {
  return [&random, every](PostedLetter& posted, std::vector<PostedLetter>& more) {
    if (random.below(every) != 0) return true;
    switch (random.below(6)) {
      case 0:
        return false;
      case 1:
        more.push_back({posted.letter, posted.payload.copy()});
        break;
      case 2:
        more.push_back({posted.letter, posted.payload.copy()});
        more.back().letter.due_ns += static_cast<std::int64_t>(random.below(20)) * kMillisecond;
        break;
      case 3:
        posted.payload = cut_or_changed(posted.payload, random);
        break;
      case 4:
        more.push_back({posted.letter, posted.payload.copy()});
        change_a_field(more.back().letter, random);
        break;
      default:
        change_a_field(posted.letter, random);
    }
    return true;
  };
}

struct Ends {
  int told = 0;
  int stuck = 0;
  int finished = 0;
};

// `rounds` of the same world, each with other letters tampered with.
Ends ends_of(const TestRun& run, const VirtualWorkers::DeviceOf& device_of, int rounds,
             std::uint64_t seed) {
  Ends ends;
  for (int round = 0; round < rounds; ++round) {
    RandomStream random(DrawKey{.seed = seed, .iteration = static_cast<std::uint64_t>(round)});
    VirtualWorkers workers(run, device_of);
    const Result<void> ended = workers.run(tampering(random, 2 + random.below(200)));
    for (int endpoint = 0; endpoint < run.plan->grid.size(); ++endpoint) {
      EXPECT_FALSE(workers.loop(endpoint).waiting(kMillisecond).empty());
    }
    if (!ended.ok()) {
      ++ends.told;
      EXPECT_EQ(ended.error().message.find('\n'), std::string::npos);
    } else if (workers.finished()) {
      ++ends.finished;
    } else {
      ++ends.stuck;
    }
  }
  EXPECT_GT(ends.told, rounds / 4);
  EXPECT_GT(ends.finished, 0);
  EXPECT_GT(ends.stuck, 0);
  return ends;
}

TEST(LettersOutOfTurn, NoneOfManyEndsAWorkerThatIsDrivenByMessages) {
  for (const Coordination coordination : {Coordination::kVote, Coordination::kLeader}) {
    Case input = eager_case();
    input.tensor_parallel.coordination = coordination;
    TestRun run;
    run.prepare(input, 2, 2);
    run.plan->core.credits = 2;
    ends_of(run, emulated(2), 2'000, 1);
  }
}

TEST(LettersOutOfTurn, NoneOfManyEndsAWorkerThatBlocks) {
  TestRun run;
  run.prepare(rendezvous_case(), 2, 2);
  ends_of(run, emulated(1), 2'000, 2);
}

// Tensors too have the size that the other end says.
TEST(LettersOutOfTurn, NoneOfManyEndsAWorkerThatTrains) {
  for (const Shape& shape : {Shape{}, with_encoder(Backward::kFull)}) {
    TrainingSetup setup = small_setup();
    setup.spec.model.blocks = 5;
    setup.steps = 1;
    setup.replicas = 2;
    const Case input = case_of(shape);
    const Result<TrainingRun> training =
        prepare_training(setup, small_text(), [&](int, int) { return Result<Case>(input); });
    ASSERT_TRUE(training.ok()) << training.error().message;
    TestRun run;
    run.plan = training->prepared.plan;
    const DeviceMaker make =
        training->devices([](const Place&) { return std::make_shared<LoneExchange>(); });
    ends_of(
        run, [&](const Place& place) { return make(place); }, 150, 3);
  }
}

// Takes what a run would write of an iteration.
class WritingSink final : public IterationSink {
 public:
  explicit WritingSink(const RunPlan& plan) : plan_(plan) {}
  Result<void> on_iteration(IterationRecord record) override {
    EXPECT_FALSE(to_trace(plan_, record).empty());
    EXPECT_FALSE(decision_log_of(plan_, record).empty());
    EXPECT_GE(record.makespan_ns(), 0);
    ++iterations;
    return {};
  }
  int iterations = 0;

 private:
  const RunPlan& plan_;
};

// Answers a coordinator as its workers do, but for letters that are tampered with.
class Peers {
 public:
  Peers(const RunPlan& plan, RandomStream& random, std::uint64_t every)
      : plan_(plan),
        sink_(plan),
        coordinator_(plan, false, sink_),
        random_(random),
        tamper_(tampering(random, every)) {}

  void run() {
    coordinator_.start(0);
    for (std::int64_t now_ns = 0; !coordinator_.ended() && now_ns < 2'000 * kMillisecond;
         now_ns += kMillisecond) {
      while (!coordinator_.outbox().empty()) {
        const Letter letter = coordinator_.outbox().front().first;
        coordinator_.outbox().pop_front();
        answer(letter, now_ns);
      }
      for (int endpoint = 0; endpoint < plan_.grid.size(); ++endpoint) beat(endpoint, now_ns);
      coordinator_.step(now_ns);
    }
  }
  int iterations() const { return sink_.iterations; }

 private:
  void answer(const Letter& letter, std::int64_t now_ns) {
    Letter back;
    back.from = letter.to;
    back.iteration = letter.iteration;
    back.time_ns = now_ns;
    Payload payload;
    if (letter.tag == Tag::kPrepare) {
      back.tag = Tag::kReady;
    } else if (letter.tag == Tag::kPing) {
      back.tag = Tag::kPong;
    } else if (letter.tag == Tag::kGo) {
      back.tag = Tag::kDone;
      payload = to_payload(record_of(letter.to, letter.iteration));
    } else {
      return;
    }
    deliver({back, std::move(payload)}, now_ns);
  }
  void beat(int endpoint, std::int64_t now_ns) {
    Letter beat;
    beat.tag = Tag::kBeat;
    beat.from = endpoint;
    beat.sequence = now_ns / kMillisecond;
    beat.flag = static_cast<std::uint8_t>(random_.below(2));
    deliver({beat, Payload()}, now_ns);
  }
  WorkerRecord record_of(int endpoint, int iteration) const {
    WorkerRecord record;
    record.endpoint = endpoint;
    record.iteration = iteration;
    const Program& program = plan_.world(0, 0).program();
    for (const TaskId task : program.tasks_of_rank(plan_.grid.place(endpoint).rank)) {
      record.tasks.push_back({task, 0, 0, 0, 0, kMillisecond});
    }
    record.arrivals.push_back({0, 1, 0, 0, 0, 0, 0, 0});
    record.signals.push_back({});
    record.syncs.push_back({});
    record.calls.push_back({});
    return record;
  }
  // As endpoint 0 does.
  void deliver(PostedLetter posted, std::int64_t now_ns) {
    std::vector<PostedLetter> all;
    if (tamper_(posted, all)) all.insert(all.begin(), std::move(posted));
    for (PostedLetter& of : all) {
      if (of.letter.from == 0 && of.letter.tag != Tag::kBeat) {
        // Its own needs no check.
      } else if (!check_letter(of.letter, plan_, 0).ok()) {
        coordinator_.stop(RunEnd::kFault, "a wrong letter");
        continue;
      }
      if (is_of_iteration(of.letter.tag)) continue;
      if (of.letter.from < 0 || of.letter.from >= plan_.grid.size()) continue;
      coordinator_.on_letter(of.letter, std::move(of.payload), now_ns);
    }
  }

  const RunPlan& plan_;
  WritingSink sink_;
  Coordinator coordinator_;
  RandomStream& random_;
  VirtualWorkers::Tamper tamper_;
};

TEST(LettersOutOfTurn, NoneOfManyEndsTheCoordinator) {
  TestRun run;
  run.prepare(eager_case(), 2, 2);
  int completed = 0;
  int iterations = 0;
  constexpr int kRounds = 300;
  for (int round = 0; round < kRounds; ++round) {
    RandomStream random(DrawKey{.seed = 4, .iteration = static_cast<std::uint64_t>(round)});
    Peers peers(*run.plan, random, round == 0 ? 1'000'000 : 2 + random.below(5'000));
    peers.run();
    iterations += peers.iterations();
    if (peers.iterations() == 2) ++completed;
  }
  EXPECT_GT(completed, 0);
  EXPECT_LT(completed, kRounds);
  EXPECT_GT(iterations, kRounds / 10);
}

// What comes to a worker is tampered with after its transport has taken it in.
class TamperingTransport final : public Transport {
 public:
  TamperingTransport(Transport& below, std::uint64_t seed, std::uint64_t every)
      : below_(below), random_(DrawKey{.seed = seed}), tamper_(tampering(random_, every)) {}
  int endpoint() const override { return below_.endpoint(); }
  int endpoints() const override { return below_.endpoints(); }
  bool shares_clock() const override { return false; }  // so that clocks are measured as well
  void tell(const Letter& letter) override { below_.tell(letter); }
  void send(const Letter& letter, Payload payload) override {
    below_.send(letter, std::move(payload));
  }
  bool poll(Delivery& delivery) override {
    while (more_.empty()) {
      if (!below_.poll(delivery)) return false;
      if (delivery.event == Delivery::Event::kAnnounced) return true;
      PostedLetter posted{delivery.letter, std::move(delivery.payload)};
      if (tamper_(posted, more_)) more_.insert(more_.begin(), std::move(posted));
    }
    delivery = {Delivery::Event::kReceived, more_.front().letter, std::move(more_.front().payload)};
    more_.erase(more_.begin());
    return true;
  }
  void receive(const Letter& announced) override { below_.receive(announced); }
  void wait(std::int64_t until_ns) override { below_.wait(until_ns); }
  void wake() override { below_.wake(); }
  bool flushed() override { return below_.flushed(); }
  Result<void> status() const override { return below_.status(); }

 private:
  Transport& below_;
  RandomStream random_;
  VirtualWorkers::Tamper tamper_;
  std::vector<PostedLetter> more_;  // to be taken before anything else
};

// Workers and their coordinator together: every run comes to an end, and says why. One whose
// message is due in years is alive, until somebody stops it.
TEST(LettersOutOfTurn, NoneOfManyEndsARun) {
  for (std::uint64_t round = 0; round < 24; ++round) {
    Case input = round % 3 == 0 ? rendezvous_case() : eager_case();
    input.duration_ns.assign(input.duration_ns.size(), 100 * kMicrosecond);
    TestRun run;
    run.prepare(input, 3, round % 2 == 0 ? 2 : 1);
    run.plan->tuning.patience_ns = 200 * kMillisecond;
    run.plan->tuning.heartbeat_ns = 20 * kMillisecond;
    const int lanes = run.plan->grid.lanes;
    std::promise<void> over;
    std::thread stopper([&run, ended = over.get_future()] {
      if (ended.wait_for(std::chrono::seconds(1)) != std::future_status::ready)
        run.stop->store(true);
    });
    const RunOutcome outcome = run_on_threads(
        run.plan, [lanes](const Place&) { return std::make_unique<EmulatedDevice>(lanes, 64); },
        run.sink, default_tuning(run.plan->grid.size()), run.stop,
        [&](const Place& place, Transport& below) -> std::unique_ptr<Transport> {
          const std::uint64_t seed = 100 * round + static_cast<std::uint64_t>(place.rank);
          return std::make_unique<TamperingTransport>(below, seed, 20 + 40 * round);
        });
    over.set_value();
    stopper.join();
    EXPECT_FALSE(outcome.left_behind);
    EXPECT_EQ(outcome.why.empty(), outcome.end == RunEnd::kCompleted) << outcome.why;
  }
}

}  // namespace
}  // namespace rrfp
