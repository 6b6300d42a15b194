// Goal: the importer pairs sends with receives, keeps launch delays apart and
// collectives in their groups; it says what it dropped and why, and where a
// file is malformed.
#include "traces/straggler_csv.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace rrfp {
namespace {

constexpr const char* kHeader =
    "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc\n";

/// One microbatch over two stages of one replica, step 5.
constexpr const char* kStep =
    "0,0,0,5,params-all-gather,0.0,0.5,0,-1,-1,-1\n"
    "0,0,0,5,forward-compute,1.0,1.0,0,0,0,0\n"
    "0,0,0,5,forward-send,2.0,0.75,0,-1,-1,-1\n"
    "0,1,1,5,forward-recv,0.5,2.25,0,-1,-1,-1\n"
    "0,1,1,5,forward-compute,3.0,1.0,0,0,0,0\n"
    "0,1,1,5,backward-compute,4.0,2.0,0,0,0,0\n"
    "0,1,1,5,backward-send,6.0,1.0,0,-1,-1,-1\n"
    "0,0,0,5,backward-recv,2.75,4.5,0,-1,-1,-1\n"
    "0,0,0,5,backward-compute,7.5,2.0,0,0,0,0\n"
    "0,0,0,5,optimizer-clip-main-grad,9.5,1e-3,0,-1,-1,-1\n";

class StragglerCsvTest : public ::testing::Test {
 protected:
  ~StragglerCsvTest() override { std::filesystem::remove(path_); }

  Result<StragglerImport> import(const std::string& content) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content;
    return import_straggler_csv(path_);
  }
  std::string error_of(const std::string& content) {
    const auto imported = import(content);
    return imported.ok() ? "none" : imported.error().message;
  }

  std::string path_ = (std::filesystem::temp_directory_path() /
                       ("rrfp-straggler-" + std::to_string(::getpid()) + ".csv"))
                          .string();
};

template <typename T>
std::vector<T> all(const StragglerImport& imported) {
  std::vector<T> found;
  for (const TraceRecord& record : imported.records) {
    if (const T* held = std::get_if<T>(&record)) found.push_back(*held);
  }
  return found;
}

TEST_F(StragglerCsvTest, PairsSendsWithReceivesAndKeepsDelaysApart) {
  const auto imported = import(std::string(kHeader) + kStep);
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  EXPECT_EQ(imported->header.program.ranks(), 2);
  EXPECT_EQ(imported->header.program.microbatches(), 1);
  EXPECT_EQ(imported->report.rows, 10);
  EXPECT_EQ(imported->report.dropped.total(), 0);

  const auto messages = all<TraceMessage>(*imported);
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0].from_stage, 0);
  EXPECT_EQ(messages[0].to_stage, 1);
  EXPECT_EQ(messages[0].send, (MessageTimes{2'000'000'000, 2'000'000'000, 2'750'000'000}));
  EXPECT_EQ(messages[0].receive, (MessageTimes{500'000'000, 2'000'000'000, 2'750'000'000}));
  EXPECT_EQ(messages[1].kind, Kind::kBackward);
  EXPECT_EQ(messages[1].from_stage, 1);
  EXPECT_EQ(messages[1].receive.done_ns, 7'250'000'000);

  const auto tasks = all<TraceTask>(*imported);
  ASSERT_EQ(tasks.size(), 4U);
  EXPECT_EQ(tasks[2].task, (Task{1, Kind::kForward, 0}));
  EXPECT_EQ(tasks[2].ready_ns, 2'750'000'000);
  EXPECT_EQ(tasks[1].ready_ns, 7'250'000'000);
  const auto spans = all<TraceSpan>(*imported);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].group, "stage 0");
  EXPECT_EQ(spans[1].group, "world");
  EXPECT_EQ(spans[1].end_ns, 9'501'000'000);
  for (const StragglerReport::Type& type : imported->report.types) {
    EXPECT_EQ(type.rows, type.used) << type.name;
    const bool computes = type.name.ends_with("-compute");
    EXPECT_EQ(type.launch_delay_ns, computes ? 250'000'000 : 0) << type.name;
  }
}

TEST_F(StragglerCsvTest, SaysWhatItDropped) {
  const auto imported = import(std::string(kHeader) + kStep +
                               "0,0,0,5,coffee-break,1.0,1.0,0,0,0,0\n"
                               "0,0,0,5,forward-send,20.0,1.0,1,-1,-1,-1\n"
                               "0,0,0,5,backward-send,20.0,1.0,1,-1,-1,-1\n"
                               "0,0,0,5,forward-compute,30.0,1.0,0,0,0,0\n"
                               "0,0,0,5,gc,30.0,-1.0,0,0,0,0\n"
                               "0,0,0,5,forward-compute,30.0,1.0,9,1,9,9\n"
                               "0,-1,0,5,forward-compute,30.0,1.0,9,0,9,9\n");
  ASSERT_TRUE(imported.ok()) << imported.error().message;
  const DroppedRecords& dropped = imported->report.dropped;
  EXPECT_EQ(dropped.total(), 7);
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"optype \"coffee-break\" is not known", "line 12"},
      {"forward-send has no receive in the next stage", "line 13"},
      {"backward-send has no receive in the next stage", "line 14"},
      {"forward-compute stands twice in its step", "line 15"},
      {"duration is negative", "line 16"},
      {"model chunk above 0: several stages per rank are not told apart", "line 17"},
      {"step, dp_rank or stage is negative or too large", "line 18"}};
  ASSERT_EQ(dropped.reasons.size(), expected.size());
  for (const auto& [reason, line] : expected) {
    bool found = false;
    for (const auto& entry : dropped.reasons) {
      if (entry.reason == reason && entry.count == 1 && entry.first == line) found = true;
    }
    EXPECT_TRUE(found) << reason;
  }
  EXPECT_EQ(all<TraceTask>(*imported).size(), 4U);
}

TEST_F(StragglerCsvTest, MalformedFilesAreOneErrorThatNamesTheLine) {
  EXPECT_NE(error_of("").find("is empty"), std::string::npos);
  EXPECT_NE(error_of("dp_rank,stage\n").find("line 1: column \"step\" is missing"),
            std::string::npos);
  EXPECT_NE(error_of(kHeader).find("holds no usable row"), std::string::npos);
  const std::string rows = std::string(kHeader) + kStep;
  EXPECT_NE(error_of(rows + "0,0,0,5,gc,1.0\n").find("line 12: has 6 cells"), std::string::npos);
  EXPECT_NE(error_of(rows + "0,0,0,x,gc,1.0,1.0,0,0,0,0\n").find("line 12: step is \"x\""),
            std::string::npos);
  EXPECT_NE(error_of(rows + "0,0,0,5,gc,nan,1.0,0,0,0,0\n").find("start_ts is \"nan\""),
            std::string::npos);
  EXPECT_NE(error_of(rows + "0,0,0,5,gc,1.0,1.0s,0,0,0,0\n").find("duration is \"1.0s\""),
            std::string::npos);
  EXPECT_NE(import_straggler_csv(path_ + ".absent").error().message.find("cannot open"),
            std::string::npos);
}

}  // namespace
}  // namespace rrfp
