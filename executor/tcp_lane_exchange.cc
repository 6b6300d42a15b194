#include "executor/tcp_lane_exchange.h"

#include <algorithm>
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

Result<std::vector<Payload>> TcpLaneExchange::exchange(Payload mine) {
  const std::int64_t now_ns = MonotonicClock::read_ns();
  const std::int64_t until_ns = patience_ns_ < kNever - now_ns ? now_ns + patience_ns_ : kNever;
  const std::size_t size = mine.size();
  send_to_others(TcpFrame::Kind::kPart, mine);
  std::vector<Payload> all;
  for (const int member : members_) {
    if (member == mesh_.process()) {
      all.push_back(std::move(mine));
      continue;
    }
    Result<Payload> part = part_of(member, now_ns + slow_after_ns_, until_ns);
    if (!part.ok()) return part.error();
    all.push_back(std::move(*part));
  }
  const bool same =
      std::all_of(all.begin(), all.end(), [&](const Payload& part) { return part.size() == size; });
  if (!same) return Error{"the lanes of a group brought parts of different sizes"};
  return all;
}

Result<Payload> TcpLaneExchange::part_of(int member, std::int64_t slow_from_ns,
                                         std::int64_t until_ns) {
  TcpLaneParts::Lane& lane = parts_.of(number_, member);
  const auto over = [&] { return lane.gone || mesh_.lost(member) || !parts_.ended().empty(); };
  const auto known = [&] { return !lane.parts.empty() || over(); };
  if (on_slow_ && slow_from_ns < until_ns && !mesh_.wait_for(known, slow_from_ns)) {
    const auto number = std::find(members_.begin(), members_.end(), member) - members_.begin();
    std::exchange(on_slow_, nullptr)(static_cast<int>(number));
  }
  mesh_.wait_for(known, until_ns);
  if (!lane.parts.empty()) {
    Payload part = std::move(lane.parts.front());
    lane.parts.pop_front();
    return part;
  }
  std::string why = " waited in vain for process " + std::to_string(member) + " of its group";
  if (lane.gone) why = " waited for a lane of its group that has ended";
  if (mesh_.lost(member)) why = " waited for process " + std::to_string(member) + ", which is lost";
  if (!parts_.ended().empty()) why = " waited for its group when " + parts_.ended();
  const auto self = std::find(members_.begin(), members_.end(), mesh_.process());
  return Error{"lane " + std::to_string(self - members_.begin()) + why};
}

}  // namespace rrfp
