#include "sim/launch_per_peer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

class PerPeerRank {
 public:
  PerPeerRank(const Case& input, const std::vector<LaunchCell>& cells, int rank)
      : program_(input.program), cells_(cells), rank_(rank), builder_(input, rank) {
    next_compute_.assign(cells.size() + 1, kNoTask);
    for (std::size_t i = cells.size(); i-- > 0;) {
      next_compute_[i] =
          cells[i].kind == LaunchCellKind::kCompute ? cells[i].task : next_compute_[i + 1];
    }
  }

  LaunchRank lower() {
    std::size_t trailing = cells_.size();
    while (trailing > 0 && is_weight(cells_[trailing - 1])) --trailing;
    for (std::size_t i = 0; i < trailing; ++i) {
      const LaunchCell& cell = cells_[i];
      if (cell.kind == LaunchCellKind::kCompute) {
        wait_for_inputs(cell.task);
        builder_.compute({&cell.task, 1});
        continue;
      }
      pending_.push_back(cell);
      const bool more = i + 1 < cells_.size() && cells_[i + 1].kind != LaunchCellKind::kCompute;
      if (!more || is_consumed_by(cell, next_compute_[i])) flush();
    }
    std::vector<TaskId> weights;
    for (std::size_t i = trailing; i < cells_.size(); ++i) weights.push_back(cells_[i].task);
    if (!weights.empty()) builder_.compute(weights);
    builder_.wait(0, builder_.size());
    return builder_.take();
  }

 private:
  struct Flush {
    int first = 0;  ///< action
    int last = 0;
  };

  bool is_weight(const LaunchCell& cell) const {
    return cell.kind == LaunchCellKind::kCompute && program_.slot_of(cell.task) == Slot::kWeight;
  }
  const Edge& edge_of(const LaunchCell& cell) const {
    return program_.edge(cell.message / program_.microbatches());
  }
  int peer_of(const LaunchCell& cell) const {
    return cell.kind == LaunchCellKind::kSend ? edge_of(cell).to_rank : edge_of(cell).from_rank;
  }
  TaskId consumer_of(const LaunchCell& cell) const {
    const Edge& edge = edge_of(cell);
    return program_.task_id(edge.to, edge.slot(), cell.message % program_.microbatches());
  }
  bool is_consumed_by(const LaunchCell& cell, TaskId task) const {
    return cell.kind == LaunchCellKind::kReceive && consumer_of(cell) == task;
  }

  /// send_prev, recv_prev, send_next, recv_next.
  int place_of(const LaunchCell& cell) const {
    return (peer_of(cell) < rank_ ? 0 : 2) + (cell.kind == LaunchCellKind::kSend ? 0 : 1);
  }

  void flush() {
    std::stable_sort(
        pending_.begin(), pending_.end(),
        [this](const LaunchCell& a, const LaunchCell& b) { return place_of(a) < place_of(b); });
    const int first = builder_.size();
    for (const LaunchCell& cell : pending_) {
      const LaunchOperation operation{cell.message, cell.kind == LaunchCellKind::kSend};
      builder_.communicate({&operation, 1}, peer_stream(peer_of(cell)));
    }
    for (const LaunchCell& cell : pending_) {
      if (cell.kind == LaunchCellKind::kReceive) {
        arrivals_.push_back({consumer_of(cell), {first, builder_.size()}});
      }
    }
    pending_.clear();
  }

  void wait_for_inputs(TaskId task) {
    for (std::size_t i = 0; i < arrivals_.size();) {
      if (arrivals_[i].first != task) {
        ++i;
        continue;
      }
      builder_.wait(arrivals_[i].second.first, arrivals_[i].second.last);
      arrivals_.erase(arrivals_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  const Program& program_;
  const std::vector<LaunchCell>& cells_;
  int rank_;
  LaunchRankBuilder builder_;
  std::vector<TaskId> next_compute_;                ///< by position
  std::vector<LaunchCell> pending_;                 ///< not flushed yet
  std::vector<std::pair<TaskId, Flush>> arrivals_;  ///< received, not yet consumed
};

std::string describe(const Program& program, const LaunchCell& cell) {
  const Edge& edge = program.edge(cell.message / program.microbatches());
  const bool sends = cell.kind == LaunchCellKind::kSend;
  return std::to_string(sends ? edge.from : edge.to) + (sends ? "SEND_" : "RECV_") +
         (edge.kind == Kind::kForward ? "F" : "B") +
         std::to_string(cell.message % program.microbatches());
}

Result<void> check_cells(const Program& program, const LaunchCells& cells) {
  const std::size_t messages = program.edges().size() * program.microbatches();
  std::vector<bool> seen[2] = {std::vector<bool>(messages), std::vector<bool>(messages)};
  for (std::size_t rank = 0; rank < cells.size(); ++rank) {
    for (const LaunchCell& cell : cells[rank]) {
      if (cell.kind == LaunchCellKind::kCompute) continue;
      const bool sends = cell.kind == LaunchCellKind::kSend;
      const Edge& edge = program.edge(cell.message / program.microbatches());
      const int home = sends ? edge.from_rank : edge.to_rank;
      if (home != static_cast<int>(rank)) {
        return Error{"rank " + std::to_string(rank) + ": " + describe(program, cell) +
                     " belongs on rank " + std::to_string(home)};
      }
      if (seen[sends ? 0 : 1][cell.message]) {
        return Error{"rank " + std::to_string(rank) + ": " + describe(program, cell) +
                     " stands twice; each message is sent and received once"};
      }
      seen[sends ? 0 : 1][cell.message] = true;
    }
  }
  return {};
}

}  // namespace

Result<LaunchProgram> lower_per_peer(const Case& input, const LaunchCells& cells) {
  if (Result<void> checked = check_cells(input.program, cells); !checked.ok()) {
    return checked.error();
  }
  LaunchProgram lowered = empty_launch_program(input);
  for (int rank = 0; rank < input.program.ranks(); ++rank) {
    lowered.ranks.push_back(PerPeerRank(input, cells[rank], rank).lower());
  }
  return lowered;
}

}  // namespace rrfp
