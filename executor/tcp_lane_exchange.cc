#include "executor/tcp_lane_exchange.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace rrfp {

TcpLaneExchange::TcpLaneExchange(TcpMesh& mesh, TcpLaneParts& parts, int number,
                                 std::vector<int> members, std::int64_t patience_ns)
    : mesh_(mesh),
      parts_(parts),
      number_(number),
      members_(std::move(members)),
      patience_ns_(patience_ns) {}

TcpLaneExchange::~TcpLaneExchange() {
  for (const int member : members_) parts_.erase(number_, member);
}

void TcpLaneExchange::send_to_others(TcpFrame::Kind kind, const Payload& payload) {
  TcpFrame frame;
  frame.kind = kind;
  frame.number = number_;
  for (const int member : members_) {
    if (member != mesh_.process()) mesh_.send(frame, member, payload.copy());
  }
}

void TcpLaneExchange::leave() { send_to_others(TcpFrame::Kind::kNoLane, Payload()); }

Result<void> TcpLaneExchange::look() {
  mesh_.look();
  if (!parts_.ended().empty()) return Error{parts_.ended()};
  for (const int member : members_) {
    if (member == mesh_.process()) continue;
    if (mesh_.lost(member)) return Error{mesh_.first_loss()->what};
    const std::string& warning = parts_.of(number_, member).warning;
    if (!warning.empty()) return Error{"process " + std::to_string(member) + ": " + warning};
  }
  return {};
}

void TcpLaneExchange::warn(const std::string& why) {
  Payload payload(why.size());
  if (!why.empty()) std::memcpy(payload.data(), why.data(), why.size());
  send_to_others(TcpFrame::Kind::kWarning, payload);
}

Result<std::vector<Payload>> TcpLaneExchange::exchange(Payload mine) {
  if (failure_) return *failure_;
  Result<std::vector<Payload>> all = exchange_once(std::move(mine));
  if (!all.ok()) failure_ = all.error();
  return all;
}

Result<std::vector<Payload>> TcpLaneExchange::exchange_once(Payload mine) {
  const std::int64_t now_ns = MonotonicClock::read_ns();
  const std::int64_t most_ns = std::min(patience_ns_, std::exchange(most_ns_, kNever));
  const std::int64_t until_ns = most_ns < kNever - now_ns ? now_ns + most_ns : kNever;
  const std::size_t size = mine.size();
  send_to_others(TcpFrame::Kind::kPart, mine);
  wait_for_parts(now_ns + slow_after_ns_, until_ns);
  if (const std::optional<int> member = first_missing()) return missing(*member);
  std::vector<Payload> all;
  for (const int member : members_) {
    if (member == mesh_.process()) {
      all.push_back(std::move(mine));
      continue;
    }
    std::deque<Payload>& parts = parts_.of(number_, member).parts;
    all.push_back(std::move(parts.front()));
    parts.pop_front();
  }
  const bool same =
      std::all_of(all.begin(), all.end(), [&](const Payload& part) { return part.size() == size; });
  if (!same) return Error{"the lanes of a group brought parts of different sizes"};
  return all;
}

void TcpLaneExchange::wait_for_parts(std::int64_t slow_from_ns, std::int64_t until_ns) {
  const auto known = [this] {
    return !first_missing() || std::any_of(members_.begin(), members_.end(),
                                           [this](int member) { return cannot_come(member); });
  };
  if (on_slow_ && slow_from_ns < until_ns && !mesh_.wait_for(known, slow_from_ns)) {
    const auto lane = std::find(members_.begin(), members_.end(), *first_missing());
    std::exchange(on_slow_, nullptr)(static_cast<int>(lane - members_.begin()));
  }
  mesh_.wait_for(known, until_ns);
}

std::optional<int> TcpLaneExchange::first_missing() const {
  std::optional<int> first;
  for (const int member : members_) {
    if (member == mesh_.process() || !parts_.of(number_, member).parts.empty()) continue;
    if (cannot_come(member)) return member;
    if (!first) first = member;
  }
  return first;
}

// A part that is here counts, whatever became of its sender.
bool TcpLaneExchange::cannot_come(int member) const {
  const TcpLaneParts::Lane& lane = parts_.of(number_, member);
  if (member == mesh_.process() || !lane.parts.empty()) return false;
  return lane.gone || mesh_.lost(member) || !parts_.ended().empty();
}

Error TcpLaneExchange::missing(int member) const {
  std::string why = " waited in vain for process " + std::to_string(member) + " of its group";
  if (parts_.of(number_, member).gone) why = " waited for a lane of its group that has ended";
  if (mesh_.lost(member)) why = " waited for process " + std::to_string(member) + ", which is lost";
  if (!parts_.ended().empty()) why = " waited for its group when " + parts_.ended();
  const auto self = std::find(members_.begin(), members_.end(), mesh_.process());
  return Error{"lane " + std::to_string(self - members_.begin()) + why};
}

}  // namespace rrfp
