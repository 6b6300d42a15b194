#include "executor/tcp_mesh.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>

namespace rrfp {

TcpMesh::TcpMesh(std::unique_ptr<boost::asio::io_context> context,
                 std::vector<boost::asio::ip::tcp::socket> sockets, int process,
                 std::int64_t spin_ns)
    : context_(std::move(context)),
      work_(boost::asio::make_work_guard(*context_)),
      timer_(*context_),
      process_(process),
      spin_ns_(spin_ns),
      lost_(sockets.size()) {
  context_->restart();
  for (std::size_t peer = 0; peer < sockets.size(); ++peer) {
    const int number = static_cast<int>(peer);
    links_.push_back(number == process ? nullptr
                                       : std::make_unique<TcpLink>(std::move(sockets[peer]),
                                                                   process, number, *this));
  }
}

void TcpMesh::send(TcpFrame frame, int to, Payload payload) {
  frame.letter.from = process_;
  frame.letter.to = to;
  frame.letter.bytes = static_cast<std::int64_t>(payload.size());
  links_[static_cast<std::size_t>(to)]->send(frame, std::move(payload));
}

void TcpMesh::send_to_all(const TcpFrame& frame, const std::string& text) {
  for (int process = 0; process < processes(); ++process) {
    if (process == process_) continue;
    Payload payload(text.size());
    if (!text.empty()) std::memcpy(payload.data(), text.data(), text.size());
    send(frame, process, std::move(payload));
  }
}

bool TcpMesh::flushed() const {
  for (const auto& link : links_) {
    if (link != nullptr && !link->flushed()) return false;
  }
  return true;
}

void TcpMesh::look() {
  awake_ = false;
  for (int event = 0; event < kMostEventsPerLook && !awake_; ++event) {
    if (context_->poll_one() == 0) return;
  }
}

void TcpMesh::wait(std::int64_t until_ns) {
  if (spin_ns_ > 0) {
    const std::int64_t look_until_ns = std::min(until_ns, MonotonicClock::read_ns() + spin_ns_);
    while (!awake_ && MonotonicClock::read_ns() < look_until_ns) context_->poll_one();
  }
  if (awake_) return;
  timer_.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns)));
  timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) awake_ = true;
  });
  while (!awake_) context_->run_one();
  timer_.cancel();
}

bool TcpMesh::wait_for(const std::function<bool()>& done, std::int64_t until_ns) {
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(until_ns)};
  while (!done()) {
    if (MonotonicClock::read_ns() >= until_ns) return false;
    context_->run_one_until(until);
  }
  return true;
}

void TcpMesh::wake() {
  boost::asio::post(*context_, [this] { awake_ = true; });
}

void TcpMesh::on_frame(const TcpFrame& frame, Payload payload) {
  awake_ = true;
  handler_(frame, std::move(payload));
}

void TcpMesh::on_lost(int process, const std::string& why) {
  awake_ = true;
  lost_[static_cast<std::size_t>(process)] = true;
  if (first_loss_) return;
  first_loss_ = {"process " + std::to_string(process) + " is lost: " + why,
                 MonotonicClock::read_ns()};
}

void TcpMesh::lose(int process, const std::string& why) {
  links_[static_cast<std::size_t>(process)]->lose(why);
}

void TcpMesh::close() {
  for (const auto& link : links_) {
    if (link != nullptr) link->close();
  }
}

}  // namespace rrfp
