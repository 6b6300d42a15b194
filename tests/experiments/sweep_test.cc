// Goal: a sweep gives the same bytes on any number of threads and after any
// interruption, compares what is comparable, and says what is not.
#include "experiments/sweep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "experiments/sweep_files.h"
#include "experiments/sweep_report.h"
#include "experiments/sweep_summary.h"
#include "tests/experiments/run_for_tests.h"

namespace rrfp {
namespace {

std::string small_scenario(const std::string& iterations, const std::string& grid) {
  return R"({ // what a person writes may hold comments
    "schema": "rrfp.scenario/1", "name": "small", "seed": 7, "iterations": )" +
         iterations + R"(,
    "pipeline": {"ranks": 4, "microbatches": 8, "split_backward": true},
    "durations": {"forward_us": 10, "input_gradient_us": 10, "weight_gradient_us": 8},
    "network": {"latency_us": 1},
    "variability": [{"model": "lognormal", "on": "compute", "cv": 0.2}],
    "policies": [
      {"name": "1f1b", "hint": "1f1b", "fixed": true},
      {"name": "zb-h1", "hint": "zb-h1", "fixed": true},
      {"name": "zb-h1, ready", "hint": "zb-h1", "anticipation": true,
       "budget_activations": "zb-h1"},
      {"name": "zb-h2", "hint": "zb-h2", "fixed": true}])" +
         grid + "}";
}

const char* const kGrid =
    R"(, "grid": {"/variability/0/cv": [0, 0.4], "/network/latency_us": [0, 5]})";

Sweep planned(const std::string& text) {
  JsonOptions comments;
  comments.comments = true;
  const Result<JsonDocument> document = parse_json(text, "small.json", comments);
  EXPECT_TRUE(document.ok());
  Result<Sweep> sweep = plan_sweep(*document, 0);
  EXPECT_TRUE(sweep.ok()) << sweep.error().message;
  return std::move(sweep).value();
}

std::vector<std::vector<PolicySummary>> summaries_of(const Sweep& sweep) {
  std::vector<std::vector<PolicySummary>> summaries;
  for (const SweepPoint& point : sweep.points) summaries.push_back(summarize(point));
  return summaries;
}

const char* const kFiles[] = {"runs.csv",        "summary.csv",     "summary.json",
                              "scenario-0.json", "scenario-1.json", "scenario-2.json",
                              "scenario-3.json"};

TEST(Sweep, SameBytesOnAnyNumberOfThreads) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/small.json", small_scenario("20", kGrid));
  const Ran one = run_rrfp({"sweep", path, "--threads", "1", "--out", folder + "/one"});
  const Ran many = run_rrfp({"sweep", path, "--threads", "7", "--out", folder + "/many"});
  EXPECT_EQ(one.status, 0) << one.err;
  EXPECT_EQ(one.out, many.out);
  EXPECT_EQ(one.err, "") << "no progress bar where there is no terminal";
  for (const char* file : kFiles) {
    EXPECT_EQ(read_test_file(folder + "/one/" + file), read_test_file(folder + "/many/" + file))
        << file;
  }
}

// The most memory that a process has come to that ran the sweep, in KB.
std::int64_t peak_kb_of_sweep(Sweep sweep) {
  const pid_t child = fork();
  if (child == 0) _exit(run_sweep(sweep, {}).ok() ? 0 : 1);
  int status = -1;
  rusage usage{};
  EXPECT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0);
  return usage.ru_maxrss;
}

TEST(Sweep, MemoryDoesNotGrowWithThePoints) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps memory that is freed";
#endif
  const auto sweep_of = [](int points) {
    std::string cvs = "0";
    for (int i = 1; i < points; ++i) cvs += ", 0." + std::to_string(100 + i);
    std::string text = small_scenario("1", R"(, "grid": {"/variability/0/cv": [)" + cvs + "]}");
    const std::string shape = R"("ranks": 4, "microbatches": 8)";
    text.replace(text.find(shape), shape.size(), R"("ranks": 32, "microbatches": 128)");
    return planned(text);
  };
  // Three schedules of 12'288 tasks per point: 60 points that all keep theirs take 25 MB or more.
  const std::int64_t one_kb = peak_kb_of_sweep(sweep_of(1));
  const std::int64_t many_kb = peak_kb_of_sweep(sweep_of(60));
  EXPECT_LT(many_kb - one_kb, 8 * 1024);
}

