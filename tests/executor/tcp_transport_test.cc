// Goal: letters of a pair come once and in order whatever the kernel takes at
// once, payloads arrive whole, a wait ends when something comes, a lost process
// is an error that names it, and no bytes of a peer do harm.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>

#include "executor/clock.h"
#include "executor/tcp_link.h"
#include "scheduler_core/random.h"
#include "tests/executor/tcp_for_tests.h"

namespace rrfp {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

Letter letter_to(int to, std::int64_t number, std::size_t bytes = 0) {
  Letter letter;
  letter.tag = Tag::kMessage;
  letter.to = to;
  letter.sequence = number;
  letter.bytes = static_cast<std::int64_t>(bytes);
  return letter;
}

Payload payload_of(std::size_t size, std::uint8_t first) {
  Payload payload(size);
  for (std::size_t i = 0; i < size; ++i) payload.data()[i] = static_cast<std::byte>(first + i);
  return payload;
}

// The next thing that has come, waited for; false after ten seconds.
bool next(Transport& transport, Delivery& delivery) {
  const std::int64_t until_ns = MonotonicClock::read_ns() + 10 * kSecond;
  while (!transport.poll(delivery)) {
    if (MonotonicClock::read_ns() >= until_ns) return false;
    transport.wait(until_ns);
  }
  return true;
}

void flush(Transport& transport) {
  while (!transport.flushed()) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

TEST(TcpTransport, EveryPairKeepsItsOrderLettersAndPayloadsAlike) {
  constexpr int kProcesses = 4;
  constexpr int kLetters = 3000;
  const auto job = open_job(kProcesses);
  ASSERT_FALSE(job.empty());
  // Every seventh letter has a payload, of up to 20 KiB.
  const auto size_of = [](int number) {
    return number % 7 == 0 ? static_cast<std::size_t>(number) * 7 % 20'000 + 1 : 0;
  };
  in_each(kProcesses, [&](int self) {
    Transport& transport = job[static_cast<std::size_t>(self)]->transport();
    std::map<int, int> letters;   // by sender: so many have come
    std::map<int, int> payloads;  // by sender: the number of the next one
    int awaited = (kProcesses - 1) * (kLetters + (kLetters + 6) / 7);
    int sent = 0;
    Delivery delivery;
    while (awaited > 0 || sent < kLetters) {
      for (int burst = 0; burst < 100 && sent < kLetters; ++burst, ++sent) {
        for (int to = 0; to < kProcesses; ++to) {
          if (to == self) continue;
          const std::size_t size = size_of(sent);
          Letter letter = letter_to(to, sent, size);
          if (size == 0) {
            transport.tell(letter);
          } else {
            transport.send(letter, payload_of(size, static_cast<std::uint8_t>(sent)));
          }
        }
      }
      if (!transport.poll(delivery)) {
        if (sent == kLetters) transport.wait(MonotonicClock::read_ns() + kSecond);
        continue;
      }
      --awaited;
      const Letter& letter = delivery.letter;
      const std::size_t size = size_of(static_cast<int>(letter.sequence));
      if (delivery.event == Delivery::Event::kReceived) {
        int& number = payloads[letter.from];
        ASSERT_EQ(letter.sequence, number);
        number += 7;
        ASSERT_EQ(delivery.payload.size(), size);
        const Payload expected = payload_of(size, static_cast<std::uint8_t>(letter.sequence));
        ASSERT_EQ(std::memcmp(delivery.payload.data(), expected.data(), size), 0);
        continue;
      }
      ASSERT_EQ(letter.sequence, letters[letter.from]++);
      ASSERT_EQ(delivery.event == Delivery::Event::kAnnounced, size > 0);
      if (size > 0) transport.receive(letter);
    }
    flush(transport);
    job[static_cast<std::size_t>(self)]->finish();
  });
}

// More than any buffer of a kernel, in both directions at once.
TEST(TcpTransport, LargePayloadsPassEachOther) {
  constexpr std::size_t kSize = std::size_t{64} << 20;
  const auto job = open_job(2);
  ASSERT_FALSE(job.empty());
  in_each(2, [&](int self) {
    Transport& transport = job[static_cast<std::size_t>(self)]->transport();
    transport.send(letter_to(1 - self, 0, kSize),
                   payload_of(kSize, static_cast<std::uint8_t>(self)));
    transport.tell(letter_to(1 - self, 1));
    Delivery delivery;
    ASSERT_TRUE(next(transport, delivery));
    ASSERT_EQ(delivery.event, Delivery::Event::kAnnounced);
    transport.receive(delivery.letter);
    bool whole = false;
    bool letter = false;
    while (!whole || !letter) {
      ASSERT_TRUE(next(transport, delivery));
      if (delivery.event == Delivery::Event::kLetter) letter = true;
      if (delivery.event != Delivery::Event::kReceived) continue;
      whole = true;
      const Payload expected = payload_of(kSize, static_cast<std::uint8_t>(1 - self));
      EXPECT_EQ(std::memcmp(delivery.payload.data(), expected.data(), kSize), 0);
    }
    flush(transport);
    job[static_cast<std::size_t>(self)]->finish();
  });
}

// A sender of more than is read goes on with its own work.
TEST(TcpTransport, SendingNeverWaitsForTheReceiver) {
  const auto job = open_job(2);
  ASSERT_FALSE(job.empty());
  Transport& sender = job[0]->transport();
  constexpr int kLetters = 200;
  constexpr std::size_t kSize = 1 << 20;
  for (int i = 0; i < kLetters; ++i) sender.send(letter_to(1, i, kSize), Payload(kSize));
  EXPECT_FALSE(sender.flushed());
  std::thread receiver([&] {
    Transport& transport = job[1]->transport();
    Delivery delivery;
    for (int i = 0; i < kLetters; ++i) {
      ASSERT_TRUE(next(transport, delivery));
      ASSERT_EQ(delivery.letter.sequence, i);
    }
  });
  flush(sender);
  receiver.join();
  in_each(2, [&](int self) { job[static_cast<std::size_t>(self)]->finish(); });
}

TEST(TcpTransport, WaitEndsAtItsTimeAtALetterAndWhenWoken) {
  const auto job = open_job(2);
  ASSERT_FALSE(job.empty());
  Transport& receiver = job[0]->transport();
  Delivery delivery;
  EXPECT_FALSE(receiver.poll(delivery));
  std::int64_t begin_ns = MonotonicClock::read_ns();
  receiver.wait(begin_ns + 3'000'000);
  EXPECT_GE(MonotonicClock::read_ns(), begin_ns + 3'000'000);
  EXPECT_LT(MonotonicClock::read_ns(), begin_ns + kSecond);

  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    job[1]->transport().tell(letter_to(0, 0));
  });
  begin_ns = MonotonicClock::read_ns();
  ASSERT_TRUE(next(receiver, delivery));
  EXPECT_LT(MonotonicClock::read_ns(), begin_ns + 5 * kSecond);
  sender.join();

