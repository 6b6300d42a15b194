// Writes a long file piece by piece, under a temporary name that becomes the
// path when all is written, or the first part that is to be kept: whoever reads
// the path sees a whole file, or whole parts and at most a torn one behind them.
//
// Thread safety: one file, one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

class StreamedFile {
 public:
  /// Compressed where the path ends in ".gz" or ".zst". A device or a pipe is
  /// written in place, as write_file_atomically() does.
  static Result<StreamedFile> create(const std::string& path);

  StreamedFile(StreamedFile&&) noexcept;
  StreamedFile& operator=(StreamedFile&&) noexcept;
  /// Without finish() nothing is left behind.
  ~StreamedFile();

  /// Failures are told by keep() and finish().
  void append(std::string_view text);

  /// Makes what was appended so far readable under the path, whatever becomes of
  /// this program; more may follow. In a compressed file that is a gzip member
  /// or zstd frame of its own. The error is as of finish().
  Result<void> keep();

  /// Gives the file its name. REQUIRES: not called before; nothing is
  /// appended afterwards. The error names the path and what the system said.
  Result<void> finish();

 private:
  struct State;
  explicit StreamedFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rrfp