TEST(Sweep, InterruptedSweepKeepsWhatIsDoneAndResumesToTheSameBytes) {
  const std::string folder = test_folder();
  const std::string text = small_scenario("20", kGrid);
  const std::string path = write_test_file(folder + "/small.json", text);
  ASSERT_EQ(run_rrfp({"sweep", path, "--out", folder + "/whole"}).status, 0);

  Sweep sweep = planned(text);
  std::atomic<int> done{0};
  SweepControl control;
  control.threads = 3;
  control.on_piece_done = [&done] { ++done; };
  control.interrupted = [&done] { return done >= 33; };
  ASSERT_TRUE(run_sweep(sweep, control).ok());
  EXPECT_FALSE(sweep.complete());
  EXPECT_GE(done, 33);
  EXPECT_EQ(pieces_left(sweep), 80U - static_cast<std::size_t>(done));
  const std::string cut = folder + "/cut";
  ASSERT_TRUE(write_sweep(cut, sweep, summaries_of(sweep)).ok());
  EXPECT_NE(read_test_file(cut + "/summary.json").find("\"complete\": false"), std::string::npos);

  const Ran ran = run_rrfp({"sweep", path, "--out", cut, "--resume"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const char* file : kFiles) {
    EXPECT_EQ(read_test_file(cut + "/" + file), read_test_file(folder + "/whole/" + file)) << file;
  }
}

TEST(Sweep, ResumeRefusesAnotherScenario) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/a.json", small_scenario("3", ""));
  ASSERT_EQ(run_rrfp({"sweep", path, "--out", folder + "/out"}).status, 0);
  const Ran longer =
      run_rrfp({"sweep", path, "--out", folder + "/out", "--resume", "--iterations", "4"});
  EXPECT_EQ(longer.status, 2);
  EXPECT_NE(longer.err.find("/scenario.json: a sweep of another scenario"), std::string::npos)
      << longer.err;
  EXPECT_EQ(run_rrfp({"sweep", path, "--out", folder + "/none", "--resume"}).status, 2);
  EXPECT_EQ(run_rrfp({"sweep", path, "--resume"}).err,
            "rrfp sweep: --resume needs --out, the folder to resume\n");
  write_test_file(folder + "/out/runs.csv", "point\n");
  EXPECT_NE(run_rrfp({"sweep", path, "--out", folder + "/out", "--resume"}).err.find("line 1"),
            std::string::npos);
}

TEST(Sweep, ResultsOfAnotherScenarioAreReplacedOnlyWhenForced) {
  const std::string folder = test_folder();
  const std::string out = folder + "/out";
  const std::string grid = write_test_file(folder + "/grid.json", small_scenario("2", kGrid));
  const std::string plain = write_test_file(folder + "/plain.json", small_scenario("3", ""));
  ASSERT_EQ(run_rrfp({"sweep", grid, "--out", out}).status, 0);
  EXPECT_EQ(run_rrfp({"sweep", grid, "--out", out}).status, 0) << "the same gives the same";
  EXPECT_EQ(run_rrfp({"sweep", grid, "--out", out, "--resume"}).status, 0);

  const std::string runs = read_test_file(out + "/runs.csv");
  const Ran refused = run_rrfp({"sweep", plain, "--out", out});
  EXPECT_EQ(refused.status, 2);
  EXPECT_EQ(refused.err, "rrfp sweep: " + out +
                             ": holds the results of another scenario, \"small\" (4 points, 2 "
                             "iterations); this is \"small\" (3 iterations); take another folder, "
                             "or --force to replace them\n");
  EXPECT_EQ(read_test_file(out + "/runs.csv"), runs);

  EXPECT_EQ(run_rrfp({"sweep", plain, "--out", out, "--force"}).status, 0);
  EXPECT_TRUE(absent(out + "/scenario-3.json")) << "of the sweep that was replaced";
  EXPECT_EQ(run_rrfp({"sweep", plain, "--out", out, "--iterations", "4"}).status, 2);
  std::filesystem::remove(out + "/scenario.json");
  EXPECT_TRUE(has(run_rrfp({"sweep", plain, "--out", out}).err, "without its scenario"));

  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"sweep", plain, "--force"},
        {"sweep", plain, "--out", out, "--force", "--resume"}}) {
    EXPECT_EQ(run_rrfp(wrong).status, 2);
  }
}

