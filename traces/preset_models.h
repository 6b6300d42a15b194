// The presets, by what they are about. preset.h says what a preset is.
#pragma once

#include "traces/preset.h"

namespace rrfp {

// Devices, hosts and processes (preset_compute.cc).
extern const Preset kIdealPreset;
extern const Preset kHealthyDedicatedPreset;
extern const Preset kHealthyNoisyPreset;
extern const Preset kGpuSpreadPreset;
extern const Preset kLemonGpuPreset;
extern const Preset kSlowWorkerPreset;
extern const Preset kSlowHostPreset;
extern const Preset kDiurnalThermalPreset;

// What comes now and then (preset_episodes.cc).
extern const Preset kFailslowEpisodePreset;
extern const Preset kGcStaggeredPreset;
extern const Preset kGcPlannedPreset;
extern const Preset kDataloaderStallPreset;

// The model and its data (preset_data.cc).
extern const Preset kHeavyLastStagePreset;
extern const Preset kSeqlenLongtailPreset;
extern const Preset kSeqlenEmpiricalPreset;
extern const Preset kMmEncoderBurstPreset;
extern const Preset kMoeSkewPreset;

// Links (preset_network.cc).
extern const Preset kLinkDegradedStaticPreset;
extern const Preset kLinkDegradedDynamicPreset;
extern const Preset kFabricCongestedPreset;
extern const Preset kLinkFlapPreset;

using PresetModels = Result<std::vector<VariabilityModel>>;

/// A factor on durations.
DrawModel compute_factor(DrawScope scope, const Distribution& distribution);

/// A factor on the times of messages, transmission and latency.
DrawModel transfer_factor(DrawScope scope, const Distribution& distribution);

/// Drawn once for the job, and known.
DrawModel fixed_for_job(DrawModel model);

constexpr PresetParameter number_parameter(std::string_view name, std::string_view otherwise,
                                           double number, double least, double most,
                                           std::string_view meaning) {
  return {name, PresetValueType::kNumber, otherwise, number, least, most, meaning};
}

inline constexpr PresetParameter kRankParameter = {
    "rank", PresetValueType::kRank, "the middle one", 0, 0, 0, "the rank that is slow"};
inline constexpr PresetParameter kReplicaParameter = {
    "replica", PresetValueType::kReplica, "0", 0, 0, 0, "the data-parallel replica it is in"};

}  // namespace rrfp
