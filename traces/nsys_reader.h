// Reads an Nsight Systems report that was exported to SQLite.
//
//  - Ranges: NVTX_EVENTS of type 59 (push-pop) and 60 (start-end), by inline
//    text or by textId; a range belongs to the thread that opened it.
//  - Launches: CUPTI_ACTIVITY_KIND_RUNTIME. Kernels: CUPTI_ACTIVITY_KIND_KERNEL,
//    to launches by process and correlationId.
//  - Times count from utcEpochNs of TARGET_INFO_SESSION_START_TIME.
// A table that is absent has no rows. One that lacks a column is passed over,
// which a note says. Rows are streamed; what says nothing
// about the pipeline is not kept.
//
// Thread safety: pure function but for the file.
#pragma once

#include <string>
#include <vector>

#include "scheduler_core/result.h"
#include "traces/profile.h"
#include "traces/profile_names.h"

namespace rrfp {

struct NsysFile {
  /// One for each process that has kernels or annotations of the pipeline, by
  /// the lowest GPU that it uses and then by its number; ranks are not set.
  std::vector<RawProfile> profiles;
  DroppedRecords dropped;          ///< of the other processes
  std::vector<std::string> notes;  ///< what was passed over; each names the file
};

/// The error names the file.
Result<NsysFile> read_nsys_file(const std::string& path, ProfileNames* names);

}  // namespace rrfp
