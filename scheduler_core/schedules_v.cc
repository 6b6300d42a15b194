// V placement: rank r holds stages r (chunk 0) and 2p-1-r (chunk 1), so the
// last chunk-0 stage and the first chunk-1 stage share a rank, and so do the
// first and the last stage of the model. ZB-V is of Qi et al., 2024, in the
// form that torch runs (`ZBVZeroBubble`).
#include <algorithm>
#include <string>

#include "scheduler_core/order_writer.h"
#include "scheduler_core/schedule_families.h"

namespace rrfp {

namespace {

Result<void> need_v(const Program& program, std::string_view name) {
  const std::string needs = "schedule " + std::string(name) +
                            " needs V placement (rank r holds stages r and 2 * ranks - 1 - r); ";
  if (program.stages() != 2 * program.ranks()) {
    return Error{needs + std::to_string(program.ranks()) + " ranks have " +
                 std::to_string(program.stages()) + " stages, not " +
                 std::to_string(2 * program.ranks())};
  }
  for (int stage = 0; stage < program.stages(); ++stage) {
    const int rank = std::min(stage, program.stages() - 1 - stage);
    if (program.rank_of(stage) == rank) continue;
    return Error{needs + "stage " + std::to_string(stage) + " is on rank " +
                 std::to_string(program.rank_of(stage)) + ", not " + std::to_string(rank)};
  }
  return {};
}

// Writes one rank's order. Each call emits the next microbatch of its kind and
// chunk; those past the last microbatch only keep the count, because a short
// iteration runs the order of a full pipeline with the surplus left out.
class VRank {
 public:
  VRank(OrderWriter& order, const Program& program, int rank)
      : order_(order),
        microbatches_(program.microbatches()),
        stages_{rank, program.stages() - 1 - rank} {}

  int forwards(int chunk) const { return forwards_[chunk]; }

  void forward(int chunk) {
    const int i = forwards_[chunk]++;
    if (i < microbatches_) order_.forward(stages_[chunk], i);
  }
  void input_gradient(int chunk) {
    const int i = inputs_[chunk]++;
    if (i < microbatches_) order_.input_gradient(stages_[chunk], i);
  }
  void weight_gradient(int chunk) {
    const int i = weights_[chunk]++;
    if (i < microbatches_) order_.weight_gradient(stages_[chunk], i);
  }
  void backward(int chunk) {
    input_gradient(chunk);
    weight_gradient(chunk);
  }
  void remaining_weight_gradients(int chunk) {
    while (weights_[chunk] < inputs_[chunk]) weight_gradient(chunk);
  }

 private:
  OrderWriter& order_;
  int microbatches_;
  int stages_[2];
  int forwards_[2] = {0, 0};
  int inputs_[2] = {0, 0};
  int weights_[2] = {0, 0};
};

}  // namespace

Result<Schedule> make_zb_v(const Program& program, const ScheduleContext&) {
  if (Result<void> fits = need_v(program, "zb-v"); !fits) return fits.error();
  if (!program.split_backward()) {
    return Error{
        "schedule zb-v needs split backwards (split_backward true): it places W apart from I"};
  }
  const int p = program.ranks();
  const int n = std::max(2 * p - 1, program.microbatches());
  OrderWriter order(program);
  for (int r = 0; r < p; ++r) {
    VRank rank(order, program, r);
    for (int i = 0; i < 2 * (p - r) - 1; ++i) rank.forward(0);
    for (int i = 0; i < r; ++i) {
      rank.forward(1);
      rank.forward(0);
    }
    for (int i = 0; i < p - r; ++i) {
      rank.forward(1);
      rank.backward(1);
    }
    while (rank.forwards(1) < rank.forwards(0) || rank.forwards(0) < n) {
      if (rank.forwards(0) < n) rank.forward(0);
      rank.backward(0);
      rank.forward(1);
      rank.backward(1);
    }
    for (int i = 0; i < r; ++i) {
      rank.input_gradient(0);
      rank.input_gradient(1);
    }
    for (int i = 0; i < p - r; ++i) {
      rank.input_gradient(0);
      rank.weight_gradient(0);
    }
    rank.remaining_weight_gradients(1);
    rank.remaining_weight_gradients(0);
  }
  return std::move(order).finish();
}

}  // namespace rrfp
