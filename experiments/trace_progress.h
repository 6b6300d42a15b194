// How far the reading of a long file is, on a terminal.
//
// Thread safety: one file, one thread.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "experiments/progress_bar.h"
#include "traces/line_source.h"

namespace rrfp {

class TraceProgress {
 public:
  /// The file, or each file of the folder, is going to be read `passes` times.
  TraceProgress(std::ostream& err, const std::string& path, int passes);

  /// To be handed to whoever reads. It must not outlive this object.
  ReadProgress callback();

 private:
  ProgressBar bar_;
  std::int64_t rest_bytes_ = 0;  ///< read, and less than what the bar counts in
};

}  // namespace rrfp
