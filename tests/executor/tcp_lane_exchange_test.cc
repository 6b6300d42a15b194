// Goal: over TCP too every lane gets what all lanes of its group brought, in
// lane order, beside the letters of the transport; and a lane that does not
// come is an error and no hang.
#include <gtest/gtest.h>

#include "executor/clock.h"
#include "tests/executor/payloads_for_tests.h"
#include "tests/executor/tcp_for_tests.h"

namespace rrfp {
namespace {

constexpr std::int64_t kLong = 60'000'000'000;

std::string message_of(const Result<std::vector<Payload>>& all) {
  return all.ok() ? "no error" : all.error().message;
}

// Two groups of three lanes, whose lanes are not in the order of processes.
TEST(TcpLaneExchange, GivesAllPartsInLaneOrderBesideLetters) {
  constexpr int kProcesses = 6;
  constexpr int kLanes = 3;
  const auto job = open_job(kProcesses);
  ASSERT_FALSE(job.empty());
  in_each(kProcesses, [&](int self) {
    ProcessSession& session = *job[static_cast<std::size_t>(self)];
    Transport& transport = session.transport();
    const int group = self % 2;
    const int lane = kLanes - 1 - self / 2;
    const int other = (self + 1) % kProcesses;
    // Several exchanges at once, and new ones, do not mix.
    for (int made = 0; made < 3; ++made) {
      const auto exchange = session.lane_exchange(group, lane, kLong);
      const auto everyone = session.lane_exchange(0, self, kLong);
      ASSERT_EQ(exchange->lanes(), kLanes);
      ASSERT_EQ(everyone->lanes(), kProcesses);
      for (int round = 0; round < 100; ++round) {
        Letter letter;
        letter.to = other;
        letter.bytes = 5000;
        transport.send(letter, Payload(5000));
        const auto all = exchange->exchange(payload_of(group * 1'000'000 + round * 10 + lane));
        ASSERT_TRUE(all.ok()) << message_of(all);
        for (int of = 0; of < kLanes; ++of) {
          ASSERT_EQ(value_of((*all)[static_cast<std::size_t>(of)]),
                    group * 1'000'000 + round * 10 + of);
        }
      }
      const auto all = everyone->exchange(payload_of(self));
      ASSERT_TRUE(all.ok()) << message_of(all);
      for (int of = 0; of < kProcesses; ++of) {
        ASSERT_EQ(value_of((*all)[static_cast<std::size_t>(of)]), of);
      }
    }
    Delivery delivery;
    int received = 0;
    while (received < 300) {
      if (!transport.poll(delivery)) {
        transport.wait(MonotonicClock::read_ns() + 1'000'000'000);
      } else if (delivery.event == Delivery::Event::kAnnounced) {
        transport.receive(delivery.letter);
      } else {
        ++received;
      }
    }
    session.finish();
  });
}

TEST(TcpLaneExchange, PartsMayBeEmptyOrLarge) {
  const auto job = open_job(2);
  ASSERT_FALSE(job.empty());
  in_each(2, [&](int self) {
    ProcessSession& session = *job[static_cast<std::size_t>(self)];
    const auto exchange = session.lane_exchange(0, self, kLong);
    for (const std::size_t size : {std::size_t{0}, std::size_t{8} << 20}) {
      Payload mine(size);
      if (size > 0) std::memset(mine.data(), self + 1, size);
      const auto all = exchange->exchange(std::move(mine));
      ASSERT_TRUE(all.ok()) << message_of(all);
      for (std::size_t lane = 0; lane < 2; ++lane) {
        ASSERT_EQ((*all)[lane].size(), size);
        if (size == 0) continue;
        EXPECT_EQ((*all)[lane].data()[size - 1], static_cast<std::byte>(lane + 1));
      }
    }
    session.finish();
  });
}

// What lane 0 of two is told when process 1 does `instead` of an exchange.
template <typename Instead>
std::string error_of_lane_0(std::int64_t patience_ns, const Instead& instead) {
  auto job = open_job(2);
  std::string message;
  if (job.empty()) return message;
  in_each(2, [&](int self) {
    std::unique_ptr<ProcessSession>& session = job[static_cast<std::size_t>(self)];
    const auto exchange = session->lane_exchange(0, self, patience_ns);
    if (self == 0) {
      message = message_of(exchange->exchange(payload_of(0)));
    } else {
      instead(*exchange);
    }
  });
  return message;
}

TEST(TcpLaneExchange, ALaneThatDoesNotComeIsAnError) {
  EXPECT_EQ(error_of_lane_0(50'000'000, [](LaneExchange&) {}),
            "lane 0 waited in vain for process 1 of its group");
}

TEST(TcpLaneExchange, ALaneThatLeavesIsNotWaitedFor) {
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  EXPECT_EQ(error_of_lane_0(kLong,
                            [](LaneExchange& exchange) {
                              std::this_thread::sleep_for(std::chrono::milliseconds(20));
                              exchange.leave();
                            }),
            "lane 0 waited for a lane of its group that has ended");
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, kLong / 2);
}

// One that did not come once is not waited for again: what comes of it late is of another round.
TEST(TcpLaneExchange, WhatFailedOnceFailsForGoodAndAtOnce) {
  const auto job = open_job(2);
  ASSERT_FALSE(job.empty());
  std::atomic<bool> over = false;
  in_each(2, [&](int self) {
    const auto exchange = job[static_cast<std::size_t>(self)]->lane_exchange(0, self, kLong);
    if (self == 1) {
      while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
    const std::int64_t begin_ns = MonotonicClock::read_ns();
    exchange->next_waits_at_most(50'000'000);
    const std::string first = message_of(exchange->exchange(payload_of(0)));
    EXPECT_EQ(first, "lane 0 waited in vain for process 1 of its group");
    EXPECT_EQ(message_of(exchange->exchange(payload_of(0))), first);
    EXPECT_LT(MonotonicClock::read_ns() - begin_ns, kLong / 2);
    over = true;
  });
}

TEST(TcpLaneExchange, PartsOfDifferentSizesAreAnError) {
  EXPECT_EQ(
      error_of_lane_0(
          kLong, [](LaneExchange& exchange) { EXPECT_FALSE(exchange.exchange(Payload(3)).ok()); }),
      "the lanes of a group brought parts of different sizes");
}

TEST(TcpLaneExchange, ALostLaneIsAnErrorAtOnceAndNothingIsBegunWithoutIt) {
  auto job = open_job(2);
  ASSERT_FALSE(job.empty());
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  in_each(2, [&](int self) {
    std::unique_ptr<ProcessSession>& session = job[static_cast<std::size_t>(self)];
    auto exchange = session->lane_exchange(0, self, kLong);
    if (self == 1) {
      exchange.reset();
      session.reset();
      return;
    }
    const std::string message = message_of(exchange->exchange(payload_of(0)));
    EXPECT_EQ(message, "lane 0 waited for process 1, which is lost");
    const auto next = session->lane_exchange(0, self, kLong);
    EXPECT_EQ(message_of(next->exchange(payload_of(0))),
              "lane 0 waited for process 1, which is lost");
  });
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, kLong / 2);
}

// Whoever it is; here the last, while the first does not come yet.
TEST(TcpLaneExchange, ALostMemberIsNoticedBeforeItsTurn) {
  auto job = open_job(3);
  ASSERT_FALSE(job.empty());
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  std::atomic<bool> over = false;
  in_each(3, [&](int self) {
    std::unique_ptr<ProcessSession>& session = job[static_cast<std::size_t>(self)];
    auto exchange = session->lane_exchange(0, self, kLong);
    if (self == 2) {
      exchange.reset();
      session.reset();
    } else if (self == 1) {
      EXPECT_EQ(message_of(exchange->exchange(payload_of(1))),
                "lane 1 waited for process 2, which is lost");
      over = true;
    } else {
      while (!over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, kLong / 2);
}

// What a look says once it says something.
std::string look_of(LaneExchange& exchange) {
  const std::int64_t give_up_ns = MonotonicClock::read_ns() + kLong;
  while (MonotonicClock::read_ns() < give_up_ns) {
    if (const Result<void> well = exchange.look(); !well.ok()) return well.error().message;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return "nothing";
}

TEST(TcpLaneExchange, ALookTellsOfALossAndDoesNotWait) {
  auto job = open_job(2);
  ASSERT_FALSE(job.empty());
  std::atomic<bool> looked = false;
  in_each(2, [&](int self) {
    std::unique_ptr<ProcessSession>& session = job[static_cast<std::size_t>(self)];
    auto exchange = session->lane_exchange(0, self, kLong);
    if (self == 1) {
      while (!looked) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      exchange.reset();
      session.reset();
      return;
    }
    EXPECT_TRUE(exchange->look().ok());
    looked = true;
    EXPECT_EQ(look_of(*exchange), "process 1 is lost: it has closed the connection");
  });
}

TEST(TcpLaneExchange, AWarningIsSeenAtOnceAndTheExchangeStillTakesPlace) {
  auto job = open_job(2);
  ASSERT_FALSE(job.empty());
  in_each(2, [&](int self) {
    const auto exchange = job[static_cast<std::size_t>(self)]->lane_exchange(0, self, kLong);
    if (self == 1) {
      exchange->warn("its device is broken");
    } else {
      EXPECT_EQ(look_of(*exchange), "process 1: its device is broken");
    }
    EXPECT_TRUE(exchange->exchange(payload_of(self)).ok());
  });
}

}  // namespace
}  // namespace rrfp
