// Jobs over TCP whose processes are threads of a test, and free ports for them.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/tcp_frame.h"
#include "executor/tcp_session.h"

namespace rrfp {

/// One that nobody listens at now, and that no test has been given before.
inline int free_port() {
  boost::asio::io_context context;
  namespace ip = boost::asio::ip;
  const ip::tcp::acceptor acceptor(context, ip::tcp::endpoint(ip::tcp::v4(), 0));
  return acceptor.local_endpoint().port();
}

inline TcpSettings settings_for(int process, int processes, int port,
                                std::int64_t patience_ns = 20'000'000'000) {
  TcpSettings settings;
  settings.process = process;
  settings.processes = processes;
  settings.address = "127.0.0.1";
  settings.port = port;
  settings.patience_ns = patience_ns;
  return settings;
}

using OpenedSession = Result<std::unique_ptr<ProcessSession>>;

/// Opens a session for each of `settings`, at once.
inline std::vector<OpenedSession> open_each(const std::vector<TcpSettings>& settings) {
  std::vector<OpenedSession> opened;
  for (std::size_t i = 0; i < settings.size(); ++i) opened.emplace_back(Error{"not opened"});
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    threads.emplace_back([&, i] { opened[i] = open_tcp(settings[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return opened;
}

/// A whole job; empty where it could not be opened, which fails the test.
inline std::vector<std::unique_ptr<ProcessSession>> open_job(int processes) {
  std::vector<TcpSettings> settings;
  const int port = free_port();
  for (int process = 0; process < processes; ++process) {
    settings.push_back(settings_for(process, processes, port));
  }
  std::vector<std::unique_ptr<ProcessSession>> job;
  for (OpenedSession& session : open_each(settings)) {
    if (!session.ok()) {
      ADD_FAILURE() << session.error().message;
      return {};
    }
    job.push_back(std::move(*session));
  }
  return job;
}

/// Runs `part(process)` for all processes of a job, each in a thread.
template <typename Part>
void in_each(int processes, const Part& part) {
  std::vector<std::thread> threads;
  for (int process = 0; process < processes; ++process) threads.emplace_back(part, process);
  for (std::thread& thread : threads) thread.join();
}

/// A connection that sends what a test likes.
class RawPeer {
 public:
  explicit RawPeer(int port) : socket_(context_) {
    boost::system::error_code code;
    do {
      socket_.close(code);
      socket_.connect({boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)},
                      code);
    } while (code == boost::asio::error::connection_refused);
  }
  void say(const void* bytes, std::size_t size) {
    boost::system::error_code ignored;
    boost::asio::write(socket_, boost::asio::buffer(bytes, size), ignored);
  }
  /// False where the other end closes before so much has come.
  bool hear(void* bytes, std::size_t size) {
    boost::system::error_code code;
    boost::asio::read(socket_, boost::asio::buffer(bytes, size), code);
    return !code;
  }
  void stop_talking() {
    boost::system::error_code ignored;
    socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
  }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_;
};

}  // namespace rrfp
