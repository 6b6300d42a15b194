// One lane's all-reduce where lanes are workers of their own: they exchange
// their parts, and each adds all of them in lane order.
//
// After an exchange that failed sums are worthless; failure() says what
// happened, and no other exchange is begun.
//
// Not thread safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "executor/lane_exchange.h"
#include "executor/model_lane_sum.h"

namespace rrfp {

class ExchangeLaneSum final : public LaneSum {
 public:
  explicit ExchangeLaneSum(std::shared_ptr<LaneExchange> exchange)
      : exchange_(std::move(exchange)) {}

  Matrix sum(std::vector<Matrix> parts) override;
  void leave() {
    if (exchange_ != nullptr) exchange_->leave();
  }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  std::shared_ptr<LaneExchange> exchange_;
  std::optional<Error> failure_;
};

}  // namespace rrfp
