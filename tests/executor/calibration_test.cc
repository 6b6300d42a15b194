// Goal: what a calibration adds to a case is what was measured, to the
// nanosecond, and nothing twice; and a calibration file is read back as it was
// written, or refused with the name of what is wrong.
#include "executor/calibration.h"

#include <gtest/gtest.h>

#include <numeric>

#include "executor/calibration_file.h"
#include "tests/executor/program_for_tests.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {
namespace {

constexpr std::int64_t kMessageExtraNs = 7;

// Two ranks; messages of 1000 bytes, which its links take 500 + 10'000 ns for.
Case linked_case(std::int64_t latency_ns) {
  Case made = chain_case(2, 3, true, 1'000);
  made.network.message_bytes.assign(static_cast<std::size_t>(made.program.task_ids()), 1'000);
  set_latency(made, latency_ns);
  return made;
}

Calibration linked_calibration() {
  Calibration calibration{2, 20, kMessageExtraNs, 0, 0};
  calibration.links = {{0, 1, CalibratedLink::kAllLanes, 500, 100},
                       {1, 0, CalibratedLink::kAllLanes, 500, 100}};
  return calibration;
}

// Of all messages along the edge from stage `from`, which must be alike.
std::int64_t latency_ns(const Case& input, const Calibration& calibration, int from = 0) {
  const Result<Case> out = with_calibration(input, calibration);
  EXPECT_TRUE(out.ok()) << out.error().message;
  if (!out.ok()) return -1;
  const EdgeId edge =
      input.program.find_edge(from == 0 ? Kind::kForward : Kind::kBackward, from, 1 - from);
  const std::vector<std::int64_t>& all = out->network.latency_ns[static_cast<std::size_t>(edge)];
  EXPECT_EQ(all.size(), 3U);
  for (const std::int64_t one : all) EXPECT_EQ(one, all.front());
  return all.front();
}

TEST(Calibration, TrimsTheLargestHundredth) {
  Overheads overheads;
  overheads.task_ns.assign(99, 20);
  overheads.task_ns.push_back(1'000'000);
  overheads.message_ns.assign(10, -5);
  Calibration calibration;
  calibrate(overheads, calibration);
  EXPECT_EQ(calibration.task_extra_ns, 20);
  EXPECT_EQ(calibration.message_extra_ns, 0) << "a machine is not faster than the world";
}

TEST(Calibration, IsVoidWhereNothingCanBeSaidWithIt) {
  Calibration calibration{8, 27'000, 31'000, 19'000, 300'000};
  EXPECT_EQ(why_void(calibration), "");
  EXPECT_EQ(why_void(calibration, 27'000), "");
  Calibration starved{8, 17'871'224};
  EXPECT_NE(why_void(starved, 999'999).find("take tasks of 1 ms or more"), std::string::npos);
  EXPECT_NE(why_void(starved, 1'000'000).find("too few cores for 8 workers, or is too busy"),
            std::string::npos);
  EXPECT_NE(why_void(calibration, 26'999).find("take 26999 ns in the mean"), std::string::npos);
  calibration.spread_permille = 50;
  EXPECT_EQ(why_void(calibration), "");
  calibration.spread_permille = 51;
  EXPECT_NE(why_void(calibration).find("too noisy"), std::string::npos);
  calibration.spread_permille = 0;
  calibration.timer_p99_ns = 300'001;
  EXPECT_NE(why_void(calibration).find("p99 over 300 us"), std::string::npos);
}

TEST(Calibration, SpreadIsThatOfItsIterationsButTheOutermost) {
  EXPECT_EQ(spread_permille({10, 900, 12, 14, 1}, 1000), 4);
  EXPECT_EQ(spread_permille({10, 30}, 100), 200);
  EXPECT_EQ(spread_permille({}, 100), 0);
}

TEST(Calibration, TasksTakeLongerThanSchedulersExpect) {
  const Case input = linked_case(100);
  const Result<Case> out = with_calibration(input, linked_calibration());
  ASSERT_TRUE(out.ok()) << out.error().message;
  EXPECT_EQ(out->duration_ns[0], 1'020);
  EXPECT_EQ(out->expected_ns, input.duration_ns);
  const EdgeId edge = input.program.find_edge(Kind::kForward, 0, 1);
  EXPECT_EQ(out->network.expected_latency_ns[static_cast<std::size_t>(edge)],
            (std::vector<std::int64_t>{100, 100, 100}));
}

// As the world has them, each where it belongs though the policy turns them around.
TEST(Calibration, ExpectationsStayWithTheirMicrobatches) {
  Case input = linked_case(0);
  input.policy.arrangement = Arrangement::kHill;
  for (TaskId task = 0; task < input.program.task_ids(); ++task) {
    input.duration_ns[static_cast<std::size_t>(task)] =
        1'000 * (1 + input.program.microbatch_of(task));
  }
  const auto edge = static_cast<std::size_t>(input.program.find_edge(Kind::kForward, 0, 1));
  input.network.latency_ns[edge] = {10, 20, 30};
  const Result<std::unique_ptr<const PreparedCase>> world = PreparedCase::create(input);
  ASSERT_TRUE(world.ok()) << world.error().message;
  ASSERT_FALSE((*world)->arrangement().empty()) << "the policy turns nothing around";
  const Result<Case> out = with_calibration(input, linked_calibration());
  ASSERT_TRUE(out.ok()) << out.error().message;
  EXPECT_EQ(out->network.expected_latency_ns[edge], (std::vector<std::int64_t>{10, 20, 30}));
}

TEST(Calibration, ALinkAddsWhatTheWorldDoesNotHide) {
  EXPECT_EQ(latency_ns(linked_case(0), linked_calibration()), 10'500 + kMessageExtraNs);
  EXPECT_EQ(latency_ns(linked_case(4'000), linked_calibration()), 10'500 + kMessageExtraNs);
  EXPECT_EQ(latency_ns(linked_case(10'500), linked_calibration()), 10'500 + kMessageExtraNs);
  EXPECT_EQ(latency_ns(linked_case(20'000), linked_calibration()), 20'000 + kMessageExtraNs);
}

TEST(Calibration, TransmissionOfTheWorldHidesALinkToo) {
  Case input = linked_case(1'000);
  input.network.bytes_per_second = 1'000'000'000;  // 1000 ns, which are no latency
  EXPECT_EQ(latency_ns(input, linked_calibration()), 9'500 + kMessageExtraNs);
}

TEST(Calibration, EachDirectionHasItsLink) {
  Calibration calibration = linked_calibration();
  calibration.links[1].latency_ns = 90'000;
  EXPECT_EQ(latency_ns(linked_case(0), calibration, 0), 10'500 + kMessageExtraNs);
  EXPECT_EQ(latency_ns(linked_case(0), calibration, 1), 100'000 + kMessageExtraNs);
}

TEST(Calibration, OnlyBytesThatTravelTakeTime) {
  Calibration calibration = linked_calibration();
  calibration.payload_limit_bytes = 150;
  EXPECT_EQ(latency_ns(linked_case(0), calibration), 2'000 + kMessageExtraNs);
  calibration.payload_limit_bytes = 0;
  EXPECT_EQ(latency_ns(linked_case(0), calibration), kMessageExtraNs);
  Case input = linked_case(0);
  input.network.message_bytes.clear();
  EXPECT_EQ(latency_ns(input, linked_calibration()), kMessageExtraNs);
}

TEST(Calibration, LanesMayHaveLinksOfTheirOwn) {
  Case input = chain_case(2, 1, true, 1'000);
  input.network.message_bytes.assign(static_cast<std::size_t>(input.program.task_ids()), 1'000);
  input.tensor_parallel.lanes = 2;
  Calibration calibration = linked_calibration();
  calibration.links = {{0, 1, 0, 500, 100}, {0, 1, 1, 900, 100}, {1, 0, -1, 500, 100}};
  const Result<Case> out = with_calibration(input, calibration);
  ASSERT_TRUE(out.ok()) << out.error().message;
  const EdgeId edge = input.program.find_edge(Kind::kForward, 0, 1);
  EXPECT_EQ(out->network.latency_ns[static_cast<std::size_t>(edge)],
            (std::vector<std::int64_t>{10'507, 10'907}));
}

TEST(Calibration, SaysWhatItHasNoFigureFor) {
  Calibration calibration = linked_calibration();
  calibration.links.pop_back();
  const Result<Case> lacking = with_calibration(linked_case(0), calibration);
  ASSERT_FALSE(lacking.ok());
  EXPECT_NE(lacking.error().message.find("no link from rank 1 to rank 0"), std::string::npos)
      << lacking.error().message;
  Case input = linked_case(0);
  input.network.mode = NetworkMode::kLaunchQueue;
  EXPECT_FALSE(with_calibration(input, linked_calibration()).ok());
  // A link so slow that the run would not end.
  input = linked_case(0);
  input.network.message_bytes.assign(input.network.message_bytes.size(), std::int64_t{1} << 55);
  calibration = linked_calibration();
  for (CalibratedLink& link : calibration.links) link.bytes_per_us = 1;
  EXPECT_FALSE(with_calibration(input, calibration).ok());
}

TEST(Calibration, LinksAreMeansOverReplicas) {
  const std::vector<LinkFigures> measured = {
      {0, 2, 1'000, 100}, {1, 3, 1'600, 400}, {4, 6, 2'000, 300}, {5, 7, 1'600, 400}};
  const std::vector<CalibratedLink> links = links_of_ranks(measured, Grid{2, 2, 2});
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0], (CalibratedLink{0, 1, 0, 1'500, 150}));  // a byte takes 10 or 3.33 ns
  EXPECT_EQ(links[1], (CalibratedLink{0, 1, 1, 1'600, 400}));
  const std::vector<LinkFigures> plain = {{1, 0, 5, 6}};
  EXPECT_EQ(links_of_ranks(plain, Grid{1, 2, 1}).front(), (CalibratedLink{1, 0, -1, 5, 6}));
}

// The mean of what is added to the messages of a run is the mean of what they took longer.
TEST(Calibration, WhatALinkTakesIsNotCountedTwice) {
  TestRun run;
  Case input = linked_case(2 * kMillisecond);
  run.prepare(input);
  run.run();
  ASSERT_EQ(run.outcome.end, RunEnd::kCompleted) << run.outcome.why;
  Calibration calibration = linked_calibration();
  // Of the 64 bytes that travel: hidden by the world on the way there, and not on the way back.
  calibration.links[1].latency_ns = 2 * kMillisecond + 3'000;
  Overheads whole;
  Overheads beside;
  for (const IterationRecord& record : run.sink->iterations) {
    add_overheads(*run.plan, record, {}, whole);
    add_overheads(*run.plan, record, calibration.links, beside);
  }
  EXPECT_EQ(whole.task_ns, beside.task_ns);
  ASSERT_FALSE(whole.message_ns.empty());
  std::int64_t hidden = 0;
  for (std::size_t i = 0; i < whole.message_ns.size(); ++i) {
    const std::int64_t link_ns = whole.message_ns[i] - beside.message_ns[i];
    EXPECT_TRUE(link_ns == 0 || link_ns == 3'640) << link_ns;
    hidden += link_ns == 0 ? 1 : 0;
  }
  EXPECT_EQ(2 * hidden, static_cast<std::int64_t>(whole.message_ns.size()));
}

class CalibrationFile : public testing::Test {
 protected:
  static constexpr const char* kPlain =
      R"("schema": "rrfp.calibration/1", "workers": 8, "task_extra_ns": 27000,
  "message_extra_ns": 31000, "timer_late_ns": {"p50": 19000, "p99": 300001})";
  static constexpr const char* kDevice =
      R"("device": {"about": "d", "launch_ns": 1, "flag_ns": 2, "kernel_ns": 3,
  "contention_permille": 1004})";
  static constexpr const char* kLink =
      R"({"from_rank": 0, "to_rank": 1, "latency_ns": 5, "bytes_per_us": 6})";

  static Result<Calibration> read(const std::string& members) {
    return read_calibration_file(write_text("calibration.json", "{" + members + "}"));
  }
  static void expect_refused(const std::string& members, const std::string& part) {
    const Result<Calibration> found = read(members);
    ASSERT_FALSE(found.ok()) << members;
    EXPECT_NE(found.error().message.find(part), std::string::npos) << found.error().message;
  }
  static std::string plain_with(const std::string& members) {
    return std::string(kPlain) + ", " + members;
  }
  static std::string replaced(std::string text, const std::string& part, const std::string& by) {
    return text.replace(text.find(part), part.size(), by);
  }
};

TEST_F(CalibrationFile, RoundTrips) {
  Calibration calibration{8, 27'000, 31'000, 19'000, 300'001};
  const std::string path = path_for("written.json");
  ASSERT_TRUE(write_calibration_file(path, calibration).ok());
  EXPECT_EQ(read_text_file(path).value().find("device"), std::string::npos);
  EXPECT_EQ(*read_calibration_file(path), calibration);
  EXPECT_EQ(*read(kPlain), calibration);
  calibration.device = CalibratedDevice{"4 partitions", {3'000, 2'000, 4'000, 1'043}};
  calibration.links = {{0, 1, 0, 1'200, 25'000}, {0, 1, 1, 0, 1}, {1, 0, -1, 1'000, 24'000}};
  calibration.payload_limit_bytes = 4096;
  ASSERT_TRUE(write_calibration_file(path, calibration).ok());
  const Result<Calibration> found = read_calibration_file(path);
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(*found, calibration);
  std::filesystem::remove(path);
  EXPECT_FALSE(read_calibration_file(path).ok());
}

TEST_F(CalibrationFile, NamesWhatIsWrong) {
  expect_refused(replaced(kPlain, "calibration/1", "calibration/2"), "/schema");
  expect_refused(replaced(kPlain, "27000", "-1"), "/task_extra_ns");
  expect_refused(plain_with(R"("contention": 2)"), "contention");
  const std::string device = plain_with(kDevice);
  ASSERT_TRUE(read(device).ok());
  expect_refused(replaced(device, "1004", "999"), "/device/contention_permille");
  expect_refused(replaced(device, "1004", "1.5"), "/device/contention_permille");
  expect_refused(replaced(device, R"("flag_ns": 2)", R"("flag_ns": -2)"), "/device/flag_ns");
  expect_refused(replaced(device, R"("launch_ns": 1, )", ""), "launch_ns");
  expect_refused(replaced(device, "launch_ns", "lunch_ns"), "lunch_ns");
  expect_refused(plain_with(R"("payload_limit_bytes": -1)"), "/payload_limit_bytes");
}

TEST_F(CalibrationFile, NamesWhatIsWrongWithALink) {
  const std::string link = plain_with(R"("links": [)" + std::string(kLink) + "]");
  ASSERT_TRUE(read(link).ok());
  expect_refused(replaced(link, R"("bytes_per_us": 6)", R"("bytes_per_us": 0)"),
                 "/links/0/bytes_per_us");
  expect_refused(replaced(link, R"("latency_ns": 5)", R"("latency_ns": 9000000000000000000)"),
                 "/links/0/latency_ns");
  expect_refused(replaced(link, R"("to_rank": 1)", R"("to_rank": 0)"), "/links/0/to_rank");
  expect_refused(replaced(link, R"("to_rank": 1, )", ""), "to_rank");
  expect_refused(replaced(link, R"("to_rank": 1)", R"("to_rank": 1, "lane": -1)"), "/links/0/lane");
  expect_refused(plain_with(R"("links": {})"), "/links");
  expect_refused(plain_with(R"("links": [)" + std::string(kLink) + ", " + std::string(kLink) + "]"),
                 "/links/1");
  const std::string of_lane = replaced(kLink, R"("to_rank": 1)", R"("to_rank": 1, "lane": 0)");
  expect_refused(plain_with(R"("links": [)" + of_lane + ", " + std::string(kLink) + "]"),
                 "from rank 0 to rank 1 is there twice");
  EXPECT_TRUE(read(plain_with(R"("links": [)" + of_lane + ", " +
                              replaced(of_lane, R"("lane": 0)", R"("lane": 1)") + "]"))
                  .ok());
}

}  // namespace
}  // namespace rrfp
