// The collective of a group of lanes that are processes which reach each other
// over TCP: each sends its part to each other one.
//
// Thread safety: the thread that uses the mesh.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/lane_exchange.h"
#include "executor/tcp_mesh.h"

namespace rrfp {

/// What other processes have sent to the exchanges of this one, whether it has
/// come to them yet or not.
class TcpLaneParts {
 public:
  struct Lane {
    std::deque<Payload> parts;  // of rounds to come, in order
    bool gone = false;          // there will be no others
    std::string warning;        // why it cannot go on; empty: it can
  };
  /// Of process `from` in exchange `number`. Stays where it is until erased.
  Lane& of(int number, int from) { return lanes_[{number, from}]; }
  void erase(int number, int from) { lanes_.erase({number, from}); }
  /// The first reason is kept.
  void end(const std::string& why) {
    if (ended_.empty()) ended_ = why;
  }
  const std::string& ended() const { return ended_; }

 private:
  std::map<std::pair<int, int>, Lane> lanes_;
  std::string ended_;  // why the job has; empty: it has not
};

class TcpLaneExchange final : public LaneExchange {
 public:
  /// `members`: processes in the order of lanes. All members give the same
  /// `number`, which no other exchange of theirs has. Mesh and parts outlive it.
  TcpLaneExchange(TcpMesh& mesh, TcpLaneParts& parts, int number, std::vector<int> members,
                  std::int64_t patience_ns);
  ~TcpLaneExchange() override;
  TcpLaneExchange(const TcpLaneExchange&) = delete;
  TcpLaneExchange& operator=(const TcpLaneExchange&) = delete;

  int lanes() const override { return static_cast<int>(members_.size()); }
  Result<std::vector<Payload>> exchange(Payload mine) override;
  void on_slow(std::int64_t after_ns, std::function<void(int lane)> handler) override {
    slow_after_ns_ = after_ns;
    on_slow_ = std::move(handler);
  }
  void next_waits_at_most(std::int64_t ns) override { most_ns_ = ns; }
  void leave() override;
  Result<void> look() override;
  void warn(const std::string& why) override;

 private:
  Result<std::vector<Payload>> exchange_once(Payload mine);
  void send_to_others(TcpFrame::Kind kind, const Payload& payload);
  /// Until the parts of all others are here, or one of them cannot come.
  void wait_for_parts(std::int64_t slow_from_ns, std::int64_t until_ns);
  /// Whose part is not here: one that cannot come any more, else the first.
  std::optional<int> first_missing() const;
  bool cannot_come(int member) const;
  /// Why there is no part of `member`.
  Error missing(int member) const;

  TcpMesh& mesh_;
  TcpLaneParts& parts_;
  const int number_;
  const std::vector<int> members_;
  const std::int64_t patience_ns_;
  std::int64_t most_ns_ = kNever;  // of the next exchange
  std::int64_t slow_after_ns_ = 0;
  std::function<void(int)> on_slow_;
  std::optional<Error> failure_;  // its parts may come still, as if they were of a later round
};

}  // namespace rrfp
