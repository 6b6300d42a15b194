// Goal: `rrfp simulate` prints exactly what a run did, for people and for
// programs, and says what waits for what where it blocks.
#include <algorithm>

#include "tests/experiments/run_for_tests.h"
#include "traces/json_reader.h"

namespace rrfp {
namespace {

// Two ranks, two microbatches, 1f1b: small enough to check by hand. F takes
// 100 ns and B 200 ns, a message 10 ns.
std::string two_ranks(const std::string& more) {
  return R"({"schema": "rrfp.case/1", "name": "two",
    "pipeline": {"ranks": 2, "microbatches": 2, "split_backward": false,
      "stages": [{"rank": 0, "predecessors": []}, {"rank": 1, "predecessors": [0]}]},
    "durations_ns": {"F": [[100, 100], [100, 100]], "B": [[200, 200], [200, 200]]},)" +
         more + "}";
}

const char* const kEager =
    R"("network": {"mode": "eager", "latency_ns": [{"kind": "F", "from": 0, "to": 1, "ns": [10, 10]},
                               {"kind": "B", "from": 1, "to": 0, "ns": [10, 10]}]},
       "memory": {"activation_bytes": [[3000, 3000], [3000, 3000]]},
       "policy": {"hint": {"name": "1f1b"}, "window": 1})";

const char* const kBlocking =
    R"("policy": {"window": 1, "hint": {"order": [["0F0", "0B0", "0F1", "0B1"],
                                                  ["1F1", "1B1", "1F0", "1B0"]]}})";

TEST(Simulate, TableForPeople) {
  const std::string path = write_test_file(test_folder() + "/two.json", two_ranks(kEager));
  const Ran ran = run_rrfp({"simulate", path});
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.status, 0);
  // Rank 0: F0 0-100, F1 100-200, B0 410+10=420-620, B1 720+... of rank 1:
  // F0 110-210, B0 210-410, F1 410-510, B1 510-710; B1 on rank 0 is 720-920.
  EXPECT_EQ(ran.out,
            "two: 2 ranks, 2 stages, 2 microbatches\n"
            "policy: 1f1b as a fixed order (window 1)\n"
            "network: eager\n"
            "\n"
            "rank  tasks  busy [ns]    busy  idle [ns]  drain  fill  communication  upstream  "
            "peak memory [B]  peak inbox [B]\n"
            "0         4        600  65.2 %        320      0     0             20       300  "
            "           6000               0\n"
            "1         4        600  65.2 %        320    210   110              0         0  "
            "           3000               0\n" +
                std::string(112, '-') +
                "\n"
                "all       8       1200  65.2 %        640    210   110             20       300  "
                "           6000               0\n"
                "\n"
                "makespan 920 ns, idle 34.8 %\n");
}

TEST(Simulate, AnOrderIsShownUnderItsNameOrAsGiven) {
  for (const auto& [called, shown] :
       {std::pair("", "policy: the given order as a fixed order (window 1)\n"),
        std::pair(R"(, "called": "bf")", "policy: bf as a fixed order (window 1)\n"),
        std::pair(R"(, "called": "my own")", "policy: my own as a fixed order (window 1)\n")}) {
    const std::string policy =
        R"("policy": {"window": 1, "hint": {"order": [["0F0", "0F1", "0B0", "0B1"],
                                                      ["1F0", "1B0", "1F1", "1B1"]])" +
        std::string(called) + "}}";
    const Ran ran =
        run_rrfp({"simulate", write_test_file(test_folder() + "/two.json", two_ranks(policy))});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_NE(ran.out.find(shown), std::string::npos) << ran.out;
  }
}

