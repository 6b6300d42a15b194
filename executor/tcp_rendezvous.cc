#include "executor/tcp_rendezvous.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <random>

#include "executor/open_file_limit.h"
#include "executor/tcp_reception.h"

namespace rrfp {

namespace {

using boost::asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using TimePoint = std::chrono::steady_clock::time_point;

// Process 0 may not listen yet, and its name may not be known yet.
constexpr std::chrono::milliseconds kFirstPause(20);
constexpr std::chrono::milliseconds kLongestPause(320);
// Process 0 is given so long to say that it has given up.
constexpr std::chrono::seconds kLastWord(5);
// The name of process 0 may be known only after it was started.
constexpr std::chrono::seconds kUntilKnown(15);

TcpAddress to_address(const boost::asio::ip::address& address, std::uint32_t port) {
  namespace ip = boost::asio::ip;
  const ip::address_v6 wide =
      address.is_v6() ? address.to_v6() : ip::make_address_v6(ip::v4_mapped, address.to_v4());
  TcpAddress made;
  const auto bytes = wide.to_bytes();
  std::copy(bytes.begin(), bytes.end(), made.address.begin());
  made.port = port;
  return made;
}

boost::asio::ip::address from_address(const TcpAddress& address) {
  namespace ip = boost::asio::ip;
  ip::address_v6::bytes_type bytes;
  std::copy(address.address.begin(), address.address.end(), bytes.begin());
  const ip::address_v6 wide(bytes);
  if (wide.is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, wide);
  return wide;
}

// One process on its way into the job.
class Meeting {
 public:
  Meeting(boost::asio::io_context& context, const TcpSettings& settings)
      : context_(context),
        settings_(settings),
        work_(boost::asio::make_work_guard(context)),
        until_(std::chrono::steady_clock::now() + std::chrono::nanoseconds(settings.patience_ns)) {
    hello_.process = settings.process;
    hello_.processes = settings.processes;
    if (settings.on_slow) tell_when_slow();
  }

  // As process 0.
  Result<std::vector<TcpSocket>> host();
  // As another.
  Result<std::vector<TcpSocket>> join();

 private:
  // Runs the operation that `start` begins on `socket` until it ends or the
  // time is over.
  template <typename Start>
  ErrorCode await(TcpSocket& socket, TimePoint until, const Start& start);
  Result<tcp::acceptor> listen(int port);
  ErrorCode look_up_host(tcp::resolver::results_type& found);
  Result<TcpSocket> connect_to_host();
  Result<TcpSocket> connect_to(int process, const TcpAddress& address);
  Result<TcpAnswer> greet(TcpSocket& socket, int process, TimePoint until);
  Result<std::vector<TcpAddress>> read_addresses(TcpSocket& socket);
  Error error(const std::string& text) const {
    return Error{"TCP: process " + std::to_string(settings_.process) + " of " +
                 std::to_string(settings_.processes) + " " + text};
  }
  // `waits`: what this process does then, asked for when the time has come.
  void now(std::function<std::string()> waits) { *waits_ = std::move(waits); }
  void tell_when_slow();
  std::string host_name() const {
    return "process 0 at " + settings_.address + " port " + std::to_string(settings_.port);
  }

