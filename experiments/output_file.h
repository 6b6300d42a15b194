// Whether a file can be written where a command is to leave its result, said
// before the long work and not after it.
//
// Thread safety: pure functions but for the file system.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

/// What is there already may be somebody's work, or the command's own input: it
/// is not overwritten. Devices and pipes (/dev/stdout) are no such files. The
/// error tells to give another `argument`, or why the folder takes no file.
Result<void> check_new_file(const std::string& path, std::string_view argument);

/// The same for a result that takes the place of what is there once it is whole.
Result<void> check_output_file(const std::string& path, std::string_view argument);

/// A file, and what it is to the user: "FILE", "--trace".
struct NamedFile {
  std::string name;
  std::string path;  ///< "-" is standard input
};

/// That none of `replaced` is one of `read`, for it would be lost, or another of
/// `replaced`: by whatever paths and links. Devices and pipes may be given twice.
Result<void> check_files_apart(std::span<const NamedFile> read,
                               std::span<const NamedFile> replaced);

}  // namespace rrfp
