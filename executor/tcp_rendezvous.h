// How the processes of a job find each other over TCP: process 0 listens where
// all others are told to look for it, learns where each of them listens, and
// tells all; then everybody connects to everybody with a smaller number.
//
// Whoever else connects is turned away: a stranger without a word, a process of
// another version, size or job with the reason. A job that is not complete
// within the patience is an error in every process that has come.
//
// Thread safety: one thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "executor/tcp_session.h"
#include "scheduler_core/result.h"

namespace rrfp {

using TcpSocket = boost::asio::ip::tcp::socket;

/// The connections of this process, by process; its own is not open. Sockets
/// belong to `context`. The error names the address, and who is missing or what
/// is wrong with whom.
Result<std::vector<TcpSocket>> meet_over_tcp(boost::asio::io_context& context,
                                             const TcpSettings& settings);

}  // namespace rrfp
