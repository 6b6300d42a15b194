// Goal: what `rrfp export --to kineto` makes of a simulated job, `rrfp import`
// makes into the trace of that job again: ranks, microbatches, tasks, messages
// and spans to the nanosecond; with skewed clocks, within the stated error.
#include <algorithm>
#include <map>

#include "experiments/native_export.h"
#include "tests/experiments/run_for_tests.h"
#include "traces/json_reader.h"
#include "traces/profile_import.h"
#include "traces/scenario_file.h"

namespace rrfp {
namespace {

struct Job {
  std::string name;
  std::string pipeline;   ///< members of "pipeline"
  std::string durations;  ///< members of "durations"
  std::string hint;
};

std::string scenario_of(const Job& job, int replicas) {
  return R"({"schema": "rrfp.scenario/1", "name": "job", "seed": 5, "iterations": 3,
    "pipeline": {"microbatches": 6, )" +
         job.pipeline + R"(},
    "durations": {)" +
         job.durations + R"(},
    "data_parallel": {"replicas": )" +
         std::to_string(replicas) +
         R"(, "gradient_sync_us": 700, "optimizer_us": 300},
    "network": {"latency_us": 50},
    "variability": [{"model": "lognormal", "on": "compute", "cv": 0.3},
                    {"model": "lognormal", "on": "latency", "cv": 0.5}],
    "policies": [{"name": "p", "hint": ")" +
         job.hint + R"(", "fixed": true}]})";
}

/// What the job did. Receives are posted a transfer early, names of spans are
/// those of a profile, and what an optimizer waits for is a collective, as
/// export says.
std::vector<TraceRecord> truth_of(const ScenarioResolver& resolver, int iteration) {
  const Result<std::vector<TraceRecord>> records = native_records(resolver, 0, iteration);
  EXPECT_TRUE(records.ok());
  std::vector<TraceRecord> truth = *records;
  std::int64_t first_ns = std::int64_t{1} << 60;
  std::int64_t all_ready_ns = 0;
  for (TraceRecord& record : truth) {
    if (const auto* task = std::get_if<TraceTask>(&record)) {
      first_ns = std::min(first_ns, task->start_ns);
    }
    if (auto* span = std::get_if<TraceSpan>(&record)) {
      if (span->name == "gradient-sync") span->name = "nccl:_reduce_scatter_base";
      if (span->name == "optimizer") all_ready_ns = std::max(all_ready_ns, span->start_ns);
    }
  }
  std::vector<TraceSpan> waits;
  for (TraceRecord& record : truth) {
    auto* span = std::get_if<TraceSpan>(&record);
    if (span == nullptr || span->name != "optimizer") continue;
    waits.push_back(*span);
    waits.back().name = "nccl:all_reduce";
    waits.back().end_ns = span->start_ns = all_ready_ns;
  }
  truth.insert(truth.end(), waits.begin(), waits.end());
  EXPECT_EQ(first_ns, 0);
  return truth;
}

