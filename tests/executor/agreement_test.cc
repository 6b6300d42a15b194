// Goal: what one process of a job cannot do, or does otherwise than the first,
// is told to all of them in the same words, whatever its length.
#include "executor/agreement.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "executor/watched_exchange.h"
#include "tests/executor/tcp_for_tests.h"

namespace rrfp {
namespace {

// What `ask(everyone, process)` gives in each process of a job.
template <typename Ask>
std::vector<std::string> in_a_job(int processes, const Ask& ask) {
  const std::vector<std::unique_ptr<ProcessSession>> job = open_job(processes);
  std::vector<std::string> told(job.size());
  in_each(static_cast<int>(job.size()), [&](int process) {
    ProcessSession& session = *job[static_cast<std::size_t>(process)];
    const auto everyone = session.lane_exchange(0, process, 20'000'000'000);
    const Result<std::string> shared = ask(*everyone, process);
    told[static_cast<std::size_t>(process)] = shared.ok() ? *shared : shared.error().message;
    session.finish();
  });
  return told;
}

// In three processes, the last of which has `other`.
std::string difference(const Terms& first, const Terms& other) {
  const std::vector<std::string> told = in_a_job(3, [&](LaneExchange& everyone, int process) {
    return shared_difference(everyone, process == 2 ? other : first);
  });
  for (const std::string& text : told) EXPECT_EQ(text, told.front());
  return told.empty() ? "" : told.front();
}

constexpr const char* kBegin = "the processes of this job were not started alike: ";

TEST(Agreement, ReasonsAreToldWithTheProcessThatHasThem) {
  const auto reasons = [](const std::vector<std::string>& of) {
    return in_a_job(static_cast<int>(of.size()), [&](LaneExchange& everyone, int process) {
      const std::string& mine = of[static_cast<std::size_t>(process)];
      return shared_reason(everyone, mine.empty() ? Result<void>() : Error{mine});
    });
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(reasons({"", "", ""}), Texts({"", "", ""}));
  EXPECT_EQ(reasons({"", "a", "b"}), Texts(3, "process 1: a"));
  EXPECT_EQ(reasons({"a", "", "a"}), Texts(3, "process 0: a"));
  EXPECT_EQ(reasons({"a", "a", "a"}), Texts(3, "a"));
  EXPECT_EQ(reasons({"", std::string(5000, 'x')}),
            Texts(2, "process 1: " + std::string(1023, 'x')));
}

TEST(Agreement, EqualTermsAreNoDifference) {
  const Terms terms = {{"--seed", "7"}, {"--json", std::nullopt}, {"--check", ""}};
  EXPECT_EQ(difference(terms, terms), "");
}

TEST(Agreement, TheFirstDifferenceIsNamedWithBothValues) {
  EXPECT_EQ(difference({{"--a", "1"}, {"--seed", "7"}, {"--b", "1"}},
                       {{"--a", "1"}, {"--seed", "8"}, {"--b", "2"}}),
            std::string(kBegin) + "process 2 has --seed 8, process 0 has --seed 7");
  EXPECT_EQ(difference({{"--seed", std::nullopt}}, {{"--seed", "8"}}),
            std::string(kBegin) + "process 2 has --seed 8, process 0 has no --seed");
  EXPECT_EQ(difference({{"--check", ""}}, {{"--check", std::nullopt}}),
            std::string(kBegin) + "process 2 has no --check, process 0 has --check");
}

TEST(Agreement, LongValuesAreToldInShortAndComparedInFull) {
  const std::string text(1000, 'x');
  const std::string told = difference({{"--inject", text}}, {{"--inject", text + "y"}});
  EXPECT_EQ(told.find(kBegin), 0U) << told;
  EXPECT_NE(told.find("xxx... (1009 bytes, fingerprint "), std::string::npos) << told;
  EXPECT_NE(told.find("xxx... (1010 bytes, fingerprint "), std::string::npos) << told;
}

// A value with line ends cannot pass for several terms.
TEST(Agreement, ValuesWithLineEndsAreOneTerm) {
  EXPECT_EQ(
      difference({{"--policy", "a\nb"}, {"--seed", "1"}}, {{"--policy", "a\nb"}, {"--seed", "2"}}),
      std::string(kBegin) + "process 2 has --seed 2, process 0 has --seed 1");
}

// What two processes are told, and what the exchange gives, where the second comes after `late_ms`.
struct Waited {
  std::string told;
  std::string error;
};
std::vector<Waited> wait_for_the_second(int late_ms, std::int64_t patience_ns) {
  const std::vector<std::unique_ptr<ProcessSession>> job = open_job(2);
  std::vector<Waited> waited(2);
  in_each(2, [&](int process) {
    Waited& of = waited[static_cast<std::size_t>(process)];
    ProcessSession& session = *job[static_cast<std::size_t>(process)];
    WatchedExchange everyone(
        session.lane_exchange(0, process, patience_ns), process,
        [&of](const std::string& text) { of.told += text; }, 1'000'000'000);
    everyone.waits_for_others("to say whether it can go on");
    if (process == 1) std::this_thread::sleep_for(std::chrono::milliseconds(late_ms));
    const Result<void> all = agree(everyone, {});
    if (!all.ok()) of.error = all.error().message;
    session.finish();
  });
  return waited;
}

TEST(Agreement, WhoIsWaitedForIsNamed) {
  const std::vector<Waited> waited = wait_for_the_second(1'500, 20'000'000'000);
  EXPECT_EQ(waited[0].told, "process 0 of 2 waits for process 1 to say whether it can go on (1 s)");
  EXPECT_EQ(waited[0].error, "");
  EXPECT_EQ(waited[1].told, "");
  EXPECT_EQ(wait_for_the_second(0, 20'000'000'000)[0].told, "");
}

TEST(Agreement, WhoDoesNotComeIsNamed) {
  const std::vector<Waited> waited = wait_for_the_second(2'000, 1'200'000'000);
  EXPECT_EQ(waited[0].told, "process 0 of 2 waits for process 1 to say whether it can go on (1 s)");
  EXPECT_EQ(waited[0].error,
            "lane 0 waited in vain for process 1 of its group, to say whether it can go on");
}

TEST(Agreement, ContentsDifferWhereABitDoes) {
  EXPECT_EQ(describe_content("text"), describe_content("text"));
  EXPECT_NE(describe_content("text"), describe_content("tex\x75"));
  EXPECT_NE(describe_content(""), describe_content(std::string(1, '\0')));
  EXPECT_EQ(describe_content("text").find("4 bytes, fingerprint "), 0U);
}

}  // namespace
}  // namespace rrfp
