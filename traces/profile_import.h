// Imports the files of a profiler: a folder of one file per rank, or one file.
//
// Memory is that of the largest file's launches and kernels, plus the records
// of the trace.
//
// Thread safety: pure functions but for the files.
#pragma once

#include <optional>
#include <string>

#include "scheduler_core/result.h"
#include "traces/byte_source.h"
#include "traces/profile_assembly.h"
#include "traces/profile_names.h"

namespace rrfp {

struct ProfileImportOptions {
  ProfilePatterns patterns;
  BMeans b_means = BMeans::kFull;
  std::optional<int> microbatches;  ///< see record_rank
  ProfileLayoutOptions layout;
};

/// PyTorch profiler (Kineto) files. Files of a folder that are no JSON traces
/// are passed over, which the report notes. The error names the file and the
/// byte.
Result<ProfileImport> import_kineto(const std::string& path, const ProfileImportOptions& options,
                                    const ReadProgress& progress = {});

/// Nsight Systems reports, exported to SQLite: one with a process per rank, or
/// one per rank, or one per node with as many processes each. Ranks count the
/// processes of a file by GPU, and files by their names. The error names the
/// file.
Result<ProfileImport> import_nsys(const std::string& path, const ProfileImportOptions& options,
                                  const ReadProgress& progress = {});

}  // namespace rrfp