/// As text, without what a profile does not record.
std::vector<std::string> texts(const std::vector<TraceRecord>& records) {
  std::vector<std::string> all;
  const auto number = [](std::int64_t value) { return std::to_string(value) + " "; };
  for (const TraceRecord& record : records) {
    if (const auto* task = std::get_if<TraceTask>(&record)) {
      all.push_back(to_string(task->task) + " " + number(task->iteration) + number(task->replica) +
                    number(task->rank) + number(task->start_ns) + number(task->end_ns));
    } else if (const auto* message = std::get_if<TraceMessage>(&record)) {
      const std::int64_t match_ns = std::max(message->send.post_ns, message->receive.post_ns);
      all.push_back(
          std::string(1, letter(message->kind)) + " message " + number(message->iteration) +
          number(message->replica) + number(message->from_stage) + number(message->to_stage) +
          number(message->microbatch) + number(match_ns) + number(message->receive.done_ns));
    } else if (const auto* span = std::get_if<TraceSpan>(&record)) {
      all.push_back(span->name + " " + number(span->iteration) + number(span->replica) +
                    number(span->rank) + number(span->start_ns) + number(span->end_ns));
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

Result<ScenarioResolver> resolver_of(const std::string& text) {
  const Result<JsonDocument> document = parse_json(text, "scenario");
  if (!document.ok()) return document.error();
  Result<Scenario> scenario = read_scenario(*document);
  if (!scenario.ok()) return scenario.error();
  return ScenarioResolver::create(*std::move(scenario));
}

const Job kJobs[] = {
    {"1f1b", R"("ranks": 4)", R"("forward_us": 900, "backward_us": 1800)", "1f1b"},
    {"zero-bubble", R"("ranks": 4, "split_backward": true)",
     R"("forward_us": 900, "input_gradient_us": 1000, "weight_gradient_us": 800)", "zb-h2"},
    {"interleaved", R"("ranks": 2, "shape": "looped", "chunks": 3)",
     R"("forward_us": 300, "backward_us": 600)", "interleaved-1f1b"},
    {"v-shaped", R"("ranks": 3, "shape": "v", "split_backward": true)",
     R"("forward_us": 300, "input_gradient_us": 310, "weight_gradient_us": 290)", "zb-v"},
};

class ProfileRoundTrip : public ::testing::TestWithParam<Job> {};

TEST_P(ProfileRoundTrip, GivesTheTruthBack) {
  for (const int replicas : {1, 2}) {
    const Result<ScenarioResolver> resolver = resolver_of(scenario_of(GetParam(), replicas));
    ASSERT_TRUE(resolver.ok()) << resolver.error().message;
    std::vector<TraceRecord> truth;
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (TraceRecord& record : truth_of(*resolver, iteration)) truth.push_back(record);
    }
    KinetoWriterOptions written;
    written.gzip = replicas == 2;
    written.base_shift_ns = 3'600'000'000'000;
    written.cpu_operators = 3;
    const std::string folder = test_folder();
    ASSERT_TRUE(export_kineto(*resolver, 0, folder, written).ok());
    ProfileImportOptions options;
    options.layout.replicas = replicas;
    const Result<ProfileImport> imported = import_kineto(folder, options);
    ASSERT_TRUE(imported.ok()) << imported.error().message;
    EXPECT_EQ(texts(imported->records), texts(truth));
    std::map<std::pair<std::string, std::string>, int> members;
    for (const TraceRecord& record : imported->records) {
      const auto* span = std::get_if<TraceSpan>(&record);
      if (span != nullptr && span->iteration == 1) ++members[{span->name, span->group}];
    }
    const int world = replicas * resolver->program().ranks();
    for (const auto& [collective, count] : members) {
      const bool alone = collective.second.empty();
      EXPECT_EQ(alone, collective.first == "optimizer");
      EXPECT_EQ(count, alone || collective.first == "nccl:all_reduce" ? world : replicas)
          << collective.first << " " << collective.second;
    }
    EXPECT_EQ(imported->report.dropped.total(), 0);
    EXPECT_TRUE(imported->report.notes.empty());
    EXPECT_FALSE(imported->report.clocks_moved);
    EXPECT_EQ(imported->header.replicas, replicas);
    const Program& program = imported->header.program;
    ASSERT_EQ(program.stages(), resolver->program().stages());
    EXPECT_EQ(program.ranks(), resolver->program().ranks());
    EXPECT_EQ(program.microbatches(), 6);
    EXPECT_EQ(program.split_backward(), resolver->program().split_backward());
    for (int stage = 0; stage < program.stages(); ++stage) {
      EXPECT_EQ(program.rank_of(stage), resolver->program().rank_of(stage));
    }
  }
}

TEST_P(ProfileRoundTrip, SkewedClocksComeTogetherWithinTheStatedError) {
  const Result<ScenarioResolver> resolver = resolver_of(scenario_of(GetParam(), 1));
  ASSERT_TRUE(resolver.ok()) << resolver.error().message;
  KinetoWriterOptions written;
  written.clock_skew_ns = 50'000'000;
  const std::string folder = test_folder();
  ASSERT_TRUE(export_kineto(*resolver, 0, folder, written).ok());
  const Result<ProfileImport> imported = import_kineto(folder, {});
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_TRUE(imported->report.clocks_moved);
  std::int64_t worst_ns = 0;
  for (const ProcessClock& clock : imported->header.clocks) {
    worst_ns = std::max(worst_ns, clock.error_ns);
  }
  EXPECT_GT(worst_ns, 0);
  EXPECT_LT(worst_ns, 1'000'000);  // 50 ms of skew come down to this
  std::map<std::pair<int, Task>, std::int64_t> truth;
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (const TraceRecord& record : truth_of(*resolver, iteration)) {
      const auto* task = std::get_if<TraceTask>(&record);
      if (task != nullptr) truth[{iteration, task->task}] = task->start_ns;
    }
  }
  std::size_t tasks = 0;
  for (const TraceRecord& record : imported->records) {
    const auto* task = std::get_if<TraceTask>(&record);
    if (task == nullptr) continue;
    ++tasks;
    // The origin of an iteration is itself known to within the error.
    EXPECT_LE(std::abs(task->start_ns - truth.at({task->iteration, task->task})), 2 * worst_ns)
        << to_string(task->task);
  }
  EXPECT_EQ(tasks, truth.size());
}

INSTANTIATE_TEST_SUITE_P(All, ProfileRoundTrip, ::testing::ValuesIn(kJobs), [](const auto& job) {
  std::string name = job.param.name;
  std::erase(name, '-');
  return name;
});

TEST(ProfileCommands, MegatronNamesPairBySequence) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/job.json", scenario_of(kJobs[0], 1));
  const Ran exported = run_rrfp({"export", "--to", "kineto", "--names", "megatron", "--gzip",
                                 scenario, folder + "/profiles"});
  ASSERT_EQ(exported.status, 0) << exported.err;
  EXPECT_TRUE(std::filesystem::exists(folder + "/profiles/rank3.json.gz"));
  const std::string trace = folder + "/job.jsonl";
  const Ran imported = run_rrfp({"import", "--from", "kineto", folder + "/profiles", trace});
  ASSERT_EQ(imported.status, 0) << imported.err;
  for (const char* part :
       {"4 ranks, 4 stages, 6 microbatches", "3 iterations, 108 messages",
        "no annotation names a stage", "4 ranks: no microbatch in the names", "right to within"}) {
    EXPECT_NE(imported.out.find(part), std::string::npos) << imported.out << part;
  }
  EXPECT_EQ(imported.out.find("dropped"), std::string::npos) << imported.out;
  const Ran native = run_rrfp({"export", scenario, folder + "/truth.jsonl"});
  ASSERT_EQ(native.status, 0) << native.err;
  const auto lengths = [](const std::string& info) {
    const std::size_t first = info.find("\nB  ");
    std::string table = info.substr(first, info.find("F transfer") - first);
    const auto last = std::unique(table.begin(), table.end(),
                                  [](char a, char b) { return a == ' ' && b == ' '; });
    table.erase(last, table.end());  // columns are as wide as other rows need
    return table;
  };
  EXPECT_EQ(lengths(run_rrfp({"info", trace}).out),
            lengths(run_rrfp({"info", folder + "/truth.jsonl"}).out));
}

