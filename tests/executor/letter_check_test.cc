// Goal: whatever the fields of a letter or a record from another worker are,
// nothing is indexed by a wrong one: the sender is named, and the run ends.
#include "executor/letter_check.h"

#include <gtest/gtest.h>

#include <thread>

#include "executor/worker.h"
#include "scheduler_core/random.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

// Two replicas of three ranks of two lanes, two iterations.
TestRun grid_run() {
  TestRun run;
  Case input = chain_case(3, 4, true, kMillisecond);
  input.tensor_parallel.lanes = 2;
  run.prepare(input, 2, 2);
  return run;
}

Letter letter_of(Tag tag, int from, int to) {
  Letter letter;
  letter.tag = tag;
  letter.from = from;
  letter.to = to;
  return letter;
}

// The letters that workers of grid_run() send, one of each kind.
std::vector<Letter> proper_letters(const RunPlan& plan) {
  const Program& program = plan.world(0, 0).program();
  const auto task = [&](int stage, Kind kind) { return program.find({stage, kind, 1}); };
  const auto at = [&](int replica, int rank, int lane) {
    return plan.grid.endpoint({replica, rank, lane});
  };
  std::vector<Letter> all;
  Letter message = letter_of(Tag::kMessage, at(0, 0, 1), at(0, 1, 1));
  message.edge = program.find_edge(Kind::kForward, 0, 1);
  message.task = task(1, Kind::kForward);
  all.push_back(message);
  Letter notice = letter_of(Tag::kNotice, at(0, 1, 0), at(0, 0, 0));
  notice.task = program.task_id(0, Slot::kBackward, 1);
  notice.stage = 1;
  all.push_back(notice);
  Letter vote = letter_of(Tag::kVote, at(0, 1, 1), at(0, 1, 0));
  vote.edge = message.edge;
  vote.task = message.task;
  vote.lane = 1;
  all.push_back(vote);
  Letter start = letter_of(Tag::kStart, at(0, 1, 0), at(0, 1, 1));
  start.task = message.task;
  all.push_back(start);
  Letter started = start;
  started.tag = Tag::kLaneStart;
  all.push_back(started);
  Letter credit = letter_of(Tag::kCredit, at(0, 1, 1), at(0, 0, 1));
  credit.edge = message.edge;
  credit.task = message.task;
  all.push_back(credit);
  Letter posted = credit;
  posted.tag = Tag::kPost;
  all.push_back(posted);
  Letter gradient = letter_of(Tag::kGradient, at(1, 2, 1), at(0, 2, 1));
  gradient.stage = 2;
  gradient.lane = 1;
  all.push_back(gradient);
  Letter reduced = letter_of(Tag::kReduced, at(0, 2, 1), at(1, 2, 1));
  reduced.stage = 2;
  all.push_back(reduced);
  for (const Tag tag : {Tag::kPrepare, Tag::kPing, Tag::kGo}) {
    all.push_back(letter_of(tag, 0, at(1, 2, 1)));
  }
  for (const Tag tag : {Tag::kReady, Tag::kPong, Tag::kDone}) {
    all.push_back(letter_of(tag, at(1, 2, 1), 0));
  }
  Letter beat = letter_of(Tag::kBeat, at(0, 1, 0), 0);
  beat.task = message.task;
  all.push_back(beat);
  Letter end = letter_of(Tag::kEnd, at(0, 1, 0), 0);
  end.stage = static_cast<int>(RunEnd::kFault);
  all.push_back(end);
  return all;
}

TEST(LetterCheck, LettersOfARunPass) {
  const TestRun run = grid_run();
  for (const Letter& letter : proper_letters(*run.plan)) {
    const Result<void> right = check_letter(letter, *run.plan, letter.to);
    EXPECT_TRUE(right.ok()) << right.error().message;
  }
}

// What follows looks up what the letter names, as a worker does: with a wrong
// index a sanitizer, or a check of the core, would speak.
void use(const Letter& letter, const RunPlan& plan) {
  if (!is_of_iteration(letter.tag)) return;
  const Program& program = plan.world(letter.iteration, 0).program();
  if (letter.tag < Tag::kGradient) {
    EXPECT_LT(program.stage_of(letter.task), program.stages());
    EXPECT_GE(letter.task, 0);
  }
  if (letter.tag == Tag::kMessage || letter.tag == Tag::kVote || letter.tag == Tag::kCredit) {
    EXPECT_EQ(program.edge(letter.edge).to, program.stage_of(letter.task));
  }
  if (letter.tag == Tag::kVote || letter.tag == Tag::kGradient) {
    EXPECT_GE(letter.lane, 0);
    EXPECT_LT(letter.lane, 2);
  }
}

