#include "traces/length_draws.h"

#include <algorithm>
#include <string>

#include "traces/draw_model.h"
#include "traces/saturating.h"

namespace rrfp {

namespace {

// A packed microbatch of more sequences than this is filled up by its last.
constexpr std::uint64_t kMostPacked = 100'000;
constexpr int kMostPackedMean = 10'000;
constexpr int kMeanDraws = 4096;

}  // namespace

Result<void> check_packed(const MicrobatchLengths& model) {
  if (model.samples > 0) return {};
  if (Sampler(model.length).mean() * kMostPackedMean >= model.unit) return {};
  return Error{"a microbatch would be packed with more than " + std::to_string(kMostPackedMean) +
               " sequences of mean length; give longer ones or fewer tokens to fill"};
}

CompiledLengths::CompiledLengths(const MicrobatchLengths& model, std::size_t position,
                                 std::uint64_t seed, const Program& program)
    : model_(model),
      position_(position),
      seed_(seed),
      microbatches_(program.microbatches()),
      length_(model.length),
      cost_of_row_(static_cast<std::size_t>(program.stages() * kSlots), -1) {
  for (int row = 0; row < program.stages() * kSlots; ++row) {
    const int stage = row / kSlots;
    for (std::size_t i = 0; i < model_.costs.size(); ++i) {
      const LengthCost& cost = model_.costs[i];
      const bool stages = cost.stages.empty() || std::find(cost.stages.begin(), cost.stages.end(),
                                                           stage) != cost.stages.end();
      if (!stages ||
          !means(cost.kinds, static_cast<Slot>(row % kSlots), program.split_backward())) {
        continue;
      }
      cost_of_row_[static_cast<std::size_t>(row)] = static_cast<int>(i);
      break;
    }
  }
  if (model_.known) return;
  const DrawSeries draws(DrawKey{seed_, ~std::uint64_t{0}, purpose_of(position_, 0, 0), 0});
  for (int i = 0; i < kMeanDraws; ++i) {
    const Size size = draw(draws, i);
    mean_.sum += size.sum / kMeanDraws;
    mean_.squares += size.squares / kMeanDraws;
  }
}

CompiledLengths::Size CompiledLengths::draw(const DrawSeries& draws, int microbatch) const {
  Size size;
  const std::uint64_t index = element(0, microbatch);
  const auto add = [&size](double length) {
    size.sum += length;
    size.squares += length * length;
  };
  if (model_.samples > 0) {
    for (int i = 0; i < model_.samples; ++i) {
      add(length_.at(draws.bits(index, static_cast<std::uint64_t>(i))) / model_.unit);
    }
    return size;
  }
  for (std::uint64_t i = 0; size.sum < 1; ++i) {
    const double left = 1 - size.sum;
    if (i == kMostPacked) {
      add(left);
      break;
    }
    const double length = length_.at(draws.bits(index, i)) / model_.unit;
    if (length >= left) {
      add(left);
      break;
    }
    add(length);
  }
  return size;
}

std::vector<CompiledLengths::Size> CompiledLengths::draw_all(const WorldId& world) const {
  const DrawSeries draws(DrawKey{seed_, static_cast<std::uint64_t>(world.iteration),
                                 purpose_of(position_, world.replica, 0), 0});
  std::vector<Size> sizes;
  for (int m = 0; m < microbatches_; ++m) sizes.push_back(draw(draws, m));
  return sizes;
}

void CompiledLengths::apply(const WorldId& world, ComputeTable& out) const {
  out.all_known = out.all_known && model_.known;
  const std::vector<Size> sizes = draw_all(world);
  for (std::size_t row = 0; row < cost_of_row_.size(); ++row) {
    if (cost_of_row_[row] < 0) continue;
    const LengthCost& cost = model_.costs[static_cast<std::size_t>(cost_of_row_[row])];
    const auto factor_of = [&cost](const Size& size) {
      return cost.constant + cost.linear * size.sum + cost.quadratic * size.squares;
    };
    for (std::size_t m = 0; m < sizes.size(); ++m) {
      Effect& effect = out.tasks[row * sizes.size() + m];
      const double factor = factor_of(sizes[m]);
      effect.factor *= factor;
      effect.expected_factor *= model_.known ? factor : factor_of(mean_);
    }
  }
}

void CompiledLengths::scale_messages(const WorldId& world,
                                     std::vector<std::int64_t>& message_bytes) const {
  if (!model_.messages || message_bytes.empty()) return;
  const std::vector<Size> sizes = draw_all(world);
  for (std::size_t id = 0; id < message_bytes.size(); ++id) {
    message_bytes[id] =
        rounded_ns(static_cast<double>(message_bytes[id]) * sizes[id % sizes.size()].sum);
  }
}

}  // namespace rrfp
