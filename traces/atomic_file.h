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

/// Whether nothing can be renamed over `path`: it is no regular file (a device, a
/// pipe), or may lead to one that others write to as well (/dev/stdout).
bool is_written_in_place(const std::string& path);

/// Where a link leads, for the file behind it is replaced, and not the link;
/// `path` itself where it is none.
std::string behind_links(const std::string& path);

/// The error names the path and what the system said; the temporary file is
/// removed and the old content stands. See is_written_in_place().
Result<void> write_file_atomically(const std::string& path, std::string_view content);

}  // namespace rrfp
