#include "executor/tcp_transport.h"

#include <algorithm>

namespace rrfp {

TcpTransport::TcpTransport(TcpMesh& mesh)
    : mesh_(mesh), offered_(static_cast<std::size_t>(mesh.processes())) {}

void TcpTransport::tell(const Letter& letter) { send(letter, Payload()); }

void TcpTransport::send(const Letter& letter, Payload payload) {
  TcpFrame frame;
  frame.letter = letter;
  mesh_.send(frame, letter.to, std::move(payload));
}

void TcpTransport::on_letter(const Letter& letter, Payload payload) {
  Delivery announcement;
  announcement.letter = letter;
  if (!payload.empty()) {
    announcement.event = Delivery::Event::kAnnounced;
    offered_[static_cast<std::size_t>(letter.from)].push_back(
        {Delivery::Event::kReceived, letter, std::move(payload)});
  }
  deliveries_.push_back(std::move(announcement));
}

bool TcpTransport::poll(Delivery& delivery) {
  // Sockets are looked at only where nothing else is left to take.
  if (deliveries_.empty()) mesh_.look();
  if (deliveries_.empty()) return false;
  delivery = std::move(deliveries_.front());
  deliveries_.pop_front();
  return true;
}

void TcpTransport::receive(const Letter& announced) {
  std::deque<Delivery>& offered = offered_[static_cast<std::size_t>(announced.from)];
  RRFP_CHECK(!offered.empty() && offered.front().letter.bytes == announced.bytes);
  deliveries_.push_back(std::move(offered.front()));
  offered.pop_front();
}

void TcpTransport::wait(std::int64_t until_ns) {
  if (!deliveries_.empty()) return;
  if (const auto& loss = mesh_.first_loss()) {
    until_ns = std::min(until_ns, loss->at_ns + kUntilToldNs);
  }
  mesh_.wait(until_ns);
}

bool TcpTransport::flushed() {
  if (!mesh_.flushed()) mesh_.look();
  return mesh_.flushed();
}

void TcpTransport::end(const std::string& why) {
  if (ended_.ok()) ended_ = Error{why};
}

Result<void> TcpTransport::status() const {
  if (!ended_.ok()) return ended_;
  const auto& loss = mesh_.first_loss();
  if (!loss || MonotonicClock::read_ns() < loss->at_ns + kUntilToldNs) return {};
  return Error{loss->what};
}

}  // namespace rrfp