TEST(Simulate, JsonForPrograms) {
  const std::string path = write_test_file(test_folder() + "/two.json", two_ranks(kEager));
  const Ran ran = run_rrfp({"simulate", path, "--json"});
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out,
            R"({"schema":"rrfp.result/1","completed":true,"makespan_ns":920,"ranks":[)"
            R"({"order":["0F0","0F1","0B0","0B1"],"start_ns":[0,100,420,720],)"
            R"("end_ns":[100,200,620,920],"busy_ns":600,"peak_bytes":6000,"peak_inbox_bytes":0,)"
            R"("idle_ns":{"communication":20,"upstream":300}},)"
            R"({"order":["1F0","1B0","1F1","1B1"],"start_ns":[110,210,410,510],)"
            R"("end_ns":[210,410,510,710],"busy_ns":600,"peak_bytes":3000,"peak_inbox_bytes":0,)"
            R"("idle_ns":{"drain":210,"fill":110}}]})"
            "\n");
}

TEST(Simulate, BlockedRunSaysWhatWaitsForWhat) {
  const std::string path = write_test_file(test_folder() + "/b.json", two_ranks(kBlocking));
  const Ran ran = run_rrfp({"simulate", path});
  EXPECT_EQ(ran.status, 3);
  EXPECT_EQ(ran.err, "");
  EXPECT_NE(ran.out.find("blocked: no task can start any more\n"
                         "  rank 0: 0B0 waits for 1B0 (rank 1, behind 1F1)\n"
                         "  rank 1: 1F1 waits for 0F1 (rank 0, behind 0B0)\n"),
            std::string::npos)
      << ran.out;
  const Ran json = run_rrfp({"simulate", path, "--json"});
  EXPECT_EQ(json.status, 3);
  EXPECT_NE(json.out.find(R"("completed":false,"makespan_ns":100,"blocked":["0B0","1F1"])"),
            std::string::npos)
      << json.out;
}

TEST(Simulate, FixedOrderThatNeedsMoreMemoryNamesTheMemory) {
  const std::string path = write_test_file(
      test_folder() + "/m.json",
      two_ranks(R"("memory": {"activation_bytes": [[3, 3], [3, 3]], "budget_bytes": [5, null]},
                   "policy": {"hint": {"name": "1f1b"}, "window": 1})"));
  const Ran ran = run_rrfp({"simulate", path});
  EXPECT_EQ(ran.status, 3);
  EXPECT_NE(ran.out.find("rank 0: 0F1 waits for memory: it takes 3 bytes, the budget of the rank "
                         "is 5 bytes"),
            std::string::npos)
      << ran.out;
}

TEST(Simulate, NetworkModesSideBySide) {
  const std::string path = write_test_file(
      test_folder() + "/two.json",
      two_ranks(R"("network": {"latency_ns": [{"kind": "F", "from": 0, "to": 1, "ns": [10, 10]},
                                              {"kind": "B", "from": 1, "to": 0, "ns": [10, 10]}]},
                   "policy": {"hint": {"name": "1f1b"}})"));
  const Ran ran = run_rrfp({"simulate", path, "--network", "eager,rendezvous"});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.out.find("eager         none            920          1.000"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("note: rendezvous runs a pre-committed order, so the hint is run as a "
                         "fixed order (window 1)\n"),
            std::string::npos)
      << ran.out;
  const Ran both = run_rrfp({"simulate", path, "--network", "eager,rendezvous", "--json"});
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(both.err, "rrfp simulate: --json takes one run; found 2 modes in --network\n");
}