TEST(Sweep, OtherIterationsAreSaidToBeThatAlone) {
  const std::string folder = test_folder();
  const std::string out = folder + "/out";
  for (const char* grid : {"", kGrid}) {
    const std::string path = write_test_file(folder + "/a.json", small_scenario("3", grid));
    ASSERT_EQ(run_rrfp({"sweep", path, "--out", out, "--force"}).status, 0);
    const Ran ran = run_rrfp({"sweep", path, "--out", out, "--iterations", "4"});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.err, "rrfp sweep: " + out +
                           ": holds the results of this scenario with 3 iterations; this is with "
                           "4; give --iterations 3 (and --resume, where it was cut short); take "
                           "another folder, or --force to replace them\n");
  }
}

// A scenario in the folder that it is swept into would give way to the resolved one, --force or
// not.
TEST(Sweep, ItsOwnScenarioIsNotReplaced) {
  const std::string folder = test_folder();
  const std::string text = "// mine\n" + small_scenario("2", kGrid);
  const std::string path = write_test_file(folder + "/scenario.json", text);
  std::filesystem::create_symlink(path, folder + "/link.json");
  for (const std::string& in :
       {path, folder + "/link.json",
        folder + "/../" + std::filesystem::path(folder).filename().string() + "/scenario.json"}) {
    for (const bool force : {false, true}) {
      std::vector<std::string> command = {"sweep", in, "--out", folder};
      if (force) command.emplace_back("--force");
      const Ran ran = run_rrfp(command);
      EXPECT_EQ(ran.status, 2);
      EXPECT_TRUE(has(ran.err,
                      "scenario.json is what FILE reads, and would be replaced; give "
                      "another path"))
          << ran.err;
      EXPECT_EQ(read_test_file(path), text);
      EXPECT_TRUE(absent(folder + "/runs.csv"));
    }
  }
  const std::string other = write_test_file(folder + "/other.json", small_scenario("2", ""));
  const Ran beside = run_rrfp({"sweep", other, "--out", folder});
  EXPECT_EQ(beside.status, 2);
  EXPECT_TRUE(has(beside.err, "is not of a sweep's results")) << beside.err;
  EXPECT_EQ(read_test_file(path), text);
  // What the folder holds already, it may be made of.
  ASSERT_EQ(run_rrfp({"sweep", other, "--out", folder + "/out"}).status, 0);
  const std::string resolved = folder + "/out/scenario.json";
  EXPECT_EQ(run_rrfp({"sweep", resolved, "--out", folder + "/out"}).status, 0);
}

// The real program, a real signal. The scenario is far too long to finish.
void interrupt_sweep(const std::string& log, const std::vector<std::string>& options) {
  std::string text = small_scenario("100000", "");
  const std::string shape = "\"ranks\": 4, \"microbatches\": 8";
  text.replace(text.find(shape), shape.size(), "\"ranks\": 16, \"microbatches\": 256");
  const std::string path = write_test_file(log + ".json", text);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (std::freopen(log.c_str(), "w", stdout) == nullptr) _exit(99);
    if (std::freopen((log + ".err").c_str(), "w", stderr) == nullptr) _exit(99);
    std::vector<const char*> arguments = {"rrfp", "sweep", path.c_str()};
    for (const std::string& option : options) arguments.push_back(option.c_str());
    arguments.push_back(nullptr);
    execv(RRFP_PROGRAM, const_cast<char**>(arguments.data()));
    _exit(98);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_TRUE(has(read_test_file(log), "of 100000 iterations"));
}

TEST(Sweep, CtrlCWritesThePartAndEndsWith130) {
  const std::string folder = test_folder();
  const std::string out = folder + "/out";
  interrupt_sweep(folder + "/log", {"--out", out});
  EXPECT_TRUE(has(read_test_file(folder + "/log.err"),
                  "interrupted; what was done is kept in " + out + ", and --resume goes on"));
  const std::string summary = read_test_file(out + "/summary.json");
  EXPECT_NE(summary.find("\"complete\": false"), std::string::npos);
  EXPECT_EQ(summary.find("\"iterations_done\": 0,"), std::string::npos);
}