TEST(LetterCheck, AWrongFieldIsNamedWithTheSender) {
  const TestRun run = grid_run();
  const std::vector<Letter> proper = proper_letters(*run.plan);
  const auto wrong = [&](std::size_t index, const auto& change) {
    Letter letter = proper[index];
    change(letter);
    const Result<void> right = check_letter(letter, *run.plan, letter.to);
    return right.ok() ? std::string("is taken") : right.error().message;
  };
  const auto expect_part = [](const std::string& message, const std::string& part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  for (const std::int32_t edge : {-1, 1, 2, 1'000'000, std::numeric_limits<std::int32_t>::min()}) {
    expect_part(wrong(0, [edge](Letter& letter) { letter.edge = edge; }),
                "rank 0 lane 1 of replica 0 has sent a message whose edge cannot be");
  }
  for (const TaskId task : {-1, 0, 1'000'000}) {
    for (const std::size_t of : {0U, 1U, 2U, 3U, 4U, 5U, 6U}) {
      expect_part(wrong(of, [task](Letter& letter) { letter.task = task; }),
                  of == 1 && task == 0 ? " whose stage cannot" : " whose task cannot");
    }
  }
  for (std::size_t of = 0; of < 9; ++of) {
    for (const int iteration : {-1, 2, 1 << 30}) {
      expect_part(wrong(of, [iteration](Letter& letter) { letter.iteration = iteration; }),
                  " whose iteration cannot");
    }
  }
  expect_part(wrong(1, [](Letter& letter) { letter.stage = 2; }), " whose stage cannot");
  expect_part(wrong(2, [](Letter& letter) { letter.lane = 64; }), " whose lane cannot");
  expect_part(wrong(3, [](Letter& letter) { letter.from = 0; }), " whose sender cannot");
  expect_part(wrong(7, [](Letter& letter) { letter.lane = -5; }), " whose lane cannot");
  expect_part(wrong(8, [](Letter& letter) { letter.stage = 1; }), " whose stage cannot");
  expect_part(wrong(9, [](Letter& letter) { letter.iteration = 7; }), " whose iteration cannot");
  expect_part(wrong(9, [](Letter& letter) { letter.from = 3; }), " whose sender cannot");
  expect_part(wrong(12, [](Letter& letter) { letter.to = 1; }), " whose receiver cannot");
  expect_part(wrong(15, [](Letter& letter) { letter.task = 999; }), " whose task cannot");
  // It would end the job as if all were done.
  expect_part(wrong(16, [](Letter& letter) { letter.stage = 0; }), " whose stage cannot");
  for (const int from : {-1, 12, 1 << 30}) {
    expect_part(wrong(0, [from](Letter& letter) { letter.from = from; }),
                "a letter came from endpoint " + std::to_string(from));
  }
}

TEST(LetterCheck, WhateverPassesNamesWhatThereIs) {
  const TestRun run = grid_run();
  const std::vector<Letter> proper = proper_letters(*run.plan);
  RandomStream random(DrawKey{.seed = 11});
  int passed = 0;
  for (int round = 0; round < 200'000; ++round) {
    Letter letter = proper[random.below(proper.size())];
    const auto number = static_cast<std::int32_t>(random.below(40)) - 4;
    std::int32_t* const fields[] = {&letter.from, &letter.to,    &letter.iteration, &letter.task,
                                    &letter.edge, &letter.stage, &letter.lane};
    *fields[random.below(std::size(fields))] = number;
    letter.to = static_cast<int>(static_cast<unsigned>(letter.to) % 12U);
    if (random.below(4) == 0) letter.tag = static_cast<Tag>(random.below(20));
    if (!check_letter(letter, *run.plan, letter.to).ok()) continue;
    ++passed;
    use(letter, *run.plan);
  }
  EXPECT_GT(passed, 1000);
}

TEST(LetterCheck, RecordsNameWhatThereIs) {
  const TestRun run = grid_run();
  const Program& program = run.plan->world(0, 0).program();
  WorkerRecord record;
  record.endpoint = 2;  // rank 1
  record.iteration = 1;
  record.tasks.push_back({program.find({1, Kind::kForward, 0}), 0, 0, 0, 0, 0});
  record.arrivals.push_back({0, 3, 0, 0, 0, 0, 0, 0});
  CoreCall call;
  call.candidates.fill(-7);
  record.calls.push_back(call);
  const auto message = [&](const auto& change) {
    WorkerRecord other = record;
    change(other);
    const Result<void> right = check_record(other, *run.plan, 2, 1);
    return right.ok() ? std::string() : right.error().message;
  };
  const std::string begin = "the record of rank 1 lane 0 of replica 0 names a ";
  EXPECT_EQ(message([](WorkerRecord&) {}), "");
  EXPECT_EQ(message([](WorkerRecord& of) { of.endpoint = 99; }), begin + "endpoint that cannot be");
  EXPECT_EQ(message([](WorkerRecord& of) { of.iteration = 0; }),
            begin + "iteration that cannot be");
  EXPECT_EQ(message([](WorkerRecord& of) { of.tasks[0].task = 0; }), begin + "task that cannot be");
  EXPECT_EQ(message([](WorkerRecord& of) { of.arrivals[0].edge = 4; }),
            begin + "message that cannot be");
  EXPECT_EQ(message([](WorkerRecord& of) { of.arrivals[0].microbatch = 4; }),
            begin + "message that cannot be");
  EXPECT_EQ(message([](WorkerRecord& of) { of.signals.push_back({}), of.signals[0].edge = -1; }),
            begin + "notice or credit that cannot be");
  EXPECT_EQ(message([](WorkerRecord& of) {
              of.syncs.push_back({-1, 0, 0, 0});
            }),
            begin + "stage that cannot be");
  EXPECT_EQ(message([](WorkerRecord& of) { of.calls[0].candidate_count = 5; }),
            begin + "call that cannot be");
  EXPECT_EQ(message([](WorkerRecord& of) { of.calls[0].candidate_count = 1; }),
            begin + "call that cannot be");
}

// A worker of two, whose other one is the test: it sends `letter`, and hears
// how the worker ends.
std::string end_of_worker(int worker_endpoint, const std::vector<Letter>& letters) {
  TestRun run;
  run.prepare(chain_case(2, 2, true, kMillisecond));
  run.plan->tuning.patience_ns = 400 * kMillisecond;
  run.plan->tuning.heartbeat_ns = 20 * kMillisecond;
  ThreadsNetwork network(2, pairs_that_talk(*run.plan), ThreadsTuning{});
  Transport& transport = network.transport(1 - worker_endpoint);
  WorkerEnd ended;
  std::thread thread([&] {
    const MonotonicClock clock;
    EmulatedDevice device(1, 64);
    Worker worker(*run.plan, network.transport(worker_endpoint), device, clock,
                  worker_endpoint == 0 ? run.sink.get() : nullptr, *run.stop);
    ended = worker.run();
  });
  for (Letter letter : letters) {
    letter.from = 1 - worker_endpoint;
    letter.to = worker_endpoint;
    transport.tell(letter);
  }
  std::string told;
  const std::int64_t until_ns = MonotonicClock::read_ns() + 5'000 * kMillisecond;
  while (told.empty() && MonotonicClock::read_ns() < until_ns) {
    Delivery delivery;
    if (!transport.poll(delivery)) continue;
    if (delivery.event == Delivery::Event::kAnnounced) transport.receive(delivery.letter);
    if (delivery.letter.tag != Tag::kEnd || delivery.payload.empty()) continue;
    const auto* text = reinterpret_cast<const char*>(delivery.payload.data());
    told.assign(text, delivery.payload.size());
  }
  thread.join();  // the other one is silent now
  EXPECT_EQ(ended.end, RunEnd::kFault);
  return told;
}

TEST(LetterCheck, AnIterationThatIsNotThereEndsTheWorker) {
  Letter prepare = letter_of(Tag::kPrepare, 0, 1);
  prepare.iteration = 1000;
  EXPECT_NE(
      end_of_worker(1, {prepare}).find("rank 0 has sent a preparation whose iteration cannot be"),
      std::string::npos);
}

TEST(LetterCheck, AStartWithoutPreparationEndsTheWorker) {
  EXPECT_EQ(end_of_worker(1, {letter_of(Tag::kGo, 0, 1)}),
            "rank 1: rank 0 has started an iteration that is not prepared");
}

TEST(LetterCheck, AWrongTaskEndsTheRunOfTheFirstWorker) {
  Letter beat = letter_of(Tag::kBeat, 1, 0);
  beat.task = 5000;
  EXPECT_NE(end_of_worker(0, {beat}).find("rank 0: rank 1 has sent a heartbeat whose task"),
            std::string::npos);
}

TEST(LetterCheck, AWorkerCannotSayThatAllAreDone) {
  Letter end = letter_of(Tag::kEnd, 1, 0);
  end.stage = static_cast<int>(RunEnd::kCompleted);
  EXPECT_NE(end_of_worker(0, {end}).find("rank 1 has sent an end whose stage cannot be"),
            std::string::npos);
}

}  // namespace
}  // namespace rrfp
