// The all-reduce inside a task: what each lane computed of a sum is added in
// lane order, on every lane alike.
#pragma once

#include <vector>

#include "executor/model_tensor.h"

namespace rrfp {

class LaneSum {
 public:
  virtual ~LaneSum() = default;
  /// `parts`: of the lanes held here, ascending. All lanes get the same bits.
  virtual Matrix sum(std::vector<Matrix> parts) = 0;
};

/// All lanes are held here: one lane, or the serial reference of several.
class HeldLaneSum final : public LaneSum {
 public:
  Matrix sum(std::vector<Matrix> parts) override {
    Matrix total = std::move(parts.front());
    for (std::size_t lane = 1; lane < parts.size(); ++lane) total += parts[lane];
    return total;
  }
};

}  // namespace rrfp