TEST(Sweep, CtrlCWithoutAFolderSaysThatNothingIsKept) {
  const std::string log = test_folder() + "/log";
  interrupt_sweep(log, {});
  const std::string said = read_test_file(log + ".err");
  EXPECT_TRUE(has(said, "interrupted; what was done is shown and kept nowhere; --out DIR keeps it"))
      << said;
}

TEST(Sweep, MemoryIsHeldAgainstTheBaselineAndFixedOrdersOfTheSameMemory) {
  Sweep sweep = planned(small_scenario("10", ""));
  ASSERT_TRUE(run_sweep(sweep, {}).ok());
  const std::vector<PolicySummary> summaries = summarize(sweep.points[0]);
  ASSERT_EQ(summaries.size(), 4U);
  // Peaks as published for p = 4: 1f1b 4,3,2,1; zb-h1 4 on every rank; zb-h2 7.
  EXPECT_EQ(summaries[0].memory.bytes, 4);
  EXPECT_EQ(summaries[0].memory.all_ranks_bytes, 10);
  EXPECT_EQ(summaries[1].memory.bytes, 4);
  EXPECT_EQ(summaries[1].memory.all_ranks_bytes, 16);
  EXPECT_EQ(summaries[3].memory.bytes, 7);
  EXPECT_EQ(summaries[0].against_baseline, MemoryAgainstBaseline::kEqual);
  EXPECT_EQ(summaries[1].against_baseline, MemoryAgainstBaseline::kMore);
  EXPECT_EQ(summaries[3].against_baseline, MemoryAgainstBaseline::kMore);
  EXPECT_EQ(summaries[2].fixed_at_memory, "zb-h1");
  EXPECT_EQ(summaries[1].fixed_at_memory, "zb-h1");
  EXPECT_DOUBLE_EQ(*summaries[1].speedup_at_memory, 1);
  EXPECT_DOUBLE_EQ(*summaries[0].speedup, 1);
  EXPECT_DOUBLE_EQ(*summaries[1].speedup, summaries[0].mean_ns / summaries[1].mean_ns);
  EXPECT_LE(summaries[1].speedup_interval->low, *summaries[1].speedup);
  EXPECT_GE(summaries[1].speedup_interval->high, *summaries[1].speedup);
  EXPECT_LT(summaries[1].speedup_interval->low, summaries[1].speedup_interval->high);
}

// One message in 20 is very late: launch-queue, which knows only the mean,
// comes out ahead, and must not be what others are held against.
TEST(Sweep, NothingIsHeldAgainstLaunchQueueThatMissesTheDraws) {
  const std::string text = R"({"schema": "rrfp.scenario/1", "iterations": 20,
    "pipeline": {"ranks": 8, "microbatches": 16},
    "durations": {"forward_us": 10, "backward_us": 20}, "network": {"latency_us": 1},
    "variability": [{"model": "spikes", "on": "latency", "probability": 0.05, "extra_us": 40}],
    "policies": [{"name": "eager", "hint": "1f1b", "fixed": true},
                 {"name": "queue", "hint": "1f1b", "fixed": true,
                  "network_mode": "launch-queue"}],
    "grid": {"/variability/0/model": ["spikes"]}})";
  Sweep sweep = planned(text);
  ASSERT_TRUE(run_sweep(sweep, {}).ok());
  std::vector<std::vector<PolicySummary>> summaries = summaries_of(sweep);
  EXPECT_LT(summaries[0][1].mean_ns, summaries[0][0].mean_ns);
  EXPECT_TRUE(summaries[0][1].misses_latency_draws);
  EXPECT_EQ(summaries[0][0].fixed_at_memory, "eager");
  EXPECT_EQ(summaries[0][1].fixed_at_memory, "eager");
  EXPECT_NE(describe_sweep(sweep, summaries).find("meets only the mean latency"),
            std::string::npos);

  sweep.points[0].scenario.variability.clear();
  summaries = summaries_of(sweep);
  EXPECT_EQ(summaries[0][0].fixed_at_memory, "queue") << "without draws it counts";
}

