// A text file that grows while something runs: what has been written is never
// touched again, so a long run costs no more per iteration than a short one.
//
// Invariants
//  1. The first piece replaces what the path held, as a whole (atomic_file.h).
//  2. A later piece is added at the end by one call of the system. A writer
//     that is killed leaves whole pieces and at most a torn one behind them.
//
// Thread safety: one thread.
#pragma once

#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

class GrowingFile {
 public:
  /// Nothing is written before the first piece.
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  /// The error names the path and what the system said.
  Result<void> append(std::string_view piece);

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace rrfp
