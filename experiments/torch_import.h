// A torch pipelining schedule, checked and made into a file of this project.
//
// Thread safety: pure function.
#pragma once

#include <string>
#include <string_view>

#include "scheduler_core/result.h"
#include "traces/torch_csv.h"

namespace rrfp {

struct TorchImport {
  std::string text;    ///< of the file to write
  std::string report;  ///< what was used, what was dropped and why
};

/// `as_case`: a case (rrfp.case/1) in which F, I and W take 1 ms, B takes 2 ms
/// and each activation is one byte, with the order as a window of 1. Otherwise
/// the compute cells alone, as a torch CSV. The error names row and column, or
/// walks the cycle of an order that cannot run to its end.
Result<TorchImport> import_torch_csv(std::string_view text, const std::string& file,
                                     const TorchCsvOptions& options, bool as_case);

}  // namespace rrfp
