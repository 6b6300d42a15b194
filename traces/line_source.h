// The lines of a text file, one at a time and in constant memory, plain or
// compressed with gzip or zstd (told by the first bytes, not by the name).
//
// Thread safety: one source, one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"
#include "traces/byte_source.h"

namespace rrfp {

inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

class LineSource {
 public:
  /// The error names the path and what the system said.
  static Result<LineSource> open(const std::string& path, ReadProgress progress = {});

  /// The next line without its end (LF or CRLF); false at the end of the
  /// file. `line` is valid until the next call. The error names path and line:
  /// a line longer than kMaxLineBytes, or compressed data that is damaged or
  /// ends too early.
  Result<bool> next(std::string_view* line);

  const std::string& path() const { return path_; }
  std::int64_t line_number() const { return line_number_; }  ///< of the last line, from 1
  /// "path: line 17: what".
  Error error(const std::string& what) const;

 private:
  LineSource(std::string path, ByteSource bytes);
  /// False at the end of the file.
  Result<bool> fill();

  std::string path_;
  ByteSource bytes_;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< of what is not consumed
  std::size_t end_ = 0;    ///< of what is filled
  std::int64_t line_number_ = 0;
};

}  // namespace rrfp
