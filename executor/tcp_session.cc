#include "executor/tcp_session.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <string>

#include "executor/tcp_lane_exchange.h"
#include "executor/tcp_mesh.h"
#include "executor/tcp_rendezvous.h"
#include "executor/tcp_transport.h"

namespace rrfp {

namespace {

// How long the last word to the others may take.
constexpr std::int64_t kFarewellNs = 300'000'000;

std::string text_of(const Payload& payload) {
  return {reinterpret_cast<const char*>(payload.data()), payload.size()};
}

class TcpSession final : public ProcessSession {
 public:
  TcpSession(std::unique_ptr<boost::asio::io_context> context, std::vector<TcpSocket> sockets,
             const TcpSettings& settings)
      : mesh_(std::move(context), std::move(sockets), settings.process, settings.spin_ns),
        transport_(mesh_),
        patience_ns_(settings.patience_ns),
        on_slow_(settings.on_slow),
        leave_patience_ns_(settings.leave_patience_ns),
        came_(static_cast<std::size_t>(settings.processes)),
        left_(static_cast<std::size_t>(settings.processes)) {
    mesh_.on_frame(
        [this](const TcpFrame& frame, Payload payload) { take(frame, std::move(payload)); });
  }

  Transport& transport() override { return transport_; }
  std::unique_ptr<LaneExchange> lane_exchange(int group, int lane,
                                              std::int64_t patience_ns) override;
  [[noreturn]] void abort(int status, const std::string& why) override;
  void finish() override;

  /// All have met all others. The error: one has not, within the patience. Once.
  Result<void> come_so_far();

 private:
  void take(const TcpFrame& frame, Payload payload);
  // The first that is not among `those`, of all that are neither this one nor lost.
  std::optional<int> first_outside(const std::vector<bool>& those) const;
  std::string own_name() const {
    return "process " + std::to_string(mesh_.process()) + " of " +
           std::to_string(mesh_.processes());
  }
  // `process`: which this one waits for.
  void tell_slow(int process, const std::string& what_of_it) const;

