#include "traces/torch_csv_check.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace rrfp {

namespace {

// Where an action stands: enough to sort, compare and name it.
struct Standing {
  const TorchAction* action = nullptr;
  std::size_t row = 0;

  int stage() const { return action->stage; }
  int microbatch() const { return action->microbatch; }
  TorchOp op() const { return action->op; }
};

// In the order in which the checks walk: by stage, microbatch, op, place.
bool operator<(const Standing& a, const Standing& b) {
  // All of one stage stand on one row, whose actions lie in one array.
  return std::tuple(a.stage(), a.microbatch(), a.op(), a.action) <
         std::tuple(b.stage(), b.microbatch(), b.op(), b.action);
}

class Check {
 public:
  Check(const TorchSchedule& torch, const std::string& file, BMeans b_means)
      : torch_(torch), file_(file), b_means_(b_means) {}

  Result<void> run() {
    if (Result<void> valid = rows_of_stages(); !valid) return valid;
    for (std::size_t row = 0; row < torch_.rows.size(); ++row) {
      for (const TorchAction& action : torch_.rows[row].actions) {
        if (is_compute(action.op)) {
          compute_.push_back({&action, row});
          microbatches_ = std::max(microbatches_, action.microbatch + 1);
        } else if (is_message(action.op)) {
          messages_.push_back({&action, row});
        }
      }
    }
    if (compute_.empty()) return Error{file_ + ": no cell has an F, I, B or W"};
    std::sort(compute_.begin(), compute_.end());
    std::sort(messages_.begin(), messages_.end());
    if (Result<void> valid = all_microbatches(); !valid) return valid;
    return all_messages();
  }

 private:
  Error wrong(const Standing& at, const std::string& what) const {
    return Error{torch_place(file_, at.row, at.action->column) + ": " + as_written(at) + " " +
                 what};
  }

  std::string row_name(std::size_t row) const {
    return file_ + ": row " + std::to_string(row + 1) + " (rank " + std::to_string(row) + ")";
  }

  // An I that was read from a B is named as the file names it.
  std::string as_written(const Standing& at) const {
    TorchAction action = *at.action;
    if (b_means_ == BMeans::kInput && action.op == TorchOp::kInputGradient) {
      action.op = TorchOp::kBackward;
    }
    return to_string(action);
  }

  const char* a_backward() const {
    return b_means_ == BMeans::kInput ? "one B and one W" : "one B, or one I and one W";
  }

  Result<void> rows_of_stages() {
    std::map<int, std::size_t> rows;  // by stage; ordered, and as large as the file at most
    for (std::size_t row = 0; row < torch_.rows.size(); ++row) {
      for (const TorchAction& action : torch_.rows[row].actions) {
        const auto [known, added] = rows.try_emplace(action.stage, row);
        if (added || known->second == row) continue;
        return wrong({&action, row}, "is on a second row: stage " + std::to_string(action.stage) +
                                         " stands on row " + std::to_string(known->second + 1) +
                                         " (rank " + std::to_string(known->second) +
                                         "); a stage stands on one row only");
      }
    }
    for (const auto& [stage, row] : rows) {
      const int expected = static_cast<int>(row_of_stage_.size());
      if (stage != expected) {
        return Error{row_name(row) + " has stage " + std::to_string(stage) +
                     ", but no row has stage " + std::to_string(expected) +
                     "; stages are numbered from 0 without a gap"};
      }
      row_of_stage_.push_back(row);
    }
    return {};
  }

  // Walks compute_ in groups of one stage and microbatch.
  Result<void> all_microbatches() const {
    int stage = 0;
    int microbatch = 0;
    for (std::size_t first = 0; first < compute_.size();) {
      const Standing& at = compute_[first];
      if (at.stage() != stage || at.microbatch() != microbatch) {
        return no_forward(stage, microbatch);
      }
      std::size_t end = first + 1;
      while (end < compute_.size() && compute_[end].stage() == stage &&
             compute_[end].microbatch() == microbatch) {
        ++end;
      }
      if (Result<void> valid = one_microbatch(first, end); !valid) return valid;
      first = end;
      if (++microbatch == microbatches_) {
        ++stage;
        microbatch = 0;
      }
    }
    const bool whole = microbatch == 0 && stage == static_cast<int>(row_of_stage_.size());
    if (!whole) return no_forward(stage, microbatch);
    return {};
  }