  boost::asio::io_context& context_;
  const TcpSettings& settings_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  TimePoint until_;
  TimePoint known_by_ = std::chrono::steady_clock::now() + kUntilKnown;
  TcpHello hello_;
  std::string lacks_;  // why process 0 is not reached yet
  boost::asio::steady_timer slow_{context_, std::chrono::nanoseconds(kTcpSlowNs)};
  // Shared with a handler that may be left in the context.
  std::shared_ptr<std::function<std::string()>> waits_ =
      std::make_shared<std::function<std::string()>>();
};

void Meeting::tell_when_slow() {
  slow_.async_wait([this, alive = std::weak_ptr(waits_)](const ErrorCode& cancelled) {
    if (cancelled || alive.expired() || !*waits_) return;
    settings_.on_slow(error((*waits_)()).message);
  });
}

template <typename Start>
ErrorCode Meeting::await(TcpSocket& socket, TimePoint until, const Start& start) {
  std::optional<ErrorCode> result;
  start([&result](const ErrorCode& code, const auto&...) { result = code; });
  while (!result && std::chrono::steady_clock::now() < until) context_.run_one_until(until);
  if (result) return *result;
  ErrorCode ignored;
  socket.close(ignored);
  while (!result) context_.run_one();
  return boost::asio::error::timed_out;
}

// For both versions of IP, where the machine has both.
Result<tcp::acceptor> Meeting::listen(int port) {
  ErrorCode code;
  for (const tcp& protocol : {tcp::v6(), tcp::v4()}) {
    tcp::acceptor acceptor(context_);
    const auto number = static_cast<std::uint16_t>(port);
    acceptor.open(protocol, code);
    if (!code && protocol == tcp::v6()) {
      acceptor.set_option(boost::asio::ip::v6_only(false), code);
    }
    if (!code) acceptor.set_option(tcp::acceptor::reuse_address(true), code);
    if (!code) acceptor.bind(tcp::endpoint(protocol, number), code);
    if (!code) acceptor.listen(boost::asio::socket_base::max_listen_connections, code);
    if (!code) return acceptor;
    // The other version would share a port with somebody else.
    if (code == boost::asio::error::address_in_use) break;
  }
  return error("cannot listen at port " + std::to_string(port) + ": " + code.message());
}

Result<std::vector<TcpSocket>> Meeting::host() {
  Result<tcp::acceptor> acceptor = listen(settings_.port);
  if (!acceptor.ok()) return Error{acceptor.error().message + " (" + settings_.port_from + ")"};
  TcpReception reception(context_, std::move(*acceptor), hello_, 1, false);
  now([&] {
    return "waits at port " + std::to_string(settings_.port) + " for " + reception.missing();
  });
  reception.on_left([this](const std::string& who) {
    if (settings_.on_slow) settings_.on_slow(error("waits, for " + who + " came and left").message);
  });
  if (!reception.run_until(until_)) {
    reception.give_up();
    return error("waited in vain at port " + std::to_string(settings_.port) + " for " +
                 reception.missing() +
                 "; every process needs the same MASTER_ADDR, WORLD_SIZE and port (" +
                 settings_.port_from + ")");
  }
  now(nullptr);
  std::random_device random;
  TcpAnswer answer;
  answer.processes = settings_.processes;
  answer.key = (std::uint64_t{random()} << 32) | random() | 1;
  std::vector<TcpAddress> addresses(static_cast<std::size_t>(settings_.processes));
  std::vector<TcpReception::Arrival>& arrivals = reception.arrivals();
  for (std::size_t process = 1; process < addresses.size(); ++process) {
    addresses[process] = to_address(arrivals[process].address, arrivals[process].hello.port);
  }
  std::vector<TcpSocket> sockets;
  for (std::size_t process = 0; process < addresses.size(); ++process) {
    sockets.push_back(std::move(arrivals[process].socket));
    if (process == 0) continue;
    const std::array<boost::asio::const_buffer, 2> words = {
        boost::asio::buffer(&answer, sizeof(answer)), boost::asio::buffer(addresses)};
    ErrorCode code;
    boost::asio::write(sockets.back(), words, code);
    if (code) {
      return error("has lost process " + std::to_string(process) +
                   " while others were still to come: " + code.message());
    }
  }
  return sockets;
}

// By a thread of Asio's, for a name server may take its time.
ErrorCode Meeting::look_up_host(tcp::resolver::results_type& found) {
  tcp::resolver resolver(context_);
  std::optional<ErrorCode> result;
  resolver.async_resolve(settings_.address, std::to_string(settings_.port),
                         [&](const ErrorCode& code, tcp::resolver::results_type results) {
                           found = std::move(results);
                           result = code;
                         });
  while (!result) context_.run_one();
  return *result;
}

Result<TcpSocket> Meeting::connect_to_host() {
  for (std::chrono::milliseconds pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    tcp::resolver::results_type found;
    ErrorCode code = look_up_host(found);
    const bool unknown = code.failed();
    if (!unknown) {
      TcpSocket socket(context_);
      code = await(socket, until_, [&](auto handler) {
        boost::asio::async_connect(socket, found, std::move(handler));
      });
      if (!code) return socket;
    }
    lacks_ = (unknown ? ": the name does not resolve: " : ": ") + code.message();
    const TimePoint until = unknown ? std::min(until_, known_by_) : until_;
    if (std::chrono::steady_clock::now() + pause >= until) {
      return error("cannot reach " + host_name() + " (MASTER_ADDR, " + settings_.port_from + ")" +
                   lacks_);
    }
    context_.run_one_for(pause);
  }
}

Result<TcpAnswer> Meeting::greet(TcpSocket& socket, int process, TimePoint until) {
  const std::string other = process == 0 ? host_name() : "process " + std::to_string(process);
  ErrorCode code;
  TcpAnswer answer;
  boost::asio::write(socket, boost::asio::buffer(&hello_, sizeof(hello_)), code);
  if (!code) {
    code = await(socket, until, [&](auto handler) {
      boost::asio::async_read(socket, boost::asio::buffer(&answer, sizeof(answer)),
                              std::move(handler));
    });
  }
  if (code) return error("has had no answer from " + other + ": " + code.message());
  if (answer.magic != kTcpMagic) return error("takes " + other + " for another program than rrfp");
  if (answer.verdict == TcpVerdict::kWelcome && answer.version == kTcpVersion) return answer;
  return error("was refused by " + other + ": " + describe_refusal(hello_, answer));
}

Result<std::vector<TcpAddress>> Meeting::read_addresses(TcpSocket& socket) {
  std::vector<TcpAddress> addresses(static_cast<std::size_t>(settings_.processes));
  const ErrorCode code =
      await(socket, std::chrono::steady_clock::now() + kLastWord, [&](auto handler) {
        boost::asio::async_read(socket, boost::asio::buffer(addresses), std::move(handler));
      });
  if (code) return error("has lost " + host_name() + ": " + code.message());
  // A process on the host of process 0 may have been seen by a name that means
  // another machine here.
  ErrorCode gone;
  const boost::asio::ip::address host = socket.remote_endpoint(gone).address();
  if (gone) return error("has lost " + host_name() + ": " + gone.message());
  for (TcpAddress& address : addresses) {
    if (from_address(address).is_loopback()) address = to_address(host, address.port);
  }
  return addresses;
}

Result<TcpSocket> Meeting::connect_to(int process, const TcpAddress& address) {
  TcpSocket socket(context_);
  const tcp::endpoint endpoint(from_address(address), static_cast<std::uint16_t>(address.port));
  const ErrorCode code = await(
      socket, until_, [&](auto handler) { socket.async_connect(endpoint, std::move(handler)); });
  if (code) {
    return error("cannot reach process " + std::to_string(process) + " at " +
                 endpoint.address().to_string() + " port " + std::to_string(endpoint.port()) +
                 ": " + code.message());
  }
  const Result<TcpAnswer> answer = greet(socket, process, until_);
  if (!answer.ok()) return answer.error();
  return socket;
}

Result<std::vector<TcpSocket>> Meeting::join() {
  Result<tcp::acceptor> acceptor = listen(0);
  if (!acceptor.ok()) return acceptor.error();
  ErrorCode code;
  hello_.port = acceptor->local_endpoint(code).port();
  now([this] {
    return "looks for " + host_name() + " (MASTER_ADDR, " + settings_.port_from + ")" + lacks_;
  });
  Result<TcpSocket> host = connect_to_host();
  if (!host.ok()) return host.error();
  now([this] { return "has met " + host_name() + " and waits for the others"; });
  // Process 0 may have come later than this one.
  until_ = std::chrono::steady_clock::now() + std::chrono::nanoseconds(settings_.patience_ns) +
           kLastWord;
  const Result<TcpAnswer> answer = greet(*host, 0, until_);
  if (!answer.ok()) return answer.error();
  const Result<std::vector<TcpAddress>> addresses = read_addresses(*host);
  if (!addresses.ok()) return addresses.error();
  hello_.key = answer->key;
  // While this process connects to those below it, it takes in those above.
  TcpReception reception(context_, std::move(*acceptor), hello_, settings_.process + 1, true);
  std::vector<TcpSocket> sockets;
  sockets.push_back(std::move(*host));
  for (int process = 1; process < settings_.process; ++process) {
    Result<TcpSocket> socket = connect_to(process, (*addresses)[static_cast<std::size_t>(process)]);
    if (!socket.ok()) return socket.error();
    sockets.push_back(std::move(*socket));
  }
  if (!reception.run_until(until_, &sockets)) {
    return error("waited in vain for " + reception.missing());
  }
  std::vector<TcpReception::Arrival>& arrivals = reception.arrivals();
  for (std::size_t process = sockets.size(); process < arrivals.size(); ++process) {
    sockets.push_back(std::move(arrivals[process].socket));
  }
  return sockets;
}

}  // namespace

Result<std::vector<TcpSocket>> meet_over_tcp(boost::asio::io_context& context,
                                             const TcpSettings& settings) {
  if (Result<void> allowed = allow_connections(settings.processes - 1); !allowed.ok()) {
    return allowed.error();
  }
  Meeting meeting(context, settings);
  if (settings.processes > 1) return settings.process == 0 ? meeting.host() : meeting.join();
  std::vector<TcpSocket> alone;
  alone.emplace_back(context);
  return alone;
}

}  // namespace rrfp
