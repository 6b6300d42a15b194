// How the double's NCCL says what went wrong.
//
// Thread safety: any.
#pragma once

#include <nccl.h>

#include <string>

namespace rrfp {

/// Leaves the text for ncclGetLastError; the code.
ncclResult_t nccl_failure(ncclResult_t code, const std::string& text);

/// The same with an objection: on hardware it would hang, or give wrong numbers.
ncclResult_t nccl_objection(const std::string& text);

/// Success, or a failure where anything has been objected to in this process.
ncclResult_t nccl_verdict();

/// What has been objected to, or else what was left last. Stays until the thread
/// asks again.
const char* last_nccl_failure();

/// The objection where there is one, or else what the code means.
const char* nccl_error_text(ncclResult_t code);

}  // namespace rrfp
