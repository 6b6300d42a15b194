// Goal: `rrfp info` and `rrfp import` say what a file holds, what was used and
// what was dropped and why; a damaged file is one message that names the place.
#include <algorithm>

#include "tests/experiments/run_for_tests.h"
#include "traces/trace_source.h"

namespace rrfp {
namespace {

constexpr std::string_view kColumns =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

/// Two stages, one microbatch, with a receive that nobody sends.
std::string small_csv() {
  return std::string(kColumns) +
         "0,0,0,5,forward-compute,0.0,0.010,0,0,0,0\n"
         "0,0,0,5,forward-send,0.010,0.002,0,-1,-1,-1\n"
         "0,1,1,5,forward-recv,0.001,0.011,0,-1,-1,-1\n"
         "0,1,1,5,forward-compute,0.013,0.010,0,0,0,0\n"
         "0,1,1,5,backward-compute,0.023,0.020,0,0,0,0\n"
         "0,1,1,5,backward-send,0.043,0.001,0,-1,-1,-1\n"
         "0,0,0,5,backward-recv,0.012,0.032,0,-1,-1,-1\n"
         "0,0,0,5,backward-compute,0.045,0.020,0,0,0,0\n"
         "0,1,1,5,forward-recv,0.060,0.001,7,-1,-1,-1\n";
}

TEST(InfoAndImport, StragglerCsvBecomesATraceThatInfoReads) {
  const std::string folder = test_folder();
  const std::string csv = write_test_file(folder + "/job.csv", small_csv());
  const std::string trace = folder + "/job.jsonl.zst";
  const Ran imported = run_rrfp({"import", "--from", "straggler-csv", csv, trace});
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_TRUE(has(imported.out, "2 ranks, 2 stages, 1 microbatch, 1 replica")) << imported.out;
  EXPECT_TRUE(has(imported.out, "used 8 of 9 rows")) << imported.out;
  EXPECT_TRUE(has(imported.out, "dropped 1 row:\n  1  forward-recv")) << imported.out;

  for (const std::string& file : {trace, csv}) {
    const Ran info = run_rrfp({"info", file});
    ASSERT_EQ(info.status, 0) << info.err;
    EXPECT_TRUE(has(info.out, "1 iteration, 5 to 5; mean 65.000 ms")) << info.out;
    EXPECT_TRUE(has(info.out, "4 tasks, 2 messages, 0 spans")) << info.out;
    EXPECT_TRUE(has(info.out, "clocks: one for all")) << info.out;
    EXPECT_EQ(has(info.out, "dropped 1 row"), file == csv) << info.out;
  }
}

TEST(InfoAndImport, InfoListsGapsAndOddities) {
  const std::string folder = test_folder();
  const std::string csv =
      write_test_file(folder + "/odd.csv", std::string(kColumns) +
                                               "0,0,0,5,forward-compute,0.0,0.010,0,0,0,0\n"
                                               "0,0,0,5,forward-compute,0.005,0.010,1,0,1,0\n"
                                               "0,0,0,5,backward-compute,0.040,0.010,0,0,0,0\n"
                                               "0,0,0,9,forward-compute,0.0,0.010,0,0,0,0\n"
                                               "0,0,0,9,forward-compute,0.010,0.010,1,0,1,0\n"
                                               "0,0,0,9,backward-compute,0.020,0.010,0,0,0,0\n"
                                               "0,0,0,9,backward-compute,0.030,0.010,1,0,1,0\n");
  const Ran info = run_rrfp({"info", csv});
  ASSERT_EQ(info.status, 0) << info.err;
  EXPECT_TRUE(has(info.out, "2 iterations, 5 to 9, 3 between them not recorded")) << info.out;
  EXPECT_TRUE(
      has(info.out, "1  two records overlap on a device (first: iteration 5, replica 0, 0F1)"))
      << info.out;
  EXPECT_TRUE(has(info.out, "1  an iteration lacks tasks (first: iteration 5: holds 3 of 4)"))
      << info.out;
  // 65 ms in tasks, 25 ms gap between 15 and 40 ms.
  EXPECT_TRUE(has(info.out, "25.000")) << info.out;
}

TEST(InfoAndImport, MegatronLogsBecomeSumsPerIteration) {
  const std::string folder = test_folder();
  const std::string log = write_test_file(
      folder + "/train.log",
      "building GPT model ...\n"
      "    stray ...............................: (1.00, 2.00)\n"
      "[rank3]:  [2024-05-01 10:00:00] iteration        1/     100 | consumed samples: 8 | "
      "elapsed time per iteration (ms): 100.5 | learning rate: 1E-4 |\n"
      "(min, max) time across ranks (ms):\n"
      "    forward-backward ...............................: (90.00, 95.25)\n"
      "    optimizer ......................................: (nan, 4.00)\n"
      "    batch-generator ................................: (1.00, 2.00\n"
      "validation loss at iteration 1 ...\n"
      " iteration        2/     100 | elapsed time per iteration (ms): nan | loss: nan |\n"
      "(min, max) time across ranks (ms):\n"
      "    forward-backward ...............................: (90.00, 95.25)\n"
      " iteration        3/     100 | elapsed time per iteration (ms): 110 | loss: nan |\n"
      " iteration        1/     100 | elapsed time per iteration (ms): 99 |\n"
      " iteration  4/ 100 | elapsed time per iteration (ms): -1 |\n");
  const std::string trace = folder + "/train.jsonl";
  const Ran imported = run_rrfp({"import", "--from", "megatron-log", log, trace});
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_TRUE(has(imported.out, "used 2 iterations and 1 timer of 14 lines")) << imported.out;
  EXPECT_TRUE(has(imported.out, "dropped 7 lines:")) << imported.out;
  EXPECT_TRUE(has(imported.out,
                  "2  a timer whose times are not (min, max), two numbers of at least 0 (first: "
                  "line 6)"))
      << imported.out;
  EXPECT_TRUE(
      has(imported.out, "2  an iteration whose time is no number of at least 0 (first: line 9)"))
      << imported.out;
  EXPECT_TRUE(has(imported.out,
                  "1  a timer without an iteration before it that could be used (first: line 11)"))
      << imported.out;
  EXPECT_TRUE(has(imported.out, "1  an iteration that was logged before (first: line 13)"))
      << imported.out;

  Result<OpenedTrace> opened = open_trace(trace);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  TraceStep step;
  ASSERT_TRUE(*opened->source->next(&step));
  ASSERT_EQ(step.spans.size(), 3U);
  EXPECT_EQ(step.spans[0].name, "iteration");
  EXPECT_EQ(step.spans[0].end_ns, 100'500'000);
  EXPECT_EQ(step.spans[2].name, "forward-backward max");
  EXPECT_EQ(step.spans[2].end_ns, 95'250'000);
  const Ran info = run_rrfp({"info", trace});
  EXPECT_TRUE(has(info.out, "no tasks, only sums per iteration: it cannot be replayed"))
      << info.out;
  EXPECT_TRUE(has(info.out, "iteration                 2    105.250  100.500  110.000"))
      << info.out;
}

TEST(InfoAndImport, TorchSchedulesAreCheckedAndBecomeCasesOrPlainCells) {
  const std::string folder = test_folder();
  const std::string csv =
      write_test_file(folder + "/order.csv",
                      "0F0,0SEND_F0,,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD\n");
  const Ran plain = run_rrfp({"import", "--from", "torch-csv", csv, folder + "/plain.csv"});
  ASSERT_EQ(plain.status, 0) << plain.err;
  EXPECT_EQ(read_test_file(folder + "/plain.csv"), "0F0,0B0\n1F0,1B0\n");
  EXPECT_TRUE(has(plain.out, "used 2 F, 2 B\ndropped 4 SEND and RECV cells")) << plain.out;
  EXPECT_TRUE(has(plain.out, "dropped 1 UNSHARD, RESHARD and REDUCE_GRAD")) << plain.out;
  EXPECT_TRUE(has(plain.out, "dropped 1 idle slots")) << plain.out;
  const Ran made = run_rrfp({"import", "--from", "torch-csv", csv, folder + "/case.json"});
  ASSERT_EQ(made.status, 0) << made.err;
  const Ran simulated = run_rrfp({"simulate", folder + "/case.json"});
  EXPECT_EQ(simulated.status, 0) << simulated.err;
  EXPECT_TRUE(has(simulated.out, "(6000000 ns)")) << simulated.out;
  EXPECT_TRUE(has(made.out, "kept 4 SEND and RECV cells")) << made.out;
  EXPECT_TRUE(has(read_test_file(folder + "/case.json"), "\"0F0\", \"0SEND_F0\", \"0RECV_B0\""))
      << read_test_file(folder + "/case.json");

  const std::string cyclic = write_test_file(folder + "/cyclic.csv", "0B0,0F0\n1F0,1B0\n");
  const Ran blocked = run_rrfp({"import", "--from", "torch-csv", cyclic, folder + "/x.csv"});
  EXPECT_EQ(blocked.status, 2);
  EXPECT_TRUE(has(blocked.err, "cyclic.csv: ")) << blocked.err;
}

// Neither a result that somebody keeps nor the input itself is overwritten, and
// what cannot be written is said before the input is read.
TEST(Import, WritesOnlyAFileThatDidNotExist) {
  const std::string folder = test_folder();
  const std::string csv = write_test_file(folder + "/job.csv", small_csv());
  const std::string kept = write_test_file(folder + "/kept.jsonl", "mine\n");
  for (const char* from : {"kineto", "nsys", "straggler-csv", "torch-csv", "megatron-log"}) {
    for (const std::string& out : {csv, kept}) {
      const Ran ran = run_rrfp({"import", "--from", from, csv, out});
      EXPECT_EQ(ran.status, 2) << from;
      EXPECT_EQ(ran.err,
                "rrfp import: " + out + ": exists already; remove it or give another OUT\n");
    }
    const Ran ran = run_rrfp({"import", "--from", from, csv, folder + "/absent/job.jsonl"});
    EXPECT_EQ(ran.status, 2) << from;
    EXPECT_TRUE(has(ran.err, "cannot write: there is no folder " + folder + "/absent")) << ran.err;
  }
  EXPECT_EQ(read_test_file(csv), small_csv());
  EXPECT_EQ(read_test_file(kept), "mine\n");
  EXPECT_EQ(run_rrfp({"import", "--from", "straggler-csv", csv, "/dev/null"}).status, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null")) << "it was replaced";
}

struct Wrong {
  std::vector<std::string> arguments;
  std::string message;
};

TEST(InfoAndImport, WrongInputIsOneMessageThatNamesThePlace) {
  const std::string folder = test_folder();
  const std::string csv = write_test_file(folder + "/job.csv", small_csv());
  const std::string trace = folder + "/job.jsonl";
  ASSERT_EQ(run_rrfp({"import", "--from", "straggler-csv", csv, trace}).status, 0);
  const std::string whole = read_test_file(trace);
  const std::string cut =
      write_test_file(folder + "/cut.jsonl", whole.substr(0, whole.rfind("[\"end\"")));
  const std::string damaged = write_test_file(
      folder + "/damaged.jsonl", whole.substr(0, whole.find('\n') + 1) + "[\"task\",5,0\n");
  const std::string no_number = write_test_file(
      folder + "/word.csv", std::string(kColumns) + "0,0,0,5,forward-compute,x,0.01,0,0,0,0\n");
  const std::string text = write_test_file(folder + "/text.txt", "hello\n");
  const std::string out = folder + "/out.jsonl";
  const std::vector<Wrong> cases = {
      {{"info"}, "TRACE is missing"},
      {{"info", folder + "/absent"}, "absent: cannot open"},
      {{"info", text}, "text.txt: line 1: is neither; expected the header of a native trace"},
      {{"info", cut}, "cut.jsonl: line "},
      {{"info", damaged}, "damaged.jsonl: line 2"},
      {{"info", no_number}, "word.csv: line 2"},
      {{"import", csv, out},
       "--from is missing; expected kineto, nsys, straggler-csv, torch-csv or megatron-log"},
      {{"import", "--from", "chrome", csv, out}, "--from: unknown \"chrome\""},
      {{"import", "--from", "kineto", csv, out},
       "job.csv: found a straggler CSV; expected a PyTorch"},
      {{"import", "--from", "nsys", csv, out},
       "job.csv: found a straggler CSV; expected an SQLite"},
      {{"import", "--from", "torch-csv", "--tp", "2", csv, out}, "--tp is about kineto"},
      {{"import", "--from", "straggler-csv", csv}, "expected two files, IN and OUT; found 1"},
      {{"import", "--from", "megatron-log", text, out}, "text.txt: holds no usable line with"},
      {{"import", "--from", "straggler-csv", text, out}, "text.txt: line 1"},
      {{"import", "--from", "straggler-csv", "--b-means", "full", csv, out}, "--b-means is about"},
  };
  for (const Wrong& wrong : cases) {
    const Ran ran = run_rrfp(wrong.arguments);
    EXPECT_EQ(ran.status, 2) << wrong.message;
    EXPECT_EQ(ran.out, "") << wrong.message;
    EXPECT_TRUE(has(ran.err, wrong.message)) << ran.err << wrong.message;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace
}  // namespace rrfp
