// Writes a long file piece by piece, under a temporary name that becomes the
// path when all is written: whoever reads the path sees a whole file.
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
  /// Compressed where the path ends in ".gz" or ".zst".
  static Result<StreamedFile> create(const std::string& path);

  StreamedFile(StreamedFile&&) noexcept;
  StreamedFile& operator=(StreamedFile&&) noexcept;
  /// Without finish() nothing is left behind.
  ~StreamedFile();

  /// Failures are told by finish().
  void append(std::string_view text);

  /// Gives the file its name. REQUIRES: not called before; nothing is
  /// appended afterwards. The error names the path and what the system said.
  Result<void> finish();

 private:
  struct State;
  explicit StreamedFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rrfp
