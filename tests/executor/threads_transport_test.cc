// Goal: letters of a pair come once and in order, full queue or not, payloads
// arrive whole, and a wait ends when something comes or the time is over.
#include "executor/threads_transport.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace rrfp {
namespace {

constexpr std::array<std::pair<int, int>, 2> kPair = {{{0, 1}, {1, 0}}};

Letter letter_number(std::int64_t number) {
  Letter letter;
  letter.to = 1;
  letter.sequence = number;
  return letter;
}

TEST(ThreadsTransport, KeepsOrderWhenAQueueIsFull) {
  ThreadsNetwork network(2, kPair, {0, 4});
  Transport& sender = network.transport(0);
  Transport& receiver = network.transport(1);
  for (int i = 0; i < 50; ++i) sender.tell(letter_number(i));
  EXPECT_FALSE(sender.flushed());
  Delivery delivery;
  for (int i = 0; i < 50; ++i) {
    while (!receiver.poll(delivery)) sender.flushed();
    EXPECT_EQ(delivery.letter.sequence, i);
  }
  EXPECT_FALSE(receiver.poll(delivery));
  EXPECT_TRUE(sender.flushed());
}

TEST(ThreadsTransport, PayloadIsAnnouncedThenReceived) {
  ThreadsNetwork network(2, kPair, {});
  Letter letter = letter_number(0);
  Payload payload(3);
  payload.data()[2] = std::byte{7};
  letter.bytes = 3;
  network.transport(0).send(letter, std::move(payload));
  network.transport(0).tell(letter_number(1));
  Transport& receiver = network.transport(1);
  Delivery delivery;
  ASSERT_TRUE(receiver.poll(delivery));
  EXPECT_EQ(delivery.event, Delivery::Event::kAnnounced);
  receiver.receive(delivery.letter);
  ASSERT_TRUE(receiver.poll(delivery));
  ASSERT_EQ(delivery.event, Delivery::Event::kReceived);
  ASSERT_EQ(delivery.payload.size(), 3U);
  EXPECT_EQ(delivery.payload.data()[2], std::byte{7});
  ASSERT_TRUE(receiver.poll(delivery));
  EXPECT_EQ(delivery.event, Delivery::Event::kLetter);
  EXPECT_EQ(delivery.letter.sequence, 1);
}

// A payload that nobody receives is freed with the network (run under asan).
TEST(ThreadsTransport, UnreceivedPayloadsAreFreed) {
  ThreadsNetwork network(2, kPair, {0, 1});
  for (int i = 0; i < 4; ++i) {
    Letter letter = letter_number(i);
    letter.bytes = 8;
    network.transport(0).send(letter, Payload(8));
  }
  Delivery delivery;
  EXPECT_TRUE(network.transport(1).poll(delivery));
}

TEST(ThreadsTransport, WaitEndsAtItsTimeOrAtALetter) {
  ThreadsNetwork network(2, kPair, {});
  Transport& receiver = network.transport(1);
  Delivery delivery;
  EXPECT_FALSE(receiver.poll(delivery));
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  receiver.wait(begin_ns + 3'000'000);
  EXPECT_GE(MonotonicClock::read_ns(), begin_ns + 3'000'000);
  std::thread sender([&] { network.transport(0).tell(letter_number(0)); });
  while (!receiver.poll(delivery)) receiver.wait(kNever);
  sender.join();
  std::thread waker([&] { receiver.wake(); });
  EXPECT_FALSE(receiver.poll(delivery));
  receiver.wait(MonotonicClock::read_ns() + 10'000'000'000);
  waker.join();
  EXPECT_LT(MonotonicClock::read_ns(), begin_ns + 9'000'000'000);
}

TEST(ThreadsTransport, TwoThreadsExchangeManyLettersInOrder) {
  ThreadsNetwork network(2, kPair, {0, 8});
  constexpr int kLetters = 20'000;
  const auto talk = [&network](int self) {
    Transport& transport = network.transport(self);
    Delivery delivery;
    int sent = 0;
    int received = 0;
    while (received < kLetters || sent < kLetters || !transport.flushed()) {
      if (sent < kLetters && sent < received + 100) {
        Letter letter = letter_number(sent++);
        letter.to = 1 - self;
        transport.tell(letter);
      }
      while (transport.poll(delivery)) {
        EXPECT_EQ(delivery.letter.sequence, received);
        ++received;
      }
      if (sent == kLetters || sent == received + 100) {
        transport.wait(MonotonicClock::read_ns() + 1'000'000);
      }
    }
  };
  std::thread other([&] { talk(1); });
  talk(0);
  other.join();
}

}  // namespace
}  // namespace rrfp