  TcpMesh mesh_;
  TcpTransport transport_;
  TcpLaneParts parts_;
  const std::int64_t patience_ns_;
  const std::function<void(const std::string&)> on_slow_;  // may be empty
  const std::int64_t leave_patience_ns_;
  int exchanges_ = 0;       // made so far, by every process alike
  std::vector<bool> came_;  // has met all others
  std::vector<bool> left_;  // in an orderly way
};

void TcpSession::take(const TcpFrame& frame, Payload payload) {
  const int from = frame.letter.from;
  const auto at = static_cast<std::size_t>(from);
  const bool of_exchange = frame.kind == TcpFrame::Kind::kPart ||
                           frame.kind == TcpFrame::Kind::kNoLane ||
                           frame.kind == TcpFrame::Kind::kWarning;
  // Others may have begun the exchange that is next here, and none behind it: that takes a part of
  // this process.
  if (of_exchange && frame.number > exchanges_) {
    mesh_.lose(from, "it has sent a part of exchange " + std::to_string(frame.number) +
                         " where exchange " + std::to_string(exchanges_) + " comes next");
    return;
  }
  switch (frame.kind) {
    case TcpFrame::Kind::kLetter:
      transport_.on_letter(frame.letter, std::move(payload));
      break;
    case TcpFrame::Kind::kPart:
      parts_.of(frame.number, from).parts.push_back(std::move(payload));
      break;
    case TcpFrame::Kind::kNoLane:
      parts_.of(frame.number, from).gone = true;
      break;
    case TcpFrame::Kind::kWarning:
      parts_.of(frame.number, from).warning = text_of(payload);
      break;
    case TcpFrame::Kind::kBarrier:
      came_[at] = true;
      break;
    case TcpFrame::Kind::kAbort: {
      std::string why = "process " + std::to_string(from) + " ended the job with status " +
                        std::to_string(frame.number);
      if (!payload.empty()) why += ": " + text_of(payload);
      transport_.end(why);
      parts_.end(why);
      break;
    }
    case TcpFrame::Kind::kLeave:
      left_[at] = true;
      break;
  }
}

std::optional<int> TcpSession::first_outside(const std::vector<bool>& those) const {
  for (int process = 0; process < mesh_.processes(); ++process) {
    if (process == mesh_.process() || mesh_.lost(process)) continue;
    if (!those[static_cast<std::size_t>(process)]) return process;
  }
  return std::nullopt;
}

void TcpSession::tell_slow(int process, const std::string& what_of_it) const {
  if (!on_slow_) return;
  on_slow_("TCP: " + own_name() + " waits for process " + std::to_string(process) + ", which " +
           what_of_it);
}

// Everybody tells everybody where it belongs, in an exchange of all. What the processes did before
// may have taken them longer than the lanes may take.
std::unique_ptr<LaneExchange> TcpSession::lane_exchange(int group, int lane,
                                                        std::int64_t patience_ns) {
  struct Place {
    std::int32_t group;
    std::int32_t lane;
  };
  const int number = exchanges_;
  exchanges_ += 2;
  std::vector<int> everybody;
  for (int process = 0; process < mesh_.processes(); ++process) everybody.push_back(process);
  const Place own = {group, lane};
  Payload mine(sizeof(own));
  std::memcpy(mine.data(), &own, sizeof(own));
  TcpLaneExchange all(mesh_, parts_, number, everybody, std::max(patience_ns, patience_ns_));
  all.on_slow(kTcpSlowNs,
              [this](int process) { tell_slow(process, "has met all others and does not go on"); });
  const Result<std::vector<Payload>> places = all.exchange(std::move(mine));
  if (!places.ok()) return std::make_unique<BrokenLaneExchange>(places.error());
  std::vector<std::pair<int, int>> members;  // (lane, process)
  for (const int process : everybody) {
    Place place = {};
    std::memcpy(&place, (*places)[static_cast<std::size_t>(process)].data(), sizeof(place));
    if (place.group == group) members.emplace_back(place.lane, process);
  }
  std::sort(members.begin(), members.end());
  std::vector<int> in_order;
  for (const auto& [of_lane, process] : members) in_order.push_back(process);
  return std::make_unique<TcpLaneExchange>(mesh_, parts_, number + 1, std::move(in_order),
                                           patience_ns);
}

Result<void> TcpSession::come_so_far() {
  TcpFrame frame;
  frame.kind = TcpFrame::Kind::kBarrier;
  mesh_.send_to_all(frame);
  const std::int64_t now_ns = MonotonicClock::read_ns();
  const auto done = [this] { return mesh_.first_loss() || !first_outside(came_); };
  if (patience_ns_ > kTcpSlowNs && !mesh_.wait_for(done, now_ns + kTcpSlowNs)) {
    tell_slow(*first_outside(came_), "has not met all others");
  }
  mesh_.wait_for(done, now_ns + patience_ns_);
  if (const auto& loss = mesh_.first_loss()) return Error{loss->what};
  const std::optional<int> missing = first_outside(came_);
  if (!missing) return {};
  return Error{own_name() + " waited in vain for process " + std::to_string(*missing) +
               ", which has not met all others"};
}

void TcpSession::abort(int status, const std::string& why) {
  TcpFrame frame;
  frame.kind = TcpFrame::Kind::kAbort;
  frame.number = status;
  mesh_.send_to_all(frame, why);
  mesh_.wait_for([this] { return mesh_.flushed(); }, MonotonicClock::read_ns() + kFarewellNs);
  std::_Exit(status);
}

void TcpSession::finish() {
  TcpFrame frame;
  frame.kind = TcpFrame::Kind::kLeave;
  mesh_.send_to_all(frame);
  // Nobody closes a connection on which something may be on its way.
  const std::int64_t now_ns = MonotonicClock::read_ns();
  const auto done = [this] { return mesh_.flushed() && !first_outside(left_); };
  if (leave_patience_ns_ > kTcpSlowNs && !mesh_.wait_for(done, now_ns + kTcpSlowNs)) {
    if (const std::optional<int> last = first_outside(left_)) {
      tell_slow(*last, "has not done its part");
    }
  }
  mesh_.wait_for(done, now_ns + leave_patience_ns_);
  mesh_.close();
}

}  // namespace

Result<std::unique_ptr<ProcessSession>> open_tcp(const TcpSettings& settings) {
  try {
    // For one thread, though another may wake it.
    auto context = std::make_unique<boost::asio::io_context>(1);
    Result<std::vector<TcpSocket>> sockets = meet_over_tcp(*context, settings);
    if (!sockets.ok()) return sockets.error();
    auto session = std::make_unique<TcpSession>(std::move(context), std::move(*sockets), settings);
    if (Result<void> met = session->come_so_far(); !met.ok()) {
      return Error{"TCP: " + met.error().message};
    }
    return std::unique_ptr<ProcessSession>(std::move(session));
  } catch (const std::exception& error) {
    return Error{"TCP: " + std::string(error.what())};
  }
}

}  // namespace rrfp