// Without stages in the names, 4 stages on 2 replicas must not pass for 8 stages.
TEST(ProfileCommands, ReplicasOfMegatronAreNotTakenForStages) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/job.json", scenario_of(kJobs[0], 2));
  ASSERT_EQ(
      run_rrfp({"export", "--to", "kineto", "--names", "megatron", scenario, folder + "/profiles"})
          .status,
      0);
  std::vector<std::string> import = {"import", "--from", "kineto", folder + "/profiles",
                                     folder + "/job.jsonl"};
  const Ran asked = run_rrfp(import);
  EXPECT_EQ(asked.status, 2);
  EXPECT_NE(asked.err.find("2 ranks run each stage (rank 6 has messages as rank 3 of its "
                           "pipeline): give --dp 2 where they are replicas"),
            std::string::npos)
      << asked.err;
  EXPECT_FALSE(std::filesystem::exists(folder + "/job.jsonl"));
  import.insert(import.end(), {"--dp", "2"});
  const Ran imported = run_rrfp(import);
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_NE(imported.out.find("4 ranks, 4 stages, 6 microbatches, 2 replicas"), std::string::npos)
      << imported.out;
}

// A width that is not the job's would drop every message: where stages are named it is refused.
TEST(ProfileCommands, AWidthThatDoesNotFitIsRefusedWithTheOneThatDoes) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/job.json", scenario_of(kJobs[0], 2));
  ASSERT_EQ(run_rrfp({"export", "--to", "kineto", scenario, folder + "/profiles"}).status, 0);
  const std::string advice = "2 ranks run each stage: give --dp 2 where they are replicas, --tp 2";
  const std::string out = folder + "/job.jsonl";
  const std::vector<std::vector<std::string>> all = {
      {"--dp", "4"}, {"--dp", "8"}, {"--tp", "4"}, {"--dp", "2", "--tp", "2"}, {"--dp", "1"}, {}};
  for (const std::vector<std::string>& given : all) {
    std::vector<std::string> import = {"import", "--from", "kineto", folder + "/profiles", out};
    import.insert(import.end(), given.begin(), given.end());
    const Ran refused = run_rrfp(import);
    EXPECT_EQ(refused.status, 2);
    EXPECT_TRUE(has(refused.err, advice)) << refused.err;
    EXPECT_TRUE(has(refused.err, given.empty() ? "neither --dp nor --tp was" : "--dp x --tp is "));
    EXPECT_TRUE(absent(out));
  }
  const Ran fits = run_rrfp({"import", "--from", "kineto", folder + "/profiles", out, "--dp", "2"});
  EXPECT_EQ(fits.status, 0) << fits.err;
  EXPECT_FALSE(has(fits.out, "warning")) << fits.out;
}