  std::thread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    receiver.wake();
  });
  EXPECT_FALSE(receiver.poll(delivery));
  begin_ns = MonotonicClock::read_ns();
  receiver.wait(begin_ns + 20 * kSecond);
  EXPECT_LT(MonotonicClock::read_ns(), begin_ns + 10 * kSecond);
  waker.join();
  // Also where it was before the wait.
  EXPECT_FALSE(receiver.poll(delivery));
  receiver.wake();
  receiver.wait(begin_ns + 20 * kSecond);
  EXPECT_LT(MonotonicClock::read_ns(), begin_ns + 10 * kSecond);
}

TEST(TcpTransport, ALostProcessIsNamedByTheOthersAndAWaitEnds) {
  auto job = open_job(3);
  ASSERT_FALSE(job.empty());
  EXPECT_TRUE(job[0]->transport().status().ok());
  job[2]->transport().tell(letter_to(0, 7));
  job[2].reset();
  for (const std::size_t survivor : {0U, 1U}) {
    Transport& transport = job[survivor]->transport();
    const std::int64_t begin_ns = MonotonicClock::read_ns();
    Delivery delivery;
    // What was said before the end is heard.
    if (survivor == 0) {
      ASSERT_TRUE(next(transport, delivery));
      EXPECT_EQ(delivery.letter.sequence, 7);
    }
    while (transport.status().ok() && MonotonicClock::read_ns() < begin_ns + 10 * kSecond) {
      if (!transport.poll(delivery)) transport.wait(begin_ns + 10 * kSecond);
    }
    ASSERT_FALSE(transport.status().ok());
    EXPECT_EQ(transport.status().error().message,
              "process 2 is lost: it has closed the connection");
    EXPECT_LT(MonotonicClock::read_ns(), begin_ns + 5 * kSecond);
    // It does no harm to write to it.
    for (int i = 0; i < 100; ++i) transport.tell(letter_to(2, i));
    EXPECT_TRUE(transport.flushed());
  }
}

