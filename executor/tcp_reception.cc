#include "executor/tcp_reception.h"

#include <poll.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace rrfp {

namespace {

using ErrorCode = boost::system::error_code;

// Small enough for the buffer of any fresh connection.
void answer(boost::asio::ip::tcp::socket& socket, const TcpAnswer& words) {
  ErrorCode ignored;
  boost::asio::write(socket, boost::asio::buffer(&words, sizeof(words)), ignored);
}

// An IPv4 address as people write it, whichever way it came.
std::string to_text(const boost::asio::ip::address& address) {
  namespace ip = boost::asio::ip;
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.to_string();
  return ip::make_address_v4(ip::v4_mapped, address.to_v6()).to_string();
}

// The other end is closed, whatever is still to be read.
bool is_gone(boost::asio::ip::tcp::socket& socket) {
  pollfd look = {socket.native_handle(), POLLRDHUP, 0};
  return poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

TcpReception::TcpReception(boost::asio::io_context& context,
                           boost::asio::ip::tcp::acceptor acceptor, const TcpHello& own, int first,
                           bool answers)
    : context_(context),
      acceptor_(std::move(acceptor)),
      own_(own),
      first_(first),
      answers_(answers),
      missing_(own.processes - first) {
  for (int process = 0; process < own.processes; ++process) arrivals_.emplace_back(context);
  accept();
}

TcpReception::~TcpReception() {
  closed_ = true;
  ErrorCode ignored;
  acceptor_.close(ignored);
  for (Guest& guest : guests_) guest.socket.close(ignored);
  while (pending_ > 0) context_.run_one();
}

bool TcpReception::run_until(std::chrono::steady_clock::time_point until,
                             std::vector<boost::asio::ip::tcp::socket>* connected) {
  auto next_look = std::chrono::steady_clock::now() + kBetweenLooks;
  while (missing_ > 0 && failure_.empty() && std::chrono::steady_clock::now() < until) {
    context_.run_one_until(std::min(until, next_look));
    if (std::chrono::steady_clock::now() < next_look) continue;
    look_for_losses(connected);
    next_look = std::chrono::steady_clock::now() + kBetweenLooks;
  }
  return missing_ == 0 && failure_.empty();
}

void TcpReception::look_for_losses(std::vector<boost::asio::ip::tcp::socket>* connected) {
  for (std::size_t process = 0; connected != nullptr && process < connected->size(); ++process) {
    if (is_gone((*connected)[process])) {
      failure_ = "process " + std::to_string(process) + " is lost";
    }
  }
  for (std::size_t process = 0; process < arrivals_.size(); ++process) {
    Arrival& arrival = arrivals_[process];
    if (!arrival.came || !is_gone(arrival.socket)) continue;
    left_ = "process " + std::to_string(process) + " from " + to_text(arrival.address);
    arrival.came = false;
    arrival.socket = boost::asio::ip::tcp::socket(context_);
    ++missing_;
    // The others count on the one that was made welcome.
    if (answers_) failure_ = "process " + std::to_string(process) + " is lost";
    if (on_left_) on_left_(left_);
  }
}

void TcpReception::accept() {
  const auto guest = guests_.emplace(guests_.end(), context_);
  ++pending_;
  acceptor_.async_accept(guest->socket, [this, guest](const ErrorCode& code) {
    --pending_;
    if (closed_) return;
    if (!code) {
      listen_to(guest);
    } else {
      guests_.erase(guest);
      // A connection may be gone before it is taken in.
      if (code != boost::asio::error::connection_aborted) {
        failure_ = "cannot accept a connection: " + code.message();
      }
    }
    if (failure_.empty()) accept();
  });
}

void TcpReception::listen_to(std::list<Guest>::iterator guest) {
  ++pending_;
  boost::asio::async_read(guest->socket, boost::asio::buffer(&guest->hello, sizeof(TcpHello)),
                          [this, guest](const ErrorCode& code, std::size_t) {
                            --pending_;
                            if (closed_) return;
                            if (!code) on_hello(*guest);
                            guests_.erase(guest);
                          });
  if (guests_.size() > kMostSilentGuests) {
    ErrorCode ignored;
    guests_.front().socket.close(ignored);
  }
}

TcpVerdict TcpReception::judge(const TcpHello& hello) const {
  if (hello.version != own_.version) return TcpVerdict::kOtherVersion;
  if (hello.processes != own_.processes) return TcpVerdict::kOtherSize;
  if (hello.key != own_.key) return TcpVerdict::kOtherJob;
  if (hello.process < first_ || hello.process >= own_.processes) return TcpVerdict::kTaken;
  return arrivals_[static_cast<std::size_t>(hello.process)].came ? TcpVerdict::kTaken
                                                                 : TcpVerdict::kWelcome;
}

void TcpReception::on_hello(Guest& guest) {
  ErrorCode code;
  const auto remote = guest.socket.remote_endpoint(code);
  if (code) return;
  const std::string from = to_text(remote.address());
  if (guest.hello.magic != kTcpMagic) {
    refused_ = "a stranger from " + from;
    return;
  }
  TcpAnswer words;
  words.processes = own_.processes;
  words.key = own_.key;
  words.verdict = judge(guest.hello);
  if (words.verdict != TcpVerdict::kWelcome) {
    refused_ = "process " + std::to_string(guest.hello.process) + " of a job of " +
               std::to_string(guest.hello.processes) + " from " + from;
    words.key = 0;
    answer(guest.socket, words);
    return;
  }
  if (answers_) answer(guest.socket, words);
  Arrival& arrival = arrivals_[static_cast<std::size_t>(guest.hello.process)];
  arrival.address = remote.address();
  arrival.hello = guest.hello;
  arrival.socket = std::move(guest.socket);
  arrival.came = true;
  --missing_;
}

std::string TcpReception::missing() const {
  constexpr int kMostNamed = 8;
  std::string text;
  int named = 0;
  for (int process = first_; process < own_.processes; ++process) {
    if (arrivals_[static_cast<std::size_t>(process)].came) continue;
    if (++named > kMostNamed) continue;
    text += (named == 1 ? "process " : ", ") + std::to_string(process);
  }
  if (named > kMostNamed) text += " and " + std::to_string(named - kMostNamed) + " more";
  text += " of " + std::to_string(own_.processes);
  if (!failure_.empty()) text += ": " + failure_;
  if (!left_.empty()) text += " (" + left_ + " came and left)";
  return refused_.empty() ? text : text + " (and refused " + refused_ + ")";
}

void TcpReception::give_up() {
  TcpAnswer words;
  words.verdict = TcpVerdict::kGaveUp;
  words.processes = own_.processes;
  words.missing = missing_;
  for (int process = own_.processes - 1; process >= first_; --process) {
    if (!arrivals_[static_cast<std::size_t>(process)].came) words.first_missing = process;
  }
  for (Arrival& arrival : arrivals_) {
    if (arrival.came) answer(arrival.socket, words);
  }
}

}  // namespace rrfp
