// Goal: tasks, messages and clocks come out of PyTorch profiler files by the
// stated rules; whatever is odd in real files is read, or dropped and counted,
// or one error that names the place.
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <sstream>

#include "tests/traces/kineto_for_tests.h"

namespace rrfp {
namespace {

using Texts = std::vector<std::string>;

std::string gzipped(const std::string& text) {
  std::istringstream in(text);
  std::ostringstream out;
  boost::iostreams::filtering_ostream chain;
  chain.push(boost::iostreams::gzip_compressor());
  chain.push(out);
  chain << text;
  chain.reset();
  return out.str();
}

/// 0F0 and 0B0 of one rank, on the GPU at 100-110 and 200-230 us.
std::vector<std::string> one_rank() {
  return {annotation("PP:0F0", "10", "5"), kernel(1, "11", "100", "10"),
          annotation("PP:0B0", "20", "5"), kernel(2, "21", "200", "30")};
}

TEST_F(KinetoTest, ATaskLastsAsLongAsItsKernels) {
  write("rank0.json", kineto_file({annotation("PP:0F0", "10", "5"), kernel(1, "11", "100", "10"),
                                   kernel(2, "12", "120", "30.5"),
                                   kernel(3, "13", "90", "500", "ncclDevKernel_AllReduce"),
                                   kernel(4, "30", "300", "10"),  // outside
                                   annotation("PP:0B0", "20", "5"), kernel(5, "21", "200.25", "0"),
                                   kernel(6, "22", "220", "0.001")}));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-50500", "0B0 100250-120001"}));
  EXPECT_EQ(imported->report.ranks[0].recording.kernels_outside, 1);
}

TEST_F(KinetoTest, KernelsOfAutogradsThreadGoToTheOneOpenBackward) {
  write("rank0.json",
        kineto_file({annotation("PP:0F0", "10", "5"), kernel(1, "11", "100", "10"),
                     kernel(9, "12", "0", "50", "gemm", "99"),  // of a loader, say
                     annotation("PP:0B0", "20", "5"), kernel(2, "21", "200", "30", "gemm", "99"),
                     annotation("PP:0F1", "30", "5"), kernel(3, "31", "300", "10"),
                     annotation("PP:0I1", "40", "5"), kernel(5, "41", "400", "10"),
                     annotation("PP:0W1", "42", "5", "\"stream 7\""),
                     kernel(6, "43", "500", "10", "gemm", "99")}));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported),
            (Texts{"0F0 0-10000", "0B0 100000-130000", "0F1 200000-210000", "0I1 300000-310000"}));
  EXPECT_EQ(imported->report.ranks[0].recording.kernels_of_other_threads, 1);
  EXPECT_EQ(imported->report.ranks[0].recording.kernels_outside, 1);
  EXPECT_EQ(dropped(*imported, "while two backwards are open"), 1);
  EXPECT_EQ(dropped(*imported, "a task without a kernel"), 1);
}

TEST_F(KinetoTest, WithoutKernelsTheAnnotationsGiveTheTimes) {
  write("rank0.json",
        kineto_file({annotation("PP:0F0", "10", "5"), annotation("PP:0B0", "20", "50"),
                     annotation("PP:0SEND_F0", "15", "1")}));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-5000", "0B0 10000-60000"}));
  EXPECT_FALSE(imported->report.ranks[0].recording.on_device);
  EXPECT_EQ(dropped(*imported, "a profile without kernels"), 1);
}

