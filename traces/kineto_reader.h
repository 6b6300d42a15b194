// Reads a PyTorch profiler (Kineto) file, plain or compressed.
//
// Thread safety: pure function but for the file.
#pragma once

#include <string>

#include "scheduler_core/result.h"
#include "traces/byte_source.h"
#include "traces/profile.h"
#include "traces/profile_names.h"

namespace rrfp {

/// The rank is what distributedInfo says, else what the file's name says, else
/// `otherwise`; an error, which says how to name the file, where that is
/// nothing too. All errors name the file, and the byte where it is malformed.
Result<RawProfile> read_kineto_file(const std::string& path, ProfileNames* names,
                                    std::optional<int> otherwise, ReadProgress progress = {});

}  // namespace rrfp
