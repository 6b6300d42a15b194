#include "traces/variability.h"

namespace rrfp {

bool is_on_messages(DrawTarget target) {
  return target == DrawTarget::kLatency || target == DrawTarget::kTransfer ||
         target == DrawTarget::kBandwidth;
}

bool acts_on_messages(const VariabilityModel& model) {
  if (const auto* draw = std::get_if<DrawModel>(&model)) {
    return is_on_messages(draw->target);
  }
  if (const auto* lengths = std::get_if<MicrobatchLengths>(&model)) return lengths->messages;
  return std::holds_alternative<LognormalLatency>(model) ||
         std::holds_alternative<LatencySpikes>(model);
}

const ModelOrigin* origin_of(const VariabilityModel& model) {
  if (const auto* draw = std::get_if<DrawModel>(&model)) return &draw->origin;
  if (const auto* lengths = std::get_if<MicrobatchLengths>(&model)) return &lengths->origin;
  if (const auto* wave = std::get_if<ComputeWave>(&model)) return &wave->origin;
  return nullptr;
}

}  // namespace rrfp
