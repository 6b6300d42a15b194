// The words that reading and writing a scenario share.
#pragma once

#include "traces/case_words.h"
#include "traces/scenario.h"

namespace rrfp {

enum class Shape : std::uint8_t { kLinear, kLooped, kV };
inline constexpr Choice<Shape> kShapes[] = {
    {"linear", Shape::kLinear}, {"looped", Shape::kLooped}, {"v", Shape::kV}};

}  // namespace rrfp