// 1f1b of two ranks under launch-queue, from a file that states latency and
// bandwidth: a message costs what it costs in the other modes, on average.
TEST(Simulate, LaunchQueueOfAnotherModesFileTakesTheMeanTransfer) {
  const std::string folder = test_folder();
  const auto run = [&folder](const std::string& network, bool override) {
    const std::string path = write_test_file(
        folder + "/m.json", two_ranks(R"("policy": {"hint": {"name": "1f1b"}, "window": 1},
                                         "network": {)" +
                                      network + "}"));
    std::vector<std::string> words = {"simulate", path, "--json"};
    if (override) words.insert(words.end(), {"--network", "launch-queue"});
    const Ran ran = run_rrfp(words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    return ran;
  };
  const auto note = [](const char* ns) {
    return std::string("note: launch-queue: message_ns ") + ns +
           " from the mean transfer, since the file gives none\n";
  };
  // 3 bytes at 1 GB/s take 3 ns, 2 bytes 2 ns; latencies are 10 and 21, and 30
  // and 40 where 35 was expected: (13 + 23 + 37 + 37) / 4 = 27.5.
  const std::string links = R"("bytes_per_second": 1000000000,
      "message_bytes": {"F": [[3, 2], [0, 0]], "B": [[0, 0], [2, 2]]},
      "latency_ns": [{"kind": "F", "from": 0, "to": 1, "ns": [10, 21]},
                     {"kind": "B", "from": 1, "to": 0, "ns": [30, 40]}],
      "expected_latency_ns": [{"kind": "B", "from": 1, "to": 0, "ns": [35, 35]}])";
  const Ran derived = run(links, true);
  EXPECT_EQ(derived.err, note("28"));
  const Ran stated = run(R"("mode": "launch-queue", "message_ns": 28)", false);
  EXPECT_EQ(stated.err, "");
  EXPECT_EQ(derived.out, stated.out);

  // What is stated counts, 0 too; and absent is 0 in a launch-queue case.
  const Ran free = run(R"("mode": "launch-queue")", false);
  EXPECT_NE(free.out, stated.out);
  EXPECT_EQ(free.err, "");
  EXPECT_EQ(run(links + R"(, "message_ns": 28)", true).out, stated.out);
  EXPECT_EQ(run(links + R"(, "message_ns": 28)", true).err, "");
  EXPECT_EQ(run(links + R"(, "message_ns": 0)", true).out, free.out);
  EXPECT_EQ(run(links + R"(, "mode": "launch-queue")", true).out, free.out);
  EXPECT_EQ(run(links + R"(, "mode": "rendezvous")", true).err, note("28"));
}

TEST(Simulate, LaunchQueuePolicyOfAScenarioSaysWhatItsMessagesTake) {
  const std::string folder = test_folder();
  const std::string text = R"({"schema": "rrfp.scenario/1",
    "pipeline": {"ranks": 2, "microbatches": 2}, "durations": {"forward_ns": 100, "backward_ns": 200},
    "network": {"latency_ns": 10},
    "policies": [{"name": "queue", "hint": "1f1b", "fixed": true, "network_mode": "launch-queue"}]})";
  const std::string path = write_test_file(folder + "/s.json", text);
  const Ran ran = run_rrfp({"simulate", path});
  EXPECT_EQ(ran.status, 0);
  EXPECT_NE(ran.out.find("note: launch-queue: message_ns 10 from the mean transfer"),
            std::string::npos)
      << ran.out;
  EXPECT_NE(run_rrfp({"sweep", path}).out.find("note: launch-queue: message_ns 10 from the mean"),
            std::string::npos);
  EXPECT_EQ(run_rrfp({"simulate", path, "--network", "eager"}).out.find("message_ns"),
            std::string::npos);
}

TEST(Simulate, TimelineHoldsEveryTaskMessageAndCounter) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/two.json", two_ranks(kEager));
  const std::string trace = folder + "/two.trace.json";
  ASSERT_EQ(run_rrfp({"simulate", path, "--trace", trace}).status, 0);
  const Result<JsonDocument> document = read_json_file(trace);
  ASSERT_TRUE(document.ok()) << document.error().message;
  std::vector<std::string> slices;
  int starts = 0;
  int ends = 0;
  std::int64_t most = 0;
  std::int64_t last = -1;
  for (const JsonValue& event : *document->root.find("traceEvents")->array()) {
    const std::string& phase = *event.find("ph")->string();
    if (phase == "X") {
      slices.push_back(*event.find("name")->string() + " " + event.find("ts")->decimal()->text +
                       " " + event.find("dur")->decimal()->text + " " +
                       std::to_string(*event.find("tid")->integer()));
    }
    starts += phase == "s";
    ends += phase == "f";
    if (phase == "C") {
      last = *event.find("args")->find("bytes")->integer();
      most = std::max(most, last);
    }
  }
  EXPECT_EQ(slices,
            (std::vector<std::string>{"0F0 0.000 0.100 0", "0F1 0.100 0.100 0", "0B0 0.420 0.200 0",
                                      "0B1 0.720 0.200 0", "1F0 0.110 0.100 1", "1B0 0.210 0.200 1",
                                      "1F1 0.410 0.100 1", "1B1 0.510 0.200 1"}));
  EXPECT_EQ(starts, 4);
  EXPECT_EQ(ends, 4);
  EXPECT_EQ(most, 6000);
  EXPECT_EQ(last, 0) << "all memory is given back at the end";
}