TEST_F(KinetoTest, ATransferIsTheEarlierEndLessTheLaterStart) {
  write("rank0.json",
        kineto_file({annotation("PP:0F0", "10", "5"), kernel(1, "11", "100", "10"),
                     annotation("PP:0SEND_F0", "20", "9"), annotation("nccl:send 0->1", "21", "5"),
                     kernel(2, "22", "110", "45", "ncclDevKernel_SendRecv(x)")}));
  write("rank1.json",
        kineto_file({annotation("PP:1RECV_F0", "10", "5"), annotation("nccl:recv 1<-0", "11", "3"),
                     kernel(1, "12", "50", "103", "ncclDevKernel_Generic(x)"),
                     annotation("PP:1F0", "20", "5"), kernel(2, "21", "160", "10")},
                    1));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const auto messages = all<TraceMessage>(*imported);
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].receive.match_ns, 60'000);  // 110 us, from the first start at 50
  EXPECT_EQ(messages[0].receive.done_ns, 103'000);  // 153 us
  EXPECT_EQ(messages[0].send.post_ns, 60'000);
  EXPECT_EQ(messages[0].receive.post_ns, 0);
  EXPECT_EQ(all<TraceTask>(*imported)[1].ready_ns, 103'000);
  EXPECT_EQ(imported->report.messages, 1);
}

TEST_F(KinetoTest, EndsWithoutAStagePairBySequence) {
  const auto rank = [](int own, int peer, bool sends_first) {
    std::vector<std::string> events = {annotation("ProfilerStep#7", "0", "1000")};
    for (int i = 0; i < 2; ++i) {
      const int at = 100 + 100 * i;
      const std::string send = "nccl:send " + std::to_string(own) + "->" + std::to_string(peer);
      const std::string receive = "nccl:recv " + std::to_string(own) + "<-" + std::to_string(peer);
      const auto time = [&](int more) { return std::to_string(at + more); };
      const int base = 10 * i;
      const std::string forward = annotation("forward_step", time(0), "5");
      events.push_back(forward);
      events.push_back(kernel(base + 1, time(1), time(sends_first ? 0 : 40), "10"));
      events.push_back(annotation("backward_step", time(10), "5"));
      events.push_back(kernel(base + 2, time(11), time(sends_first ? 80 : 50), "10"));
      events.push_back(annotation(sends_first ? send : receive, time(20), "5"));
      events.push_back(kernel(base + 3, time(21), time(sends_first ? 11 : 5),
                              sends_first ? "9" : "20", "ncclKernel_SendRecv_RING"));
      events.push_back(annotation(sends_first ? receive : send, time(30), "5"));
      events.push_back(kernel(base + 4, time(31), time(60), "9", "ncclKernel_SendRecv_RING"));
    }
    return events;
  };
  write("rank0.json", kineto_file(rank(0, 1, true), 0));
  write("rank1.json", kineto_file(rank(1, 0, false), 1));
  auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  auto messages = all<TraceMessage>(*imported);
  ASSERT_EQ(messages.size(), 4U);
  EXPECT_EQ(messages[0].iteration, 7);
  EXPECT_EQ(messages[0].kind, Kind::kForward);
  EXPECT_EQ(messages[0].microbatch, 0);
  EXPECT_EQ(messages[1].microbatch, 1);
  EXPECT_EQ(messages[2].kind, Kind::kBackward);
  EXPECT_TRUE(imported->report.ranks[0].recording.counted_microbatches);

  // One message more than there are tasks for: none of that direction counts.
  std::vector<std::string> more = rank(0, 1, true);
  more.push_back(annotation("nccl:send 0->1", "500", "5"));
  more.push_back(kernel(90, "501", "600", "1", "ncclKernel_SendRecv_RING"));
  more.push_back(annotation("nccl:send 3->1", "510", "5"));  // not its own rank
  more.push_back(kernel(91, "511", "610", "1", "ncclKernel_SendRecv_RING"));
  write("rank0.json", kineto_file(more, 0));
  imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->report.messages, 2);
  EXPECT_EQ(dropped(*imported, "do not count alike"), 5);
  EXPECT_EQ(dropped(*imported, "does not name its own rank"), 1);
}

TEST_F(KinetoTest, CollectivesOutsideTasksAreSpansOfTheirGroup) {
  const auto collective = [](int correlation, const char* launched, const char* start,
                             const char* ranks) {
    const std::string args = R"(, "args": {"correlation": )" + std::to_string(correlation) +
                             R"(, "Process Group Name": "3", "Process Group Ranks": ")" + ranks +
                             "\"}";
    return event("cuda_runtime", "cudaLaunchKernel", "1", launched, "1", args) +
           event("kernel", "ncclDevKernel_AllReduce", "30", start, "10", args);
  };
  write("rank0.json",
        kineto_file({annotation("PP:0F0", "10", "5"), kernel(1, "11", "100", "10"),
                     annotation("nccl:all_reduce", "12", "2"),  // of tensor parallelism
                     collective(2, "13", "105", "[0, 1]"), annotation("nccl:all_reduce", "20", "5"),
                     collective(3, "21", "200", "[0, 1, ..."),
                     annotation("nccl:all_reduce", "30", "5"),
                     collective(4, "31", "220", "[0, 1, ..."),
                     annotation("Optimizer.step#AdamW.step", "40", "5"),
                     kernel(5, "41", "300", "7"), annotation("nccl:barrier; rm", "50", "5")}));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-10000"}));
  const auto spans = all<TraceSpan>(*imported);
  ASSERT_EQ(spans.size(), 3U);
  EXPECT_EQ(spans[0].name, "nccl:all_reduce");
  EXPECT_EQ(spans[0].group, "3 [0, 1, ... #0");
  EXPECT_EQ(spans[0].start_ns, 100'000);
  EXPECT_EQ(spans[0].end_ns, 110'000);
  EXPECT_EQ(spans[1].group, "3 [0, 1, ... #1");
  EXPECT_EQ(spans[2].name, "optimizer");
  EXPECT_EQ(spans[2].group, "");
}

TEST_F(KinetoTest, StepsAreIterationsAndRepetitionsAreWithoutThem) {
  std::vector<std::string> events = {
      annotation("ProfilerStep#3", "0", "100"),
      event("gpu_user_annotation", "ProfilerStep#3", "7", "0", "900"),
      annotation("ProfilerStep#4", "100", "100")};
  for (const char* start : {"10", "110", "210"}) events.push_back(annotation("PP:0F0", start, "5"));
  write("rank0.json", kineto_file(events));
  auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_EQ(all<TraceTask>(*imported).size(), 2U);
  EXPECT_EQ(all<TraceTask>(*imported)[1].iteration, 4);
  EXPECT_EQ(dropped(*imported, "outside every step"), 1);

  events.erase(events.begin(), events.begin() + 3);
  write("rank0.json", kineto_file(events));
  imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  ASSERT_EQ(all<TraceTask>(*imported).size(), 3U);
  EXPECT_EQ(all<TraceTask>(*imported)[2].iteration, 2);
}

TEST_F(KinetoTest, PatternsNameAUsersOwnAnnotations) {
  std::vector<std::string> events;
  for (int i = 0; i < 4; ++i) {
    const std::string start = std::to_string(10 + 10 * i);
    events.push_back(
        annotation("my fwd " + std::to_string(i % 2) + " of " + std::to_string(i / 2), start, "5"));
  }
  write("rank0.json", kineto_file(events));
  ProfileImportOptions options;
  options.patterns.forward = R"(fwd (\d+) of (\d+))";
  auto imported = import(options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported),
            (Texts{"0F0 0-5000", "0F1 10000-15000", "1F0 20000-25000", "1F1 30000-35000"}));
  options.patterns.forward = "my fwd";
  options.microbatches = 2;
  imported = import(options);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->report.iterations, 2);
  options.patterns.forward = "fwd (";
  EXPECT_NE(error(options).find("--forward: \"fwd (\" is no regular expression"),
            std::string::npos);
  options.patterns.forward = R"((fwd))";
  EXPECT_NE(error(options).find("no annotation of a task was found"), std::string::npos);
}

