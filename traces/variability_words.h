// The words that reading and writing "variability" share.
#pragma once

#include "traces/json_cursor.h"
#include "traces/variability.h"

namespace rrfp {

inline constexpr double kMostCv = 100;

enum class ModelWord : std::uint8_t {
  kLognormal,
  kSpikes,
  kFactor,
  kExtra,
  kHold,
  kLengths,
  kWave
};
inline constexpr Choice<ModelWord> kModelWords[] = {{"lognormal", ModelWord::kLognormal},
                                                    {"spikes", ModelWord::kSpikes},
                                                    {"factor", ModelWord::kFactor},
                                                    {"extra", ModelWord::kExtra},
                                                    {"hold", ModelWord::kHold},
                                                    {"lengths", ModelWord::kLengths},
                                                    {"wave", ModelWord::kWave}};

inline constexpr Choice<ComputeScope> kComputeScopes[] = {{"operation", ComputeScope::kOperation},
                                                          {"microbatch", ComputeScope::kMicrobatch},
                                                          {"rank", ComputeScope::kRank}};

inline constexpr Choice<DrawTarget> kTargets[] = {{"compute", DrawTarget::kCompute},
                                                  {"latency", DrawTarget::kLatency},
                                                  {"transfer", DrawTarget::kTransfer},
                                                  {"bandwidth", DrawTarget::kBandwidth},
                                                  {"input", DrawTarget::kInput}};

inline constexpr Choice<DrawScope> kDrawScopes[] = {{"operation", DrawScope::kOperation},
                                                    {"message", DrawScope::kMessage},
                                                    {"microbatch", DrawScope::kMicrobatch},
                                                    {"stage", DrawScope::kStage},
                                                    {"rank", DrawScope::kRank},
                                                    {"gpu", DrawScope::kGpu},
                                                    {"link", DrawScope::kLink},
                                                    {"replica", DrawScope::kReplica},
                                                    {"iteration", DrawScope::kIteration}};

inline constexpr Choice<EpisodeElement> kEpisodeElements[] = {{"all", EpisodeElement::kAll},
                                                              {"rank", EpisodeElement::kRank},
                                                              {"gpu", EpisodeElement::kGpu},
                                                              {"link", EpisodeElement::kLinkPair}};

inline constexpr Choice<Kind> kTaskKinds[] = {{"F", Kind::kForward},
                                              {"B", Kind::kBackward},
                                              {"I", Kind::kInputGradient},
                                              {"W", Kind::kWeightGradient}};

}  // namespace rrfp