TEST(TcpTransport, LeavingInOrderIsNoLoss) {
  const auto job = open_job(3);
  ASSERT_FALSE(job.empty());
  in_each(3, [&](int self) {
    ProcessSession& session = *job[static_cast<std::size_t>(self)];
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * self));
    session.finish();
    EXPECT_TRUE(session.transport().status().ok());
  });
}

// One that hangs does not keep the others that are done.
TEST(TcpTransport, LeavingDoesNotWaitForEverForTheOthers) {
  const int port = free_port();
  std::vector<TcpSettings> settings = {settings_for(0, 2, port), settings_for(1, 2, port)};
  settings[0].leave_patience_ns = kSecond / 5;
  const std::vector<OpenedSession> job = open_each(settings);
  for (const OpenedSession& session : job) ASSERT_TRUE(session.ok()) << session.error().message;
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  (*job[0])->finish();
  const std::int64_t took_ns = MonotonicClock::read_ns() - begin_ns;
  EXPECT_GE(took_ns, kSecond / 5);
  EXPECT_LT(took_ns, 5 * kSecond);
}

class NoOwner final : public TcpLink::Owner {
 public:
  void on_frame(const TcpFrame&, Payload) override {}
  void on_lost(int, const std::string&) override {}
};

// Nothing piles up for one that is gone, before its loss has been read.
TEST(TcpLink, WhatIsSentToAPeerThatIsGoneIsDropped) {
  boost::asio::io_context context;
  namespace ip = boost::asio::ip;
  ip::tcp::acceptor acceptor(context, ip::tcp::endpoint(ip::address_v4::loopback(), 0));
  ip::tcp::socket socket(context);
  socket.connect(acceptor.local_endpoint());
  ip::tcp::socket peer = acceptor.accept();
  peer.set_option(boost::asio::socket_base::linger(true, 0));
  NoOwner owner;
  TcpLink link(std::move(socket), 0, 1, owner);
  peer.close();
  TcpFrame frame;
  frame.letter.bytes = 4096;
  for (int sent = 0; sent < 1000; ++sent) link.send(frame, Payload(4096));
  EXPECT_TRUE(link.flushed());
}

// Process 0 of a job of two whose process 1 is the test itself.
class BadPeer {
 public:
  BadPeer() {
    const int port = free_port();
    OpenedSession opened = Error{"not opened"};
    std::thread host([&] { opened = open_tcp(settings_for(0, 2, port)); });
    peer_ = std::make_unique<RawPeer>(port);
    TcpHello hello;
    hello.process = 1;
    hello.processes = 2;
    peer_->say(&hello, sizeof(hello));
    TcpAnswer answer;
    std::array<TcpAddress, 2> addresses;
    EXPECT_TRUE(peer_->hear(&answer, sizeof(answer)));
    EXPECT_TRUE(peer_->hear(&addresses, sizeof(addresses)));
    EXPECT_EQ(answer.verdict, TcpVerdict::kWelcome);
    TcpFrame barrier = frame();
    barrier.kind = TcpFrame::Kind::kBarrier;
    say(barrier);
    host.join();
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    if (opened.ok()) session_ = std::move(*opened);
  }

  static TcpFrame frame() {
    TcpFrame made;
    made.letter.from = 1;
    return made;
  }
  void say(const TcpFrame& words) { peer_->say(&words, sizeof(words)); }
  RawPeer& raw() { return *peer_; }
  int deliveries() const { return deliveries_; }

  // What process 0 makes of it; "" where it takes no offence within half a second.
  std::string status() {
    if (session_ == nullptr) return "not opened";
    Transport& transport = session_->transport();
    const std::int64_t until_ns = MonotonicClock::read_ns() + kSecond / 2;
    Delivery delivery;
    while (transport.status().ok() && MonotonicClock::read_ns() < until_ns) {
      if (transport.poll(delivery)) {
        ++deliveries_;
        if (delivery.event == Delivery::Event::kAnnounced) transport.receive(delivery.letter);
      } else {
        transport.wait(until_ns);
      }
    }
    return transport.status().ok() ? "" : transport.status().error().message;
  }

