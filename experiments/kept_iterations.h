// The iterations of a run, kept for what is made of them when it has ended.
//
// Thread safety: that of IterationSink; `all` after the run.
#pragma once

#include <utility>
#include <vector>

#include "executor/plan.h"

namespace rrfp {

class KeptIterations final : public IterationSink {
 public:
  Result<void> on_iteration(IterationRecord record) override {
    all.push_back(std::move(record));
    return {};
  }
  std::vector<IterationRecord> all;
};

}  // namespace rrfp
