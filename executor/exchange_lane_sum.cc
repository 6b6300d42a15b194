#include "executor/exchange_lane_sum.h"

namespace rrfp {

Matrix ExchangeLaneSum::sum(std::vector<Matrix> parts) {
  RRFP_CHECK(parts.size() == 1);
  Matrix& mine = parts.front();
  if (failure_) return std::move(mine);
  const Result<std::vector<Payload>> all = exchange_->exchange(to_payload(mine));
  if (!all.ok()) {
    failure_ = all.error();
    return std::move(mine);
  }
  std::vector<Matrix> by_lane;
  for (const Payload& part : *all) {
    Result<Matrix> matrix = to_matrix(part, static_cast<int>(mine.cols()));
    if (!matrix.ok() || matrix->rows() != mine.rows()) {
      failure_ = Error{"a lane brought a part of " + std::to_string(part.size()) +
                       " bytes to a sum of " + std::to_string(bytes_of(mine))};
      return std::move(mine);
    }
    by_lane.push_back(std::move(*matrix));
  }
  return HeldLaneSum().sum(std::move(by_lane));
}

}  // namespace rrfp
