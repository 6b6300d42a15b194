// Makes a failing case small enough to read.
#pragma once

#include <functional>

#include "traces/case.h"

namespace rrfp::model {

/// The smallest case found, by dropping stages, microbatches and whole
/// features and by setting numbers to 0, for which `fails` still holds.
/// REQUIRES: fails(given).
Case shrink(Case given, const std::function<bool(const Case&)>& fails);

}  // namespace rrfp::model
