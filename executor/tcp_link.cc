#include "executor/tcp_link.h"

#include <algorithm>
#include <new>

namespace rrfp {

namespace {

using ErrorCode = boost::system::error_code;

// So that one peer with much to say does not keep the others waiting.
constexpr std::size_t kMostPerRead = std::size_t{1} << 18;

}  // namespace

TcpLink::TcpLink(boost::asio::ip::tcp::socket socket, int self, int peer, Owner& owner)
    : socket_(std::move(socket)), self_(self), peer_(peer), owner_(owner) {
  ErrorCode ignored;
  // Letters are small, and each is urgent.
  socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  socket_.non_blocking(true, ignored);
  read();
}

void TcpLink::close() {
  lost_ = true;
  outgoing_.clear();
  ErrorCode ignored;
  socket_.close(ignored);
}

void TcpLink::lose(const std::string& why) {
  if (lost_) return;
  close();
  owner_.on_lost(peer_, why);
}

void TcpLink::send(const TcpFrame& frame, Payload payload) {
  if (lost_ || deaf_) return;
  outgoing_.push_back({frame, std::move(payload), 0});
  if (writable_) write();
}

void TcpLink::write() {
  while (!outgoing_.empty()) {
    Outgoing& next = outgoing_.front();
    const std::size_t body = next.sent - std::min(next.sent, kHead);
    const std::array<boost::asio::const_buffer, 2> rest = {
        boost::asio::buffer(&next.frame, kHead) + next.sent,
        boost::asio::buffer(next.payload.data(), next.payload.size()) + body};
    ErrorCode code;
    next.sent += socket_.write_some(rest, code);
    if (code == boost::asio::error::would_block || code == boost::asio::error::try_again) {
      writable_ = false;
      socket_.async_wait(boost::asio::socket_base::wait_write, [this](const ErrorCode& failed) {
        if (lost_) return;
        if (failed) return stop_writing();
        writable_ = true;
        write();
      });
      return;
    }
    if (code) return stop_writing();
    if (next.sent == kHead + next.payload.size()) outgoing_.pop_front();
  }
}

// What the peer said last may still be there: reading tells of the end.
void TcpLink::stop_writing() {
  deaf_ = true;
  outgoing_.clear();
}

void TcpLink::read() {
  boost::asio::mutable_buffer room(stage_.data() + staged_, kStage - staged_);
  const std::size_t wanted = payload_.size() - have_;
  if (wanted > 0) {
    room = boost::asio::mutable_buffer(payload_.data() + have_, std::min(wanted, kMostPerRead));
  }
  socket_.async_read_some(room, [this](const ErrorCode& code, std::size_t bytes) {
    if (lost_) return;
    if (code == boost::asio::error::eof) return lose("it has closed the connection");
    if (code) return lose(code.message());
    take(bytes);
    if (!lost_) read();
  });
}

void TcpLink::take(std::size_t bytes) {
  if (!payload_.empty()) {
    have_ += bytes;
    if (have_ == payload_.size()) hand_over();
    return;
  }
  staged_ += bytes;
  std::size_t at = 0;
  while (!lost_) {
    if (payload_.empty()) {
      if (staged_ - at < kHead) break;
      std::memcpy(&frame_, stage_.data() + at, kHead);
      at += kHead;
      if (!take_head()) return;
    }
    const std::size_t here = std::min(payload_.size() - have_, staged_ - at);
    if (here > 0) std::memcpy(payload_.data() + have_, stage_.data() + at, here);
    at += here;
    have_ += here;
    if (have_ < payload_.size()) break;
    hand_over();
  }
  std::memmove(stage_.data(), stage_.data() + at, staged_ - at);
  staged_ -= at;
}

// False where the link is lost.
bool TcpLink::take_head() {
  if (const Result<void> right = check_frame(frame_, peer_, self_); !right.ok()) {
    lose("it has sent " + right.error().message);
    return false;
  }
  const auto size = static_cast<std::size_t>(frame_.letter.bytes);
  have_ = 0;
  if (size == 0) return true;
  std::unique_ptr<std::byte[]> data(new (std::nothrow) std::byte[size]);
  if (data == nullptr) {
    lose("there is no memory for the " + std::to_string(size) + " bytes that it sends");
    return false;
  }
  payload_ = Payload(std::move(data), size);
  return true;
}

void TcpLink::hand_over() {
  Payload whole = std::move(payload_);
  payload_ = Payload();
  have_ = 0;
  owner_.on_frame(frame_, std::move(whole));
}

}  // namespace rrfp
