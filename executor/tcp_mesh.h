// This process's connections to all others, and the one place where it waits
// for them.
//
// Invariants
//  1. Frames of a process are told of in the order of sending.
//  2. No call but wait() blocks.
//  3. A process that is lost is remembered, the first with the reason.
//
// Thread safety: one thread; wake() may be called by any.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "executor/clock.h"
#include "executor/tcp_link.h"

namespace rrfp {

class TcpMesh final : public TcpLink::Owner {
 public:
  using OnFrame = std::function<void(const TcpFrame& frame, Payload payload)>;
  struct Loss {
    std::string what;  ///< of which process, and why
    std::int64_t at_ns = 0;
  };

  /// `sockets`: by process, of `context`; that of `process` itself is not used.
  TcpMesh(std::unique_ptr<boost::asio::io_context> context,
          std::vector<boost::asio::ip::tcp::socket> sockets, int process, std::int64_t spin_ns);

  int process() const { return process_; }
  int processes() const { return static_cast<int>(links_.size()); }
  /// Whom frames are told to. To be set before anything is looked at.
  void on_frame(OnFrame handler) { handler_ = std::move(handler); }

  /// REQUIRES: another process; letter.bytes is the size of `payload`.
  void send(TcpFrame frame, int to, Payload payload);
  void send_to_all(const TcpFrame& frame, const std::string& text = {});
  bool flushed() const;

  /// Tells of some of what has come, if anything has.
  void look();
  /// Until `until_ns` of the monotonic clock, or until something has come, a
  /// process is lost or wake() was called since the last look() began.
  void wait(std::int64_t until_ns);
  void wake();
  /// Tells of what comes until `done`. False: not by `until_ns`.
  bool wait_for(const std::function<bool()>& done, std::int64_t until_ns);

  /// Hears `process`, another one, no more: `why` says what it has done.
  void lose(int process, const std::string& why);
  bool lost(int process) const { return lost_[static_cast<std::size_t>(process)]; }
  const std::optional<Loss>& first_loss() const { return first_loss_; }
  void close();

 private:
  static constexpr int kMostEventsPerLook = 16;

  void on_frame(const TcpFrame& frame, Payload payload) override;
  void on_lost(int process, const std::string& why) override;

  // Links and timer must go before it does.
  std::unique_ptr<boost::asio::io_context> context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer timer_;
  const int process_;
  const std::int64_t spin_ns_;
  OnFrame handler_;
  std::vector<std::unique_ptr<TcpLink>> links_;  // by process; null for this one
  std::vector<bool> lost_;
  std::optional<Loss> first_loss_;
  bool awake_ = false;  // see wait()
};

}  // namespace rrfp
