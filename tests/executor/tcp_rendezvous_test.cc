// Goal: the processes of a job find each other over TCP whatever the order in
// which they come; strangers and processes of other jobs are turned away
// without harm; and whoever cannot get in says why.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <future>

#include "executor/clock.h"
#include "tests/executor/tcp_for_tests.h"

namespace rrfp {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

void finish(std::vector<OpenedSession>& sessions) {
  in_each(static_cast<int>(sessions.size()), [&](int process) {
    OpenedSession& session = sessions[static_cast<std::size_t>(process)];
    if (session.ok()) (*session)->finish();
  });
}

bool has(const OpenedSession& session, const std::string& part) {
  return !session.ok() && session.error().message.find(part) != std::string::npos;
}

std::string message_of(const OpenedSession& session) {
  return session.ok() ? "no error" : session.error().message;
}

TEST(TcpRendezvous, ProcessesMayComeInAnyOrder) {
  const int port = free_port();
  std::vector<OpenedSession> sessions;
  for (int i = 0; i < 4; ++i) sessions.emplace_back(Error{"not opened"});
  in_each(4, [&](int process) {
    // The last first, process 0 after all others have looked for it.
    std::this_thread::sleep_for(std::chrono::milliseconds(40 * (3 - process)));
    sessions[static_cast<std::size_t>(process)] = open_tcp(settings_for(process, 4, port));
  });
  for (int process = 0; process < 4; ++process) {
    const OpenedSession& session = sessions[static_cast<std::size_t>(process)];
    ASSERT_TRUE(session.ok()) << session.error().message;
    EXPECT_EQ((*session)->transport().endpoint(), process);
    EXPECT_EQ((*session)->transport().endpoints(), 4);
    EXPECT_FALSE((*session)->transport().shares_clock());
  }
  finish(sessions);
}

TEST(TcpRendezvous, OneProcessIsAJob) {
  OpenedSession session = open_tcp(settings_for(0, 1, free_port()));
  ASSERT_TRUE(session.ok()) << session.error().message;
  EXPECT_EQ((*session)->transport().endpoints(), 1);
  (*session)->finish();
}

TEST(TcpRendezvous, WhoDoesNotComeIsNamedByAll) {
  const int port = free_port();
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  const std::vector<OpenedSession> sessions = open_each(
      {settings_for(0, 4, port, 300 * kMillisecond), settings_for(2, 4, port, 300 * kMillisecond)});
  EXPECT_TRUE(has(sessions[0], "process 0 of 4 waited in vain at port " + std::to_string(port) +
                                   " for process 1, 3 of 4"))
      << message_of(sessions[0]);
  EXPECT_TRUE(has(sessions[1], "2 of 4 processes did not come, process 1 among them"))
      << message_of(sessions[1]);
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 5'000 * kMillisecond);
}

TEST(TcpRendezvous, NobodyAtTheAddressIsSaid) {
  const int port = free_port();
  const OpenedSession session = open_tcp(settings_for(1, 2, port, 100 * kMillisecond));
  EXPECT_TRUE(has(session, "process 1 of 2 cannot reach process 0 at 127.0.0.1 port " +
                               std::to_string(port) + " (MASTER_ADDR, MASTER_PORT): "))
      << message_of(session);
}

TEST(TcpRendezvous, AnAddressThatDoesNotResolveIsSaid) {
  TcpSettings settings = settings_for(1, 2, free_port(), 100 * kMillisecond);
  settings.address = "no-such-host.invalid";
  const OpenedSession session = open_tcp(settings);
  EXPECT_TRUE(has(session, "process 1 of 2 cannot reach process 0 at no-such-host.invalid port " +
                               std::to_string(settings.port) +
                               " (MASTER_ADDR, MASTER_PORT): the name does not resolve: "))
      << message_of(session);
}

TEST(TcpRendezvous, ASlowMeetingIsToldOf) {
  TcpSettings settings = settings_for(0, 3, free_port(), 2'500 * kMillisecond);
  std::vector<std::string> told;
  settings.on_slow = [&told](const std::string& text) { told.push_back(text); };
  EXPECT_FALSE(open_tcp(settings).ok());
  EXPECT_EQ(told,
            std::vector<std::string>({"TCP: process 0 of 3 waits at port " +
                                      std::to_string(settings.port) + " for process 1, 2 of 3"}));
}

// The words of a process that has come as far as to be counted.
TcpHello hello_of(int process, int processes) {
  TcpHello hello;
  hello.process = process;
  hello.processes = processes;
  return hello;
}

TEST(TcpRendezvous, OneThatLeavesAgainIsToldAndAnotherTakesItsPlace) {
  const int port = free_port();
  TcpSettings host = settings_for(0, 3, port);
  std::promise<std::string> left;
  host.on_slow = [&left](const std::string& text) { left.set_value(text); };
  std::vector<OpenedSession> sessions;
  for (int i = 0; i < 3; ++i) sessions.emplace_back(Error{"not opened"});
  std::thread waiting([&] { sessions[0] = open_tcp(host); });
  {
    RawPeer first(port);
    const TcpHello hello = hello_of(1, 3);
    first.say(&hello, sizeof(hello));
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }
  std::future<std::string> told = left.get_future();
  const bool was_told = told.wait_for(std::chrono::milliseconds(1500)) == std::future_status::ready;
  EXPECT_EQ(was_told ? told.get() : "nothing",
            "TCP: process 0 of 3 waits, for process 1 from 127.0.0.1 came and left");
  in_each(2, [&](int i) {
    sessions[static_cast<std::size_t>(i + 1)] = open_tcp(settings_for(i + 1, 3, port));
  });
  waiting.join();
  for (const OpenedSession& session : sessions) EXPECT_TRUE(session.ok()) << message_of(session);
  finish(sessions);
}

// A process that has met process 0 waits for a third when the first dies.
TEST(TcpRendezvous, TheLossOfOneThatWasMetEndsTheWait) {
  boost::asio::io_context context;
  namespace ip = boost::asio::ip;
  ip::tcp::acceptor acceptor(context, ip::tcp::endpoint(ip::address_v4::loopback(), 0));
  std::thread host([&] {
    ip::tcp::socket socket = acceptor.accept();
    TcpHello hello;
    boost::asio::read(socket, boost::asio::buffer(&hello, sizeof(hello)));
    TcpAnswer answer;
    answer.processes = 3;
    answer.key = 7;
    const std::array<TcpAddress, 3> addresses{};
    boost::asio::write(socket, boost::asio::buffer(&answer, sizeof(answer)));
    boost::asio::write(socket, boost::asio::buffer(addresses));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  const OpenedSession session = open_tcp(settings_for(1, 3, acceptor.local_endpoint().port()));
  host.join();
  EXPECT_TRUE(has(session, "waited in vain for process 2 of 3: process 0 is lost"))
      << message_of(session);
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 2'000 * kMillisecond);
}

// One that is taken for process 1 of 2, says so much and then nothing more.
void stand_in(RawPeer& peer, const std::vector<TcpFrame>& said) {
  const TcpHello hello = hello_of(1, 2);
  peer.say(&hello, sizeof(hello));
  TcpAnswer answer;
  std::array<TcpAddress, 2> addresses;
  EXPECT_TRUE(peer.hear(&answer, sizeof(answer)));
  EXPECT_TRUE(peer.hear(addresses.data(), sizeof(addresses)));
  for (const TcpFrame& frame : said) peer.say(&frame, sizeof(frame));
}

TcpFrame frame_of_1(TcpFrame::Kind kind) {
  TcpFrame frame;
  frame.kind = kind;
  frame.letter.from = 1;
  frame.letter.to = 0;
  return frame;
}

// A process may fall silent at any point, and its connection stay open.
TEST(TcpRendezvous, OneThatIsSilentOnceItHasMetUsIsToldOfAndGivenUp) {
  TcpSettings settings = settings_for(0, 2, free_port(), 2'300 * kMillisecond);
  std::vector<std::string> told;
  settings.on_slow = [&told](const std::string& text) { told.push_back(text); };
  OpenedSession session = Error{"not opened"};
  std::thread host([&] { session = open_tcp(settings); });
  RawPeer peer(settings.port);
  stand_in(peer, {});
  host.join();
  EXPECT_TRUE(
      has(session, "process 0 of 2 waited in vain for process 1, which has not met all others"))
      << message_of(session);
  EXPECT_EQ(told, std::vector<std::string>({"TCP: process 0 of 2 waits for process 1, which has "
                                            "not met all others"}));
}

TEST(TcpRendezvous, OneThatIsSilentOnceItHasMetAllIsToldOfAndGivenUp) {
  TcpSettings settings = settings_for(0, 2, free_port(), 2'300 * kMillisecond);
  std::vector<std::string> told;
  settings.on_slow = [&told](const std::string& text) { told.push_back(text); };
  OpenedSession session = Error{"not opened"};
  std::thread host([&] { session = open_tcp(settings); });
  RawPeer peer(settings.port);
  stand_in(peer, {frame_of_1(TcpFrame::Kind::kBarrier)});
  host.join();
  ASSERT_TRUE(session.ok()) << message_of(session);
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  const auto exchange = (*session)->lane_exchange(0, 0, kMillisecond);
  EXPECT_LT(MonotonicClock::read_ns() - begin_ns, 10'000 * kMillisecond);
  const Result<std::vector<Payload>> all = exchange->exchange(Payload(1));
  EXPECT_EQ(all.ok() ? "no error" : all.error().message,
            "lane 0 waited in vain for process 1 of its group");
  EXPECT_EQ(told, std::vector<std::string>({"TCP: process 0 of 2 waits for process 1, which has "
                                            "met all others and does not go on"}));
}

TEST(TcpRendezvous, TheLimitOfOpenFilesIsRaisedWhereItMayBe) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 700) GTEST_SKIP() << "no more than " << before.rlim_max << " files here";
  rlimit low = before;
  low.rlim_cur = 50;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  OpenedSession session = open_tcp(settings_for(0, 1, free_port()));
  rlimit after = {};
  getrlimit(RLIMIT_NOFILE, &after);
  setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_TRUE(session.ok()) << session.error().message;
  EXPECT_EQ(after.rlim_cur, 576U);
  (*session)->finish();
}

TEST(TcpRendezvous, APortInUseIsSaid) {
  boost::asio::io_context context;
  namespace ip = boost::asio::ip;
  const ip::tcp::acceptor acceptor(context, ip::tcp::endpoint(ip::tcp::v4(), 0));
  const int port = acceptor.local_endpoint().port();
  const OpenedSession session = open_tcp(settings_for(0, 2, port, 100 * kMillisecond));
  EXPECT_TRUE(has(session, "cannot listen at port " + std::to_string(port))) << message_of(session);
}

// Others are in the way while a job of two meets: each test of `intrude` gets
// the port before the job is complete.
template <typename Intrude>
void meet_despite(const Intrude& intrude) {
  const int port = free_port();
  std::vector<OpenedSession> sessions;
  for (int i = 0; i < 2; ++i) sessions.emplace_back(Error{"not opened"});
  std::thread host([&] { sessions[0] = open_tcp(settings_for(0, 2, port)); });
  intrude(port);
  sessions[1] = open_tcp(settings_for(1, 2, port));
  host.join();
  for (const OpenedSession& session : sessions) EXPECT_TRUE(session.ok()) << message_of(session);
  finish(sessions);
}

TEST(TcpRendezvous, StrangersAreTurnedAway) {
  meet_despite([](int port) {
    RawPeer silent(port);
    RawPeer browser(port);
    const std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
    browser.say(request.data(), request.size());
    char answer = 0;
    EXPECT_FALSE(browser.hear(&answer, 1)) << "a stranger was answered";
    RawPeer short_of_words(port);
    short_of_words.say("rr", 2);
    short_of_words.stop_talking();
    EXPECT_FALSE(short_of_words.hear(&answer, 1));
  });
}

TEST(TcpRendezvous, ManySilentStrangersKeepNobodyOut) {
  meet_despite([](int port) {
    std::vector<std::unique_ptr<RawPeer>> crowd;
    for (int i = 0; i < 600; ++i) crowd.push_back(std::make_unique<RawPeer>(port));
    // Those who came first are given up for those who came last.
    char answer = 0;
    EXPECT_FALSE(crowd.front()->hear(&answer, 1));
  });
}

// What process 0 answers to these words.
TcpAnswer answer_to(int port, const TcpHello& hello) {
  RawPeer peer(port);
  peer.say(&hello, sizeof(hello));
  TcpAnswer answer;
  EXPECT_TRUE(peer.hear(&answer, sizeof(answer)));
  return answer;
}

TEST(TcpRendezvous, OtherVersionsSizesAndNumbersAreRefusedWithTheReason) {
  meet_despite([](int port) {
    TcpHello hello;
    hello.process = 1;
    hello.processes = 2;
    hello.version += 1;
    TcpAnswer answer = answer_to(port, hello);
    EXPECT_EQ(answer.verdict, TcpVerdict::kOtherVersion);
    EXPECT_EQ(answer.key, 0U) << "the key of the job was told to somebody else";
    EXPECT_NE(describe_refusal(hello, answer).find("start the same rrfp everywhere"),
              std::string::npos);
    hello.version = kTcpVersion;
    hello.processes = 3;
    answer = answer_to(port, hello);
    EXPECT_EQ(answer.verdict, TcpVerdict::kOtherSize);
    hello.processes = 2;
    for (const int process : {-1, 0, 2, 1'000'000'000}) {
      hello.process = process;
      EXPECT_EQ(answer_to(port, hello).verdict, TcpVerdict::kTaken) << process;
    }
    hello.process = 1;
    hello.key = 5;
    EXPECT_EQ(answer_to(port, hello).verdict, TcpVerdict::kOtherJob);
  });
}

TEST(TcpRendezvous, AProcessOfAnotherJobSaysWhyItWasRefused) {
  meet_despite([](int port) {
    const OpenedSession larger = open_tcp(settings_for(2, 3, port));
    EXPECT_TRUE(has(larger, "process 2 of 3 was refused by process 0 at 127.0.0.1 port " +
                                std::to_string(port) +
                                ": its job has 2 processes, that of this one 3"))
        << message_of(larger);
  });
}

TEST(TcpRendezvous, TheSecondProcessOfANumberIsRefused) {
  const int port = free_port();
  const std::vector<OpenedSession> sessions = open_each(
      {settings_for(0, 3, port, 1'000 * kMillisecond), settings_for(1, 3, port, kMillisecond * 900),
       settings_for(1, 3, port, kMillisecond * 900)});
  const bool second = has(sessions[2], "has met a process 1 already");
  EXPECT_TRUE(second || has(sessions[1], "has met a process 1 already"))
      << message_of(sessions[1]) << "\n"
      << message_of(sessions[2]);
  EXPECT_TRUE(has(sessions[0], "(and refused process 1 of a job of 3 from "))
      << message_of(sessions[0]);
}

TEST(TcpRendezvous, AnotherProgramAtTheAddressIsSaid) {
  boost::asio::io_context context;
  namespace ip = boost::asio::ip;
  ip::tcp::acceptor acceptor(context, ip::tcp::endpoint(ip::tcp::v4(), 0));
  std::thread server([&] {
    ip::tcp::socket socket = acceptor.accept();
    const std::string page = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    boost::asio::write(socket, boost::asio::buffer(page));
  });
  const OpenedSession session = open_tcp(settings_for(1, 2, acceptor.local_endpoint().port()));
  server.join();
  EXPECT_TRUE(has(session, "for another program than rrfp")) << message_of(session);
}

}  // namespace
}  // namespace rrfp