TEST_F(KinetoTest, BaseTimesBringFilesTogether) {
  const auto file = [](int rank, const std::string& base, const std::string& start) {
    return R"({"traceEvents": [)" + annotation("PP:" + std::to_string(rank) + "F0", start, "5") +
           R"(], "distributedInfo": {"rank": ")" + std::to_string(rank) +
           R"("}, "baseTimeNanoseconds": )" + base + "}";
  };
  write("a", file(0, "1735632360000000000", "4203669603771.648"));
  write("b.json", file(1, "\"1735632360000000001\"", "4203669603781.648"));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-5000", "1F0 10001-15001"}));
}

TEST_F(KinetoTest, OddFormsOfJsonAreRead) {
  const std::string strange =
      "\xef\xbb\xbf  [,\n" + annotation("PP:0F0", "\"10.5\"", "\"5\"", "\"\"") + ",," +
      annotation("say \\\"hi\\\" \x01 \n to me", "11", "1") +
      event("kernel", "k", "-3", "nan", "NaN", R"(, "args": {"correlation": 1, "x": nan})") +
      R"({"ph": "M", "name": "process_name", "pid": "Spans", "tid": 9999999999})" +
      R"(, {"ph": "f", "id": 4, "cat": "ac2g", "ts": 3}, {"ph": "f", "id": 4, "cat": "ac2g", "ts": 3})" +
      event("cpu_op", "record_param_comms", "1", "11", "1",
            R"(, "args": {"Comms Id": 10159970886766084423, "ranks": "[0, 1, ..."})") +
      ", 7, null, \"x\"," + annotation("PP:0B0", "2e1", "5.", "\"stream 7\"") + ",\n,]";
  write("trace.json", strange);
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-5000", "0B0 9500-14500"}));
  EXPECT_EQ(dropped(*imported, "ts is no number"), 1);
  EXPECT_EQ(dropped(*imported, "no object"), 3);
  EXPECT_EQ(imported->report.ranks[0].recording.cut, "");
}

TEST_F(KinetoTest, ZeroLengthsDuplicatesAndDisorderAreRead) {
  std::vector<std::string> events = one_rank();
  std::reverse(events.begin(), events.end());
  events.push_back(annotation("PP:0F0", "10", "5"));      // twice
  events.push_back(annotation("PP:0F1", "0", "0"));       // not collected
  events.push_back(event("kernel", "k", "7", "0", "0"));  // the same
  events.push_back(annotation("PP:0F2", "40", "0"));      // no length
  events.push_back(kernel(8, "40", "300", "0"));          // the same
  events.push_back(annotation("PP:0F3", "50", "-1"));
  events.push_back(event("kernel", "k", "7", "60", "1"));  // no correlation
  events.push_back(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1})");
  write("rank0.json", kineto_file(events));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported),
            (Texts{"0F0 0-10000", "0B0 100000-130000", "0F2 200000-200000"}));
  EXPECT_EQ(dropped(*imported, "stands twice in its file"), 1);
  EXPECT_EQ(dropped(*imported, "not collected"), 2);
  EXPECT_EQ(dropped(*imported, "dur is negative"), 1);
  EXPECT_EQ(dropped(*imported, "without correlation"), 1);
  EXPECT_EQ(dropped(*imported, "dur is missing"), 1);
}