TEST(Sweep, WhatCannotRunIsNamedAndNothingIsWritten) {
  const std::string folder = test_folder();
  std::string text = small_scenario("2", "");
  text.replace(text.find("\"budget_activations\": \"zb-h1\""), 29, "\"budget_bytes\": 0");
  const std::string path = write_test_file(folder + "/a.json", text);
  const Ran ran = run_rrfp({"sweep", path, "--out", folder + "/out"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            "rrfp sweep: " + path +
                ": policy \"zb-h1, ready\", iteration 0: rank 0: budget_bytes is 0; the "
                "least that works is 1 (the largest activation of each of its stages, summed)\n");
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/out"));
  // What is in the way is told before the work.
  const std::string good = write_test_file(folder + "/good.json", small_scenario("2", kGrid));
  const Ran in_the_way = run_rrfp({"sweep", good, "--out", path});
  EXPECT_EQ(in_the_way.status, 2);
  EXPECT_NE(in_the_way.err.find("cannot make the folder"), std::string::npos) << in_the_way.err;
  const Ran endless = run_rrfp({"sweep", good, "--iterations", "10000000", "--threads", "1"});
  EXPECT_EQ(endless.status, 2);
  EXPECT_NE(endless.err.find(": 160000000 runs"), std::string::npos) << endless.err;
}

TEST(Sweep, BlockedPolicyIsTold) {
  const std::string folder = test_folder();
  std::string text = small_scenario("2", "");
  text.replace(text.find("\"hint\": \"zb-h2\", \"fixed\": true"), 30,
               "\"hint\": \"zb-h2\", \"fixed\": true, \"budget_activations\": 4");
  const std::string path = write_test_file(folder + "/a.json", text);
  const Ran ran = run_rrfp({"sweep", path});
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.out.find("2 of 2 runs blocked: `rrfp simulate --policy` says why"),
            std::string::npos)
      << ran.out;
}

// A world is the same whichever command draws it, so a run of a sweep can be
// looked at alone.
TEST(Sweep, SimulateRerunsOneIteration) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/a.json", small_scenario("3", ""));
  ASSERT_EQ(run_rrfp({"sweep", path, "--out", folder + "/out"}).status, 0);
  const std::string runs = read_test_file(folder + "/out/runs.csv");
  for (int iteration = 0; iteration < 3; ++iteration) {
    const Ran ran = run_rrfp({"simulate", path, "--policy", "zb-h1, ready", "--iteration",
                              std::to_string(iteration), "--json"});
    const Result<JsonDocument> result = parse_json(ran.out, "result");
    ASSERT_TRUE(result.ok()) << ran.err;
    const std::string row = "\n0," + std::to_string(iteration) + ",2,1," +
                            std::to_string(*result->root.find("makespan_ns")->integer()) + ",";
    EXPECT_NE(runs.find(row), std::string::npos) << row << runs;
  }
  EXPECT_EQ(run_rrfp({"simulate", path, "--policy", "zb-h3"}).err,
            "rrfp simulate: --policy: unknown \"zb-h3\"; did you mean \"zb-h1\"? Allowed: 1f1b, "
            "zb-h1, zb-h1, ready, zb-h2\n");
  EXPECT_EQ(run_rrfp({"simulate", path, "--iteration", "3"}).err,
            "rrfp simulate: --iteration: found \"3\"; expected a whole number from 0 to 2\n");
}

TEST(Sweep, ReplicasSynchroniseTheirGradients) {
  std::string text = small_scenario("4", "");
  text.insert(text.find("\"policies\""),
              "\"data_parallel\": {\"replicas\": 3, \"gradient_sync_us\": 2, "
              "\"optimizer_us\": 100}, ");
  Sweep three = planned(text);
  ASSERT_TRUE(run_sweep(three, {}).ok());
  Sweep one = planned(small_scenario("4", ""));
  ASSERT_TRUE(run_sweep(one, {}).ok());
  for (std::size_t i = 0; i < 4; ++i) {
    // Replica 0 meets the same draws; the others and the rest only add to it.
    const std::int64_t alone = one.points[0].runs[0][i].iteration_ns;
    const std::int64_t all = three.points[0].runs[0][i].iteration_ns;
    EXPECT_GE(all, alone + 102'000);
    EXPECT_GT(three.points[0].runs[0][i].busy_ns, 2 * one.points[0].runs[0][i].busy_ns);
  }
}

}  // namespace
}  // namespace rrfp