  Error no_forward(int stage, int microbatch) const {
    return Error{row_name(row_of_stage_[static_cast<std::size_t>(stage)]) + ": " +
                 to_string({stage, TorchOp::kForward, false, microbatch, 0}) +
                 " is missing; every stage runs each microbatch, 0 to " +
                 std::to_string(microbatches_ - 1)};
  }

  // One stage and microbatch: [first, end) of compute_, sorted F, I, B, W.
  Result<void> one_microbatch(std::size_t first, std::size_t end) const {
    const Standing* by_op[4] = {nullptr, nullptr, nullptr, nullptr};
    for (std::size_t i = first; i < end; ++i) {
      const Standing*& slot = by_op[static_cast<std::size_t>(compute_[i].op())];
      if (slot != nullptr) return twice(*slot, compute_[i]);
      slot = &compute_[i];
    }
    const auto of = [&by_op](TorchOp op) { return by_op[static_cast<std::size_t>(op)]; };
    const Standing* const forward = of(TorchOp::kForward);
    const Standing* const input = of(TorchOp::kInputGradient);
    const Standing* const whole = of(TorchOp::kBackward);
    const Standing* const weight = of(TorchOp::kWeightGradient);
    if (forward == nullptr) {
      return no_forward(compute_[first].stage(), compute_[first].microbatch());
    }
    if (whole != nullptr && (input != nullptr || weight != nullptr)) {
      return wrong(*whole, "stands beside " + as_written(input != nullptr ? *input : *weight) +
                               "; a backward is " + a_backward());
    }
    if (whole == nullptr && input == nullptr && weight == nullptr) {
      return wrong(*forward, std::string("has no backward; it needs ") + a_backward());
    }
    if (whole == nullptr && weight == nullptr) {
      return wrong(*input, std::string("has no W; a backward is ") + a_backward());
    }
    if (whole == nullptr && input == nullptr) {
      return wrong(*weight, std::string("has no input gradient; a backward is ") + a_backward());
    }
    const Standing& backward = whole != nullptr ? *whole : *input;
    if (backward.action < forward->action) return before(backward, *forward);
    if (weight != nullptr && weight->action < input->action) return before(*weight, *input);
    return {};
  }

  Error twice(const Standing& earlier, const Standing& at) const {
    return wrong(at, "is there twice, the first time in column " +
                         std::to_string(earlier.action->column + 1));
  }

  Error before(const Standing& at, const Standing& needed) const {
    return wrong(at, "stands before " + as_written(needed) + " (column " +
                         std::to_string(needed.action->column + 1) + "), which it needs");
  }

  Result<void> all_messages() const {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      const Standing& at = messages_[i];
      if (at.microbatch() >= microbatches_) {
        return wrong(at, "names no microbatch of the file, which has 0 to " +
                             std::to_string(microbatches_ - 1));
      }
      if (i == 0) continue;
      const Standing& earlier = messages_[i - 1];
      if (std::tuple(earlier.stage(), earlier.microbatch(), earlier.op()) ==
          std::tuple(at.stage(), at.microbatch(), at.op())) {
        return twice(earlier, at);
      }
    }
    return {};
  }

  const TorchSchedule& torch_;
  const std::string& file_;
  BMeans b_means_;
  std::vector<std::size_t> row_of_stage_;
  std::vector<Standing> compute_;
  std::vector<Standing> messages_;
  int microbatches_ = 0;
};

}  // namespace

std::string torch_place(const std::string& file, std::size_t row, int column) {
  return file + ": row " + std::to_string(row + 1) + " (rank " + std::to_string(row) +
         "), column " + std::to_string(column + 1);
}

Result<void> check_torch_schedule(const TorchSchedule& torch, const std::string& file,
                                  BMeans b_means) {
  return Check(torch, file, b_means).run();
}

}  // namespace rrfp