// In every case the counter's highest value is the peak that the result names.
TEST(Simulate, TimelineMemoryPeaksAsTheResultSays) {
  const std::string folder = test_folder();
  for (const char* name : {"diamond-oldest-first", "frozen-encoder-lanes", "anticipating-zb",
                           "three-chunks", "hill-arranged", "windowed-leader"}) {
    const std::string trace = folder + "/trace.json";
    ASSERT_EQ(run_rrfp({"simulate", own_case(name), "--trace", trace}).status, 0) << name;
    const Ran ran = run_rrfp({"simulate", own_case(name), "--json"});
    const Result<JsonDocument> result = parse_json(ran.out, "result");
    const Result<JsonDocument> document = read_json_file(trace);
    ASSERT_TRUE(document.ok());
    const JsonArray& ranks = *result->root.find("ranks")->array();
    std::vector<std::int64_t> peaks(ranks.size(), 0);
    for (const JsonValue& event : *document->root.find("traceEvents")->array()) {
      if (*event.find("ph")->string() != "C") continue;
      const JsonValue* bytes = event.find("args")->find("bytes");
      if (bytes == nullptr) bytes = event.find("args")->find("count");
      std::int64_t& peak = peaks[static_cast<std::size_t>(*event.find("tid")->integer())];
      peak = std::max(peak, *bytes->integer());
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      EXPECT_EQ(peaks[rank], *ranks[rank].find("peak_bytes")->integer()) << name << rank;
    }
  }
}

TEST(Simulate, InputThatIsWrongNamesFileAndField) {
  const std::string folder = test_folder();
  const auto error_of = [&folder](const std::string& text) {
    const Ran ran = run_rrfp({"simulate", write_test_file(folder + "/x.json", text)});
    EXPECT_EQ(ran.status, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    return ran.err;
  };
  EXPECT_NE(error_of("[1]").find("/x.json: found an array of 1; expected an object"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"schema": "rrfp.caes/1"})").find("/schema: found \"rrfp.caes/1\""),
            std::string::npos);
  EXPECT_NE(error_of("{}").find("the key \"schema\" is missing"), std::string::npos);
  EXPECT_NE(error_of("// no\n" + two_ranks(kEager)).find("x.json"), std::string::npos)
      << "a case takes no comments";
  const std::string small =
      two_ranks(R"("memory": {"activation_bytes": [[3, 3], [3, 3]], "budget_bytes": [2, null]})");
  EXPECT_NE(error_of(small).find("/x.json: rank 0: budget_bytes is 2; the least that works is 3"),
            std::string::npos);
  EXPECT_EQ(run_rrfp({"simulate", folder + "/absent.json"}).err,
            "rrfp simulate: " + folder + "/absent.json: cannot read: No such file or directory\n");
  const std::string big(std::size_t{2} << 20, ' ');
  const std::string path = write_test_file(folder + "/big.json", big);
  EXPECT_EQ(run_rrfp({"simulate", path, "--max-file-mb", "1"}).err,
            "rrfp simulate: " + path +
                ": larger than the limit of 1048576 bytes; raise the limit to read it with "
                "--max-file-mb\n");
}

TEST(Simulate, TraceThatCannotBeWrittenIsAnErrorAndLeavesNothing) {
  const std::string folder = test_folder();
  const std::string path = write_test_file(folder + "/two.json", two_ranks(kEager));
  const Ran ran = run_rrfp({"simulate", path, "--trace", folder + "/absent/trace.json"});
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("absent/trace.json"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace rrfp