 private:
  std::unique_ptr<RawPeer> peer_;
  std::unique_ptr<ProcessSession> session_;
  int deliveries_ = 0;
};

// What process 0 says of a frame that is wrong in one field.
std::string verdict_on(const std::function<void(TcpFrame&)>& spoil) {
  BadPeer peer;
  TcpFrame wrong = BadPeer::frame();
  spoil(wrong);
  peer.say(wrong);
  return peer.status();
}

TEST(TcpBadPeer, WhatIsWrongWithAFrameIsSaid) {
  const std::string begin = "process 1 is lost: it has sent a frame whose ";
  EXPECT_EQ(verdict_on([](TcpFrame& frame) { frame.kind = static_cast<TcpFrame::Kind>(77); }),
            begin + "kind is 77");
  EXPECT_EQ(verdict_on([](TcpFrame& frame) { frame.letter.bytes = kMostTcpPayload + 1; }),
            begin + "length is 4294967297");
  EXPECT_EQ(verdict_on([](TcpFrame& frame) { frame.letter.bytes = -1; }), begin + "length is -1");
  EXPECT_EQ(verdict_on([](TcpFrame& frame) { frame.letter.from = 0; }), begin + "sender is 0");
  EXPECT_EQ(verdict_on([](TcpFrame& frame) { frame.letter.to = 1; }), begin + "receiver is 1");
  EXPECT_EQ(verdict_on([](TcpFrame& frame) { frame.letter.tag = static_cast<Tag>(200); }),
            begin + "tag is 200");
  EXPECT_EQ(verdict_on([](TcpFrame& frame) { frame.number = -2; }), begin + "number is -2");
  const auto part_of_exchange = [](int number) {
    return [number](TcpFrame& frame) {
      frame.kind = TcpFrame::Kind::kPart;
      frame.number = number;
    };
  };
  EXPECT_EQ(verdict_on(part_of_exchange(1)),
            "process 1 is lost: it has sent a part of exchange 1 where exchange 0 comes next");
  EXPECT_EQ(verdict_on(part_of_exchange(0)), "") << "it may be there first";
  EXPECT_EQ(verdict_on([](TcpFrame&) {}), "") << "nothing is wrong with it";
}

TEST(TcpBadPeer, EndsInTheMiddleOfAPayload) {
  BadPeer peer;
  TcpFrame cut = BadPeer::frame();
  cut.letter.bytes = 1000;
  peer.say(cut);
  peer.raw().say("abc", 3);
  peer.raw().stop_talking();
  EXPECT_EQ(peer.status(), "process 1 is lost: it has closed the connection");
  EXPECT_EQ(peer.deliveries(), 0);
}

TEST(TcpBadPeer, FramesMayComeInPieces) {
  BadPeer peer;
  TcpFrame large = BadPeer::frame();
  large.letter.bytes = 100'000;
  std::vector<std::byte> bytes(sizeof(large) + 100'000);
  std::memcpy(bytes.data(), &large, sizeof(large));
  for (std::size_t at = 0; at < bytes.size(); at += 37) {
    peer.raw().say(bytes.data() + at, std::min<std::size_t>(37, bytes.size() - at));
  }
  peer.say(BadPeer::frame());
  EXPECT_EQ(peer.status(), "");
  EXPECT_EQ(peer.deliveries(), 3);  // announced, the letter behind it, received
}

// Whatever the bytes, process 0 lives on, and says who sent them: frames with
// some bytes changed, so that they get past some of the checks.
TEST(TcpBadPeer, RandomBytesDoNoHarm) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    RandomStream random({seed, 0, 0, 0});
    BadPeer peer;
    for (int i = 0; i < 30; ++i) {
      TcpFrame changed = BadPeer::frame();
      auto* bytes = reinterpret_cast<std::uint8_t*>(&changed);
      const std::uint64_t changes = random.below(4);
      for (std::uint64_t change = 0; change < changes; ++change) {
        bytes[random.below(sizeof(changed))] = static_cast<std::uint8_t>(random.below(256));
      }
      changed.letter.bytes &= 0xfff;
      peer.say(changed);
    }
    peer.raw().stop_talking();
    EXPECT_NE(peer.status().find("process 1 "), std::string::npos) << "seed " << seed;
  }
}

}  // namespace
}  // namespace rrfp
