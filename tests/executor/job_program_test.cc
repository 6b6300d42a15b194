// Goal: the processes of one job run the same or not at all. What differs
// between their command lines, and what one of them cannot do, ends all at
// once with status 2 and the same words, over TCP and under mpirun.
#include <gtest/gtest.h>

#include <functional>

#include "executor/clock.h"
#include "tests/executor/program_for_tests.h"

namespace rrfp {
namespace {

using Lines = std::vector<std::vector<std::string>>;

std::string scenario(const std::string& name, int seed = 3, int task_us = 1000) {
  const std::string us = std::to_string(task_us);
  return write_text(name, R"({"schema": "rrfp.scenario/1", "name": "s", "seed": )" +
                              std::to_string(seed) + R"(, "iterations": 3,
  "pipeline": {"ranks": 2, "microbatches": 8, "split_backward": true},
  "durations": {"forward_us": )" +
                              us + R"(, "input_gradient_us": )" + us +
                              R"(, "weight_gradient_us": )" + us + R"(},
  "network": {"latency_us": 100},
  "policies": [{"name": "zb", "hint": "zb-h2"}, {"name": "bfw", "hint": "bfw"}]})");
}

// All end within a few seconds, with status 2 and these words.
void expect_all_told(const Lines& lines, const std::string& words) {
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  const EndedJob job = over_tcp_each(lines);
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 5'000'000'000);
  for (std::size_t process = 0; process < lines.size(); ++process) {
    EXPECT_EQ(job.statuses[process], 2) << job.text;
    EXPECT_EQ(job.texts[process], "rrfp " + lines[process][0] + ": " + words + "\n");
  }
}

void expect_all_told_by_mpi(const Lines& lines, const std::string& words) {
  if (!no_mpi().empty()) return;
  const EndedProgram job = mpirun_each(lines);
  EXPECT_EQ(job.status, 2) << job.text;
  EXPECT_EQ(job.count("rrfp " + lines[0][0] + ": " + words + "\n"), 1) << job.text;
  EXPECT_EQ(job.count("rrfp "), 1) << job.text;
}

TEST(ProgramAsJob, OptionsThatDifferAreNamed) {
  const std::string input = scenario("job.json");
  const std::string text = RRFP_SOURCE_DIR "/README.md";
  const std::vector<std::string> train = {"train", input, "--text", text, "--steps", "2"};
  const auto with = [](std::vector<std::string> line, const std::vector<std::string>& more) {
    line.insert(line.end(), more.begin(), more.end());
    return line;
  };
  const std::string begin = "the processes of this job were not started alike: process 1 has ";
  const struct {
    std::vector<std::string> first, second;
    std::string words;
  } differences[] = {
      {{"--seed", "7"}, {"--seed", "8"}, "--seed 8, process 0 has --seed 7"},
      {{}, {"--learning-rate", "0.2"}, "--learning-rate 0.2, process 0 has no --learning-rate"},
      {{"--momentum", "0.5"}, {}, "no --momentum, process 0 has --momentum 0.5"},
      {{}, {"--heads", "2"}, "--heads 2, process 0 has no --heads"},
      {{}, {"--policy", "bfw"}, "--policy bfw, process 0 has no --policy"},
      {{"--check"}, {}, "no --check, process 0 has --check"},
  };
  for (const auto& of : differences) {
    const Lines lines = {with(train, of.first), with(train, of.second)};
    expect_all_told(lines, begin + of.words);
    if (&of == &differences[0]) expect_all_told_by_mpi(lines, begin + of.words);
  }
  expect_all_told({{"run", input}, {"run", input, "--credits", "2"}},
                  begin + "--credits 2, process 0 has no --credits");
}

TEST(ProgramAsJob, FilesAreComparedByWhatTheyHold) {
  const std::string input = scenario("job.json");
  const std::string same = scenario("same.json");
  const std::string other = scenario("other.json", 4);
  const EndedJob alike =
      over_tcp_each({{"run", input}, {"run", same, "--max-file-mb", "1", "--json"}});
  EXPECT_EQ(alike.statuses, std::vector<int>({0, 0})) << alike.text;
  for (const auto& [first, second] : {std::pair(input, other), std::pair(other, input)}) {
    const EndedJob job = over_tcp_each({{"run", first}, {"run", second}});
    EXPECT_EQ(job.statuses, std::vector<int>({2, 2})) << job.text;
    EXPECT_EQ(job.texts[0], job.texts[1]);
    EXPECT_TRUE(job.has("process 1 has FILE of ")) << job.text;
  }
  const EndedJob texts =
      over_tcp_each({{"train", input, "--text", input}, {"train", input, "--text", other}});
  EXPECT_EQ(texts.statuses, std::vector<int>({2, 2})) << texts.text;
  EXPECT_TRUE(texts.has("process 1 has --text of ")) << texts.text;
}

TEST(ProgramAsJob, CommandsThatDifferAreNamed) {
  const std::string input = scenario("job.json");
  const Lines lines = {{"run", input}, {"train", input, "--text", input}};
  const std::string words =
      "the processes of this job were not started alike: process 1 has command train, process 0 "
      "has command run";
  expect_all_told(lines, words);
  expect_all_told_by_mpi(lines, words);
}

TEST(ProgramAsJob, WhatOneCannotDoIsToldByAll) {
  const std::string input = scenario("job.json");
  const std::string absent = path_for("absent.json");
  const std::string words = absent + ": cannot read: No such file or directory";
  for (const std::size_t broken : {0U, 1U}) {
    Lines lines = {{"run", input}, {"run", input}};
    lines[broken][1] = absent;
    expect_all_told(lines, "process " + std::to_string(broken) + ": " + words);
    expect_all_told_by_mpi(lines, "process " + std::to_string(broken) + ": " + words);
  }
  expect_all_told({{"calibrate", absent}, {"calibrate", absent}}, words);
  expect_all_told({{"validate", input}, {"validate", input, "--iterations", "0"}},
                  "process 1: --iterations: found \"0\"; expected a whole number from 1 to 10000");
  const EndedJob unknown = over_tcp_each({{"run", input}, {"run", input, "--sed", "1"}});
  EXPECT_EQ(unknown.statuses, std::vector<int>({2, 2})) << unknown.text;
  EXPECT_EQ(unknown.texts[0], unknown.texts[1]);
  EXPECT_TRUE(unknown.has("process 1: unknown option \"--sed\"")) << unknown.text;
}

// A launcher that does not start the others: it is said before they are given up.
TEST(ProgramAsJob, WhatOneCannotDoIsSaidBeforeTheOthersCome) {
  const EndedProgram alone =
      start({"env", "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost",
             "MASTER_PORT=" + std::to_string(free_port()), RRFP_PROGRAM, "run", "/absent.json"});
  EXPECT_EQ(alone.status, 2) << alone.text;
  EXPECT_EQ(alone.count("rrfp run: /absent.json: cannot read"), 1) << alone.text;
  EXPECT_TRUE(alone.has("waits at port ")) << alone.text;
}

// What is wrong with their number is known before all of them have come.
TEST(ProgramAsJob, TheNumberOfProcessesIsHeldAgainstTheFileAndTheLimits) {
  const std::string input = scenario("job.json");
  const auto alone = [&](const std::string& limits, const std::string& processes) {
    return start({"bash", "-c",
                  limits + "exec env RANK=0 WORLD_SIZE=" + processes +
                      " MASTER_ADDR=localhost MASTER_PORT=" + std::to_string(free_port()) + " " +
                      RRFP_PROGRAM + " run " + input});
  };
  const EndedProgram more = alone("", "5000");
  EXPECT_EQ(more.status, 2);
  EXPECT_TRUE(more.has("this run takes 2 processes (1 replicas x 2 ranks x 1 lanes), found 5000"))
      << more.text;
  // A sanitizer takes more of the address space than that at once.
  const EndedProgram vast = alone(kSanitized ? "" : "ulimit -v 4000000; ", "2000000000");
  EXPECT_EQ(vast.status, 2);
  EXPECT_TRUE(vast.has("2000000000 processes (WORLD_SIZE); expected at most 16384")) << vast.text;
  const EndedProgram few_files = alone("ulimit -n 40; ", "2");
  EXPECT_EQ(few_files.status, 2);
  EXPECT_TRUE(few_files.has("may have 40 files open and needs 65 for its connections to 1 others"))
      << few_files.text;
}

// One that leaves without a word: the others are not left in MPI_Init for ever.
TEST(ProgramAsJob, WhoWaitsInMpiInitSaysSoAndEnds) {
  if (const std::string missing = no_mpi(); !missing.empty()) GTEST_SKIP() << missing;
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  const EndedProgram job = mpirun_each({{"--version"}, {"run", "/absent.json"}});
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 30'000'000'000);
  EXPECT_EQ(job.status, 2) << job.text;
  EXPECT_EQ(job.count("rrfp run: /absent.json: cannot read"), 1) << job.text;
  EXPECT_EQ(job.count("(MPI: process 1 of 2 waits for the others to call MPI_Init (5 s)"), 1)
      << job.text;
}

TEST(ProgramAsJob, OneProcessOfALauncherIsToldThatItRunsAll) {
  const std::string input = scenario("job.json");
  const std::string note =
      "note: one process was started, so all 2 workers run in it as threads; start 2 processes";
  const EndedProgram of_torchrun = start({"env", "RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=localhost",
                                          "MASTER_PORT=1", RRFP_PROGRAM, "run", input});
  EXPECT_EQ(of_torchrun.status, 0) << of_torchrun.text;
  EXPECT_EQ(of_torchrun.count(note), 1) << of_torchrun.text;
  EXPECT_EQ(rrfp({"run", input}).count("note: one process"), 0);
  const std::string several = "note: --transport threads: each process that the launcher started";
  for (const auto& [process, notes] : {std::pair("0", 1), std::pair("1", 0)}) {
    const EndedProgram one_of_two =
        start({"env", std::string("SLURM_PROCID=") + process, "SLURM_NTASKS=2", RRFP_PROGRAM, "run",
               input, "--transport", "threads"});
    EXPECT_EQ(one_of_two.status, 0) << one_of_two.text;
    EXPECT_EQ(one_of_two.count(several), notes) << one_of_two.text;
  }
  if (!no_mpi().empty()) return;
  const EndedProgram of_mpirun = mpirun(1, {"run", input});
  EXPECT_EQ(of_mpirun.status, 0) << of_mpirun.text;
  EXPECT_EQ(of_mpirun.count(note), 1) << of_mpirun.text;
}

TEST(ProgramAsJob, CtrlCAtOneProcessInterruptsAll) {
  const std::string trace = path_for("interrupted.jsonl");
  std::filesystem::remove(trace);
  const std::string input = scenario("job.json");
  const std::vector<std::string> run = {"run", input, "--iterations", "500", "--trace", trace};
  const EndedJob job = over_tcp_each({run, run}, {SIGINT, trace, 200});
  EXPECT_EQ(job.statuses, std::vector<int>({130, 130})) << job.text;
}

}  // namespace
}  // namespace rrfp