TEST_F(KinetoTest, CorrelationsAboveTwoToThe63AreFollowed) {
  const auto with = [](const std::string& number, const std::string& text) {
    return R"(, "args": {"correlation": )" + number + "}" + text;
  };
  write("rank0.json",
        kineto_file({annotation("PP:0F0", "10", "5"),
                     event("cuda_driver", "cuLaunchKernel", "1", "11", "1",
                           with("18446744073709551615", "")),
                     event("kernel", "k", "7", "100", "10", with("\"18446744073709551615\"", "")),
                     event("kernel", "k", "7", "100", "99", with("18446744073709551616", ""))}));
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-10000"}));
  EXPECT_EQ(dropped(*imported, "correlation is no whole number"), 1);
}

TEST_F(KinetoTest, ImpossibleLengthsAreKeptOut) {
  std::vector<std::string> events = one_rank();
  events.push_back(annotation("PP:0F1", "30", "5"));
  events.push_back(kernel(7, "31", "240", "18446744073709.5"));
  events.push_back(kernel(8, "32", "240", "10"));
  events.push_back(event("Trace", "PyTorch Profiler (0)", "1", "0", "400"));
  write("rank0.json", kineto_file(events));
  auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported),
            (Texts{"0F0 0-10000", "0B0 100000-130000", "0F1 140000-150000"}));
  ASSERT_EQ(dropped(*imported, "a kernel that is longer than its whole file"), 1);
  EXPECT_NE(imported->report.dropped.reasons[0].first.find("rank0.json: byte "), std::string::npos);

  // What ends with the file is no longer than it.
  events = one_rank();
  events.push_back(event("Trace", "PyTorch Profiler (0)", "1", "0", "30"));
  write("rank0.json", kineto_file(events));
  imported = import();
  ASSERT_TRUE(imported.ok());
  EXPECT_EQ(imported->report.dropped.total(), 0);
}

