// The words that reading and writing a scenario share.
#pragma once

#include "traces/case_words.h"
#include "traces/scenario.h"

namespace rrfp {

inline constexpr Choice<ComputeScope> kComputeScopes[] = {{"operation", ComputeScope::kOperation},
                                                          {"microbatch", ComputeScope::kMicrobatch},
                                                          {"rank", ComputeScope::kRank}};

enum class Target : std::uint8_t { kCompute, kLatency };
inline constexpr Choice<Target> kTargets[] = {{"compute", Target::kCompute},
                                              {"latency", Target::kLatency}};

enum class ModelWord : std::uint8_t { kLognormal, kSpikes };
inline constexpr Choice<ModelWord> kModelWords[] = {{"lognormal", ModelWord::kLognormal},
                                                    {"spikes", ModelWord::kSpikes}};

enum class Shape : std::uint8_t { kLinear, kLooped, kV };
inline constexpr Choice<Shape> kShapes[] = {
    {"linear", Shape::kLinear}, {"looped", Shape::kLooped}, {"v", Shape::kV}};

inline constexpr double kMostCv = 100;

}  // namespace rrfp
