// Reads a whole file, up to a limit, so that hostile or mistaken input (a
// device, a file of another kind) costs bounded memory.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <cstddef>
#include <string>

#include "scheduler_core/result.h"

namespace rrfp {

inline constexpr std::size_t kDefaultFileLimitBytes = std::size_t{64} << 20;

/// The content. The error says why it cannot be read, or that it is larger
/// than `limit_bytes`. A pipe is read to its end.
Result<std::string> read_text_file(const std::string& path,
                                   std::size_t limit_bytes = kDefaultFileLimitBytes);

Error file_too_big(const std::string& file, std::size_t limit_bytes);

}  // namespace rrfp
