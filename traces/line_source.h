// The lines of a text file, one at a time and in constant memory, plain or
// compressed with gzip or zstd (told by the first bytes, not by the name).
//
// Thread safety: one source, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "scheduler_core/result.h"

namespace rrfp {

inline constexpr std::size_t kMaxLineBytes = std::size_t{16} << 20;

/// Is told how many bytes of the file (as it lies on the disk) were read since
/// the last call, so that somebody can show how far a long file is.
using ReadProgress = std::function<void(std::int64_t bytes)>;

class LineSource {
 public:
  /// The error names the path and what the system said.
  static Result<LineSource> open(const std::string& path, ReadProgress progress = {});

  LineSource(LineSource&&) noexcept;
  LineSource& operator=(LineSource&&) noexcept;
  ~LineSource();

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
  struct Stream;

  LineSource(std::string path, std::unique_ptr<Stream> stream);
  /// False at the end of the file.
  Result<bool> fill();

  void tell_progress();

  std::string path_;
  std::unique_ptr<Stream> stream_;
  ReadProgress progress_;
  std::int64_t told_bytes_ = 0;
  std::string buffer_;
  std::size_t begin_ = 0;  ///< of what is not consumed
  std::size_t end_ = 0;    ///< of what is filled
  std::int64_t line_number_ = 0;
};

}  // namespace rrfp
