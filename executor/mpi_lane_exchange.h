// The collective of a group of lanes that are processes of MPI: each sends its
// part to each other one, so that it is known which of them does not come.
//
// Thread safety: one thread.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/clock.h"
#include "executor/lane_exchange.h"

namespace rrfp {

class MpiLaneExchange final : public LaneExchange {
 public:
  /// Of all members of `communicator`, which it frees.
  MpiLaneExchange(MPI_Comm communicator, std::int64_t patience_ns);
  ~MpiLaneExchange() override;
  MpiLaneExchange(const MpiLaneExchange&) = delete;
  MpiLaneExchange& operator=(const MpiLaneExchange&) = delete;

  int lanes() const override { return lanes_; }
  Result<std::vector<Payload>> exchange(Payload mine) override;
  void on_slow(std::int64_t after_ns, std::function<void(int lane)> handler) override;
  void next_waits_at_most(std::int64_t ns) override { most_ns_ = ns; }
  Result<void> look() override;
  void warn(const std::string& why) override;

 private:
  // One exchange under way: what MPI reads and writes.
  struct Round;

  bool all_done(Round& round);
  void wait(Round& round, std::int64_t begin_ns, std::int64_t most_ns);
  Result<std::vector<Payload>> parts_of(Round& round) const;
  void tell_slow(const Round& round);
  /// Of the job.
  int process_of(int lane) const;

  MPI_Comm communicator_;
  const std::int64_t patience_ns_;
  int lanes_ = 0;
  int lane_ = 0;
  std::int64_t most_ns_ = kNever;  // of the next exchange
  std::int64_t slow_after_ns_ = 0;
  std::function<void(int)> on_slow_;
  std::list<std::string> warnings_;  // may be on their way
  std::optional<Error> failure_;     // of one that was given up: its messages may come still
};

}  // namespace rrfp
