// Goal: a result file holds what the format says, with the two causes named "communication" as one,
// and a result that is not whole or not consistent is an error.
#include "traces/result_file.h"

#include <gtest/gtest.h>

namespace rrfp {
namespace {

std::size_t index(IdleCause cause) { return static_cast<std::size_t>(cause); }

SimulationResult small_result() {
  SimulationResult result;
  result.makespan_ns = 30;
  RankResult rank;
  rank.order = {{0, Kind::kForward, 0}, {0, Kind::kBackward, 0}};
  rank.decided_ns = {0, 20};
  rank.start_ns = {0, 20};
  rank.end_ns = {10, 25};
  rank.busy_ns = 15;
  rank.peak_bytes = 7;
  rank.peak_inbox_bytes = 3;
  rank.idle_ns[index(IdleCause::kRendezvous)] = 4;
  rank.idle_ns[index(IdleCause::kCommunication)] = 6;
  rank.idle_ns[index(IdleCause::kDrain)] = 5;
  result.ranks.push_back(rank);
  return result;
}

TEST(ResultFile, IsWrittenInTheOrderOfTheFormat) {
  EXPECT_EQ(to_text(result_to_json(small_result()), JsonLayout::kCompact),
            R"({"schema":"rrfp.result/1","completed":true,"makespan_ns":30,"ranks":[)"
            R"({"order":["0F0","0B0"],"start_ns":[0,20],"end_ns":[10,25],"busy_ns":15,)"
            R"("peak_bytes":7,"peak_inbox_bytes":3,"idle_ns":{"drain":5,"communication":10}}]})");
}

TEST(ResultFile, NamesTheBlockedTasksAndTheArrangement) {
  SimulationResult result = small_result();
  result.completed = false;
  result.blocked = {{2, Kind::kForward, 3}};
  result.arrangement = {1, 0};
  const std::string text = to_text(result_to_json(result), JsonLayout::kCompact);
  EXPECT_NE(text.find(R"("blocked":["2F3"],"arrangement":[1,0])"), std::string::npos) << text;
}

TEST(ResultFile, ReadsWhatItWrote) {
  const std::string text = to_text(result_to_json(small_result()), JsonLayout::kReadable);
  const Result<SimulationResult> read = read_result(*parse_json(text, "r.json"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(to_text(result_to_json(*read), JsonLayout::kReadable), text);
  EXPECT_EQ(read->ranks[0].order, small_result().ranks[0].order);
  EXPECT_EQ(read->ranks[0].idle_ns[index(IdleCause::kCommunication)], 10);
}

std::string error_of(const std::string& text) {
  const Result<SimulationResult> read = read_result(*parse_json(text, "r.json"));
  return read.ok() ? "no error" : read.error().message;
}

TEST(ResultFile, SaysWhatIsWrong) {
  const std::string head = R"({"schema": "rrfp.result/1", "completed": true, "makespan_ns": 1,)";
  EXPECT_EQ(error_of(head + R"("ranks": [{"order": ["0F0"], "start_ns": [], "end_ns": [1]}]})"),
            "r.json: /ranks/0/start_ns: found an array of 0; expected an array of 1, one per task "
            "of the order");
  EXPECT_EQ(error_of(head + R"("ranks": [{"order": ["0X0"], "start_ns": [0], "end_ns": [1]}]})"),
            "r.json: /ranks/0/order/0: found \"0X0\"; expected a task such as \"3F0\": stage, one "
            "of F, B, I, W, microbatch");
  EXPECT_NE(error_of(head + R"("ranks": [{"order": [], "start_ns": [], "end_ns": [],
                               "idle_ns": {"drian": 1}}]})")
                .find("/ranks/0/idle_ns: unknown key \"drian\"; did you mean \"drain\"?"),
            std::string::npos);
  EXPECT_EQ(error_of(head + "\"rank\": []}").rfind("r.json: top level: unknown key \"rank\"", 0),
            0U);
}

}  // namespace
}  // namespace rrfp
