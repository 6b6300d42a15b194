// Takes in the processes that connect to this one, and turns others away.
//
// Invariants
//  1. Who connects and says nothing, or no greeting of this program, keeps
//     nobody else waiting; only so many of them are listened to.
//  2. Each expected process is taken in once. One that leaves again before all
//     have come is noticed, and another of its number may come.
//
// Thread safety: the thread that runs the context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <string>
#include <vector>

#include "executor/tcp_frame.h"

namespace rrfp {

class TcpReception {
 public:
  struct Arrival {
    explicit Arrival(boost::asio::io_context& context) : socket(context) {}
    boost::asio::ip::tcp::socket socket;
    boost::asio::ip::address address;
    TcpHello hello;
    bool came = false;
  };

  /// Expects the processes from `first` on, of a job as `own` says. `answers`:
  /// each is told at once that it is welcome; else the caller tells it.
  TcpReception(boost::asio::io_context& context, boost::asio::ip::tcp::acceptor acceptor,
               const TcpHello& own, int first, bool answers);
  ~TcpReception();
  TcpReception(const TcpReception&) = delete;
  TcpReception& operator=(const TcpReception&) = delete;

  /// Told who has left again, for people.
  void on_left(std::function<void(const std::string& who)> tell) { on_left_ = std::move(tell); }
  /// True once all have come; false where it cannot be, or `until` is over.
  /// `connected`: those below `first`, if any, without whom it cannot be.
  bool run_until(std::chrono::steady_clock::time_point until,
                 std::vector<boost::asio::ip::tcp::socket>* connected = nullptr);
  /// By process; those below `first` are not open.
  std::vector<Arrival>& arrivals() { return arrivals_; }
  /// Who has not come, for people, and who else has.
  std::string missing() const;
  /// Tells all who came that the job will not be complete.
  void give_up();

 private:
  struct Guest {
    explicit Guest(boost::asio::io_context& context) : socket(context) {}
    boost::asio::ip::tcp::socket socket;
    TcpHello hello;
  };
  static constexpr std::size_t kMostSilentGuests = 512;
  static constexpr std::chrono::milliseconds kBetweenLooks{100};

  void look_for_losses(std::vector<boost::asio::ip::tcp::socket>* connected);
  void accept();
  void listen_to(std::list<Guest>::iterator guest);
  void on_hello(Guest& guest);
  TcpVerdict judge(const TcpHello& hello) const;

  boost::asio::io_context& context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  const TcpHello own_;
  const int first_;
  const bool answers_;
  std::vector<Arrival> arrivals_;
  int missing_ = 0;
  std::list<Guest> guests_;  // have connected, and said nothing yet
  std::string refused_;      // the last one that was
  std::string left_;         // the last one that came and did
  std::string failure_;      // why not all can come any more
  std::function<void(const std::string&)> on_left_;
  int pending_ = 0;  // operations that use this
  bool closed_ = false;
};

}  // namespace rrfp
