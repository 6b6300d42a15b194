// The connection to one other process: frames go out as far as the kernel takes
// them and the rest later, and come in as they are complete.
//
// Invariants
//  1. Frames are sent and told of in order.
//  2. Nothing is allocated for a payload before its head has been checked; a
//     payload is read where it will stay.
//  3. After on_lost() nothing more is told of. What is sent then is dropped, as
//     is what is sent after the peer has stopped to listen.
//
// Thread safety: the thread that runs the context of the socket.
#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <deque>
#include <string>

#include "executor/tcp_frame.h"

namespace rrfp {

class TcpLink {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_frame(const TcpFrame& frame, Payload payload) = 0;
    virtual void on_lost(int process, const std::string& why) = 0;
  };

  /// From `self` to `peer`. The owner outlives the link.
  TcpLink(boost::asio::ip::tcp::socket socket, int self, int peer, Owner& owner);

  /// REQUIRES: letter.bytes is the size of `payload`.
  void send(const TcpFrame& frame, Payload payload);
  /// Nothing waits to be taken by the kernel.
  bool flushed() const { return outgoing_.empty(); }
  void close();
  /// Closes, and tells the owner why, once.
  void lose(const std::string& why);

 private:
  struct Outgoing {
    TcpFrame frame;
    Payload payload;
    std::size_t sent = 0;  // of both
  };
  static constexpr std::size_t kHead = sizeof(TcpFrame);
  static constexpr std::size_t kStage = 16384;

  void write();
  void stop_writing();
  void read();
  void take(std::size_t bytes);
  bool take_head();
  void hand_over();

  boost::asio::ip::tcp::socket socket_;
  const int self_;
  const int peer_;
  Owner& owner_;
  bool lost_ = false;
  bool writable_ = true;  // until the kernel takes no more
  bool deaf_ = false;     // nobody reads any more
  std::deque<Outgoing> outgoing_;

  std::array<std::byte, kStage> stage_;  // read, and not yet understood
  std::size_t staged_ = 0;
  TcpFrame frame_;        // whose payload is being read
  Payload payload_;       // empty: a head comes next
  std::size_t have_ = 0;  // of the payload
};

}  // namespace rrfp
