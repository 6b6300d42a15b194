// Goal: a long run says how far it is and how long it will take, in a log as on
// a terminal; a short one says nothing.
#include "experiments/run_progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rrfp {
namespace {

std::int64_t now_s = 0;
std::int64_t now_ns() { return now_s * 1'000'000'000; }

class CountingSink final : public IterationSink {
 public:
  Result<void> on_iteration(IterationRecord record) override {
    EXPECT_EQ(record.iteration, taken++);
    return answer;
  }
  int taken = 0;
  Result<void> answer;
};

class RunProgressText : public testing::Test {
 protected:
  void SetUp() override {
    now_s = 100;
    plan_.grid = {1, 4, 1};
    plan_.worlds.resize(40);
  }
  std::unique_ptr<RunProgress> progress(bool terminal) {
    return std::make_unique<RunProgress>("rrfp run", plan_, sink_, err_, terminal, now_ns);
  }
  // The next iteration ends after so many seconds.
  void iterate(RunProgress& of, int seconds, int count = 1) {
    for (int i = 0; i < count; ++i) {
      now_s += seconds;
      EXPECT_TRUE(of.on_iteration({next_++, {}}).ok());
    }
  }
  std::string told() {
    std::string text = err_.str();
    err_.str("");
    return text;
  }

  RunPlan plan_;
  std::shared_ptr<CountingSink> sink_ = std::make_shared<CountingSink>();
  std::ostringstream err_;
  int next_ = 0;
};

TEST_F(RunProgressText, ALogHasALineNowAndThenTheMoreSeldomTheLongerItTakes) {
  const auto of = progress(false);
  iterate(*of, 3, 3);
  EXPECT_EQ(told(), "");
  iterate(*of, 3);
  EXPECT_EQ(told(), "rrfp run: 4 of 40 iterations, about 108 s left\n");
  iterate(*of, 3, 3);
  EXPECT_EQ(told(), "") << "within ten seconds";
  iterate(*of, 3);
  EXPECT_EQ(told(), "rrfp run: 8 of 40 iterations, about 96 s left\n");
  iterate(*of, 1000);
  told();
  iterate(*of, 60);
  EXPECT_EQ(told(), "") << "a tenth of what has passed";
  iterate(*of, 60);
  EXPECT_NE(told(), "");
  iterate(*of, 1000, 29);
  told();
  of->finish();
  EXPECT_EQ(told(), "");
  EXPECT_EQ(sink_->taken, 40);
}

TEST_F(RunProgressText, AShortRunSaysNothing) {
  const auto of = progress(false);
  now_s += 1;
  of->on_getting_ready({0, 2, 1, 3});
  iterate(*of, 0, 40);
  of->finish();
  EXPECT_EQ(told(), "");
}

TEST_F(RunProgressText, AWarmUpIsToldAndDoesNotCountAsIterations) {
  const auto of = progress(false);
  of->on_getting_ready({0, 2, 0, 120});
  EXPECT_EQ(told(), "");
  now_s += 4;
  of->on_getting_ready({0, 2, 40, 120});
  EXPECT_EQ(told(), "rrfp run: warming up: 40 of 120 parts of rank 2, about 8 s left\n");
  now_s += 8;
  of->on_getting_ready({0, 2, 119, 120});
  EXPECT_EQ(told(), "");
  iterate(*of, 2);
  EXPECT_EQ(told(), "rrfp run: 1 of 40 iterations, about 78 s left\n");
}

TEST_F(RunProgressText, ATerminalHasOneLineWhichIsWiped) {
  const auto of = progress(true);
  iterate(*of, 1, 2);
  EXPECT_EQ(told(),
            "\r\x1b[Krrfp run: 1 of 40 iterations, about 39 s left"
            "\r\x1b[Krrfp run: 2 of 40 iterations, about 38 s left");
  of->finish();
  EXPECT_EQ(told(), "\r\x1b[K");
  iterate(*of, 1);
  EXPECT_EQ(told(), "") << "by a thread that was left behind";
}

TEST_F(RunProgressText, HandsOnWhatTheNextSinkSays) {
  sink_->answer = Error{"no room on the disk"};
  const auto of = progress(false);
  EXPECT_EQ(of->on_iteration({0, {}}).error().message, "no room on the disk");
}

}  // namespace
}  // namespace rrfp