// Where none is named, what is given counts, and a trace without messages is warned of.
TEST(ProfileCommands, ATraceThatLostItsMessagesIsWarnedOf) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/job.json", scenario_of(kJobs[0], 2));
  ASSERT_EQ(
      run_rrfp({"export", "--to", "kineto", "--names", "megatron", scenario, folder + "/profiles"})
          .status,
      0);
  const Ran lost = run_rrfp({"import", "--from", "kineto", "--dp", "4", "--tp", "1",
                             folder + "/profiles", folder + "/job.jsonl"});
  EXPECT_EQ(lost.status, 0) << lost.err;
  EXPECT_TRUE(has(lost.out, "\nwarning: none of ")) << lost.out;
  EXPECT_TRUE(has(lost.out, "By messages, 2 ranks run each stage (rank 6 has")) << lost.out;
}

// Without the files of its last ranks a job looks like a whole pipeline of fewer stages, and nobody
// would notice.
TEST(ProfileCommands, AnIncompleteFolderIsRefused) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/job.json", scenario_of(kJobs[0], 2));
  const std::string profiles = folder + "/profiles";
  ASSERT_EQ(run_rrfp({"export", "--to", "kineto", scenario, profiles}).status, 0);
  const std::string trace = folder + "/job.jsonl";
  const auto import = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"import", "--from", "kineto", "--dp",
                                          "2",      profiles, trace};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_rrfp(arguments);
  };
  const auto remove = [&](int rank) {
    ASSERT_TRUE(std::filesystem::remove(profiles + "/rank" + std::to_string(rank) + ".json"));
  };
  remove(6);
  const Ran one = import({});
  EXPECT_EQ(one.status, 2) << one.out;
  EXPECT_TRUE(has(one.err, "files of 7 of 8 ranks; rank 6 has none (world_size of " + profiles +
                               "/rank0.json): bring them as well, or give --allow-missing"))
      << one.err;
  remove(7);
  const Ran last = import({});
  EXPECT_EQ(last.status, 2) << last.out;
  EXPECT_TRUE(has(last.err, "files of 6 of 8 ranks; ranks 6, 7 have none")) << last.err;
  EXPECT_TRUE(absent(trace));
  const Ran part = import({"--allow-missing"});
  EXPECT_EQ(part.status, 0) << part.err;
  EXPECT_TRUE(part.out.starts_with("note: files of 6 of 8 ranks; ranks 6, 7 have none"))
      << part.out;
  EXPECT_TRUE(has(part.out, "3 ranks, 3 stages")) << part.out;

  ASSERT_TRUE(std::filesystem::remove(trace));
  remove(2);
  remove(3);
  const Ran middle = import({});
  EXPECT_EQ(middle.status, 2) << middle.out;
  EXPECT_TRUE(has(middle.err, "files of 4 of 8 ranks; ranks 2, 3, 6, 7 have none")) << middle.err;
  const Ran single = run_rrfp({"import", "--from", "kineto", profiles + "/rank0.json", trace});
  EXPECT_EQ(single.status, 0) << single.err;
  EXPECT_TRUE(single.out.starts_with("note: files of 1 of 8 ranks; ranks 1, 2, 3, 4, 5, 6, 7"))
      << single.out;
}