TEST_F(KinetoTest, CutFilesGiveWhatTheyHold) {
  const std::string whole =
      kineto_file({annotation("PP:0F0", "10", "5"), annotation("PP:0B0", "20", "5"),
                   annotation("x", "30", "1")});
  const std::size_t second = whole.find("PP:0B0");
  const std::size_t third = whole.find("\"x\"");
  struct Cut {
    std::size_t at;
    std::size_t tasks;
  };
  for (const Cut& cut : {Cut{second + 3, 1}, Cut{third - 30, 2}, Cut{third + 2, 2},
                         Cut{whole.find("\n]}"), 2}, Cut{whole.rfind('}'), 2}}) {
    for (const bool compressed : {false, true}) {
      const std::string text = whole.substr(0, cut.at);
      write("rank0.json", compressed ? gzipped(text) : text);
      const auto imported = import();
      ASSERT_TRUE(imported.ok()) << imported.error().message;
      EXPECT_EQ(all<TraceTask>(*imported).size(), cut.tasks) << text;
      EXPECT_NE(imported->report.ranks[0].recording.cut.find("ends at byte " +
                                                             std::to_string(cut.at) + " inside "),
                std::string::npos)
          << imported->report.ranks[0].recording.cut;
    }
  }
  // The compressed data itself is cut: what comes before is kept.
  std::vector<std::string> events = {annotation("PP:0F0", "10", "5")};
  for (int i = 0; i < 500; ++i) {
    events.push_back(annotation("other " + std::to_string(i * i), std::to_string(i), "1"));
  }
  const std::string packed = gzipped(kineto_file(events));
  write("rank0.json.gz", packed.substr(0, packed.size() / 2));
  std::filesystem::remove(folder_ / "rank0.json");
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(all<TraceTask>(*imported).size(), 1U);
  EXPECT_GT(imported->report.ranks[0].recording.events, 100);
  EXPECT_NE(imported->report.ranks[0].recording.cut.find("damaged or ends too early"),
            std::string::npos);
}

TEST_F(KinetoTest, AFileThatWasCutBeforeItsFirstTaskIsSaidToBe) {
  const std::string text = R"({"traceEvents":[{"ph":"X","na)";
  write("rank0.json", text);
  EXPECT_NE(error().find("rank0.json: was cut: it ends at byte " + std::to_string(text.size()) +
                         " inside "),
            std::string::npos)
      << error();
}

