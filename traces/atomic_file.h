// Writes a file as a whole or not at all: under a temporary name in the same
// folder, flushed to the disk, then renamed. Whoever reads the name sees the
// old content or the new, also after a crash.
//
// Thread safety: calls for different paths are independent; of two for the
// same path one wins as a whole.
#pragma once

#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

/// The error names the path and what the system said; the temporary file is
/// removed and the old content stands. A path that is no regular file (such as
/// /dev/stdout) is written in place, for nothing can be renamed over it.
Result<void> write_file_atomically(const std::string& path, std::string_view content);

}  // namespace rrfp