// Ranks of a larger job that stayed there would be read as ranks of this one.
TEST(ProfileCommands, ExportLeavesNoRanksOfALargerJob) {
  const std::string folder = test_folder();
  const std::string scenario = write_test_file(folder + "/job.json", scenario_of(kJobs[1], 1));
  const std::string out = folder + "/out";
  const std::vector<std::string> command = {"export", "--to", "kineto", scenario, out};
  ASSERT_EQ(run_rrfp(command).status, 0);
  EXPECT_EQ(run_rrfp(command).status, 0) << "its own files are replaced";
  const std::string first = read_test_file(out + "/rank0.json");
  for (const char* stale : {"/rank64.json", "/rank00.json", "/rank0.json.gz"}) {
    write_test_file(out + stale, "mine");
    const Ran ran = run_rrfp(command);
    EXPECT_EQ(ran.status, 2) << stale;
    EXPECT_TRUE(has(ran.err, out + ": holds " + (stale + 1) + " of another export")) << ran.err;
    EXPECT_EQ(read_test_file(out + stale), "mine");
    EXPECT_EQ(read_test_file(out + "/rank0.json"), first);
    std::filesystem::remove(out + stale);
  }
  EXPECT_EQ(run_rrfp(command).status, 0);
}

TEST(ProfileCommands, WrongExportsSayWhatIsAllowed) {
  const std::string folder = test_folder();
  const std::string split = write_test_file(folder + "/split.json", scenario_of(kJobs[1], 1));
  struct Wrong {
    std::vector<std::string> arguments;
    std::string message;
  };
  const std::string out = folder + "/out";
  const std::string kept = write_test_file(folder + "/kept", "mine");
  for (const Wrong& wrong :
       {Wrong{{"export", "--gzip", split, out}, "--gzip needs --to kineto"},
        Wrong{{"export", "--to", "kineto", "--names", "megatron", split, out},
              "Megatron's names tell neither"},
        Wrong{{"export", "--to", "kineto", split, split}, "split.json is what FILE reads"},
        Wrong{{"export", "--to", "kineto", split, kept}, "kept: cannot be made"},
        Wrong{{"export", split, folder}, folder + ": cannot write: is a directory; give a file"},
        Wrong{{"export", "--to", "perfetto", split, folder}, "is a directory; give a file"}}) {
    const Ran ran = run_rrfp(wrong.arguments);
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_NE(ran.err.find(wrong.message), std::string::npos) << ran.err;
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace rrfp