TEST_F(KinetoTest, DeepAndLongValuesCostNoStackAndBoundedMemory) {
  constexpr std::size_t kDeep = 1'000'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  std::string repeated;
  for (int i = 0; i < 20'000; ++i) repeated += "\"traceEvents\": [],";
  write("rank0.json", "{\"a\": " + deep + ", " + repeated + "\"long\": \"" +
                          std::string(20 << 20, 'x') + "\", \"traceEvents\": [" +
                          event("cpu_op", "x", "1", "1", "1", ", \"args\": {\"a\": " + deep + "}") +
                          annotation("PP:0F0", "10", "5") + "]}");
  const auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(task_texts(*imported), (Texts{"0F0 0-5000"}));
  write("rank0.json", "[" + annotation("PP:0F0", "10", "5") + ", {\"name\": \"" +
                          std::string(17 << 20, 'x') + "\"}]");
  EXPECT_NE(error().find("expected an event of less than 16777216 bytes"), std::string::npos)
      << error();
}

TEST_F(KinetoTest, ErrorsNameTheFileAndThePlace) {
  struct Wrong {
    std::string text;
    std::string message;
  };
  const std::string first = annotation("PP:0F0", "10", "5");
  for (const Wrong& wrong :
       {Wrong{"", "trace.json: is empty"}, Wrong{"hello", "trace.json: byte 0: found 'h'"},
        Wrong{"{}", "holds no array \"traceEvents\""},
        Wrong{R"({"traceEvents": {}})", "holds no array \"traceEvents\""},
        Wrong{R"({"a" 1})", "byte 5: found '1'; expected ':'"}, Wrong{"{1}", "byte 1: found '1'"},
        Wrong{"[" + first + ", {\"a\": 1, {\"b\": 2}}]", "expected a member of the event at byte "},
        Wrong{"[" + first + "}", "expected an event or the end of the array"},
        Wrong{R"({"baseTimeNanoseconds": 1e99, "traceEvents": []})",
              "baseTimeNanoseconds is 1e99; expected a whole number"},
        Wrong{"[]", "no annotation of a task was found"},
        Wrong{"[" + annotation("PP:99999F0", "1", "1") + "]", "stage 99999 is too large"},
        Wrong{"[" + annotation("PP:1F0", "1", "1") + "]", "no file holds a task of stage 0"},
        Wrong{"[" + annotation("PP:0B0", "1", "1") + annotation("PP:0W0", "3", "1") + "]",
              "say --b-means input"}}) {
    write("trace.json", wrong.text);
    EXPECT_NE(error().find(wrong.message), std::string::npos) << error() << "\n" << wrong.message;
    EXPECT_NE(error().find("trace.json"), std::string::npos) << error();
  }
  std::filesystem::remove(folder_ / "trace.json");
  EXPECT_NE(error().find("holds no file"), std::string::npos) << error();
}

TEST_F(KinetoTest, RanksComeFromTheFileItsNameOrNotAtAll) {
  const std::string bare = "[" + annotation("PP:0F0", "10", "5") + "]";
  write("rank_03.pt.trace.json", bare);
  write("notes.txt", "no JSON");
  auto imported = import();
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->report.ranks[0].recording.rank, 3);
  EXPECT_EQ(imported->report.notes[0],
            (folder_ / "notes.txt").string() + " is no JSON: passed over");
  write("other.json", bare);
  EXPECT_NE(error().find("other.json: distributedInfo holds no rank and the name no \"rank<N>\""),
            std::string::npos)
      << error();
  write("other.json", kineto_file({annotation("PP:0F0", "10", "5")}, 3));
  EXPECT_NE(error().find("is of rank 3"), std::string::npos) << error();
  write("other.json", kineto_file({annotation("PP:0F0", "10", "5")}, 4));
  EXPECT_NE(error().find("runs stage 0, as "), std::string::npos) << error();
  EXPECT_NE(error().find("2 ranks run each stage: give --dp 2 where"), std::string::npos)
      << error();
}

}  // namespace
}  // namespace rrfp
