// The bytes of a file, plain or compressed with gzip or zstd (told by the
// first bytes, not by the name), in constant memory.
//
// Thread safety: one source, one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "scheduler_core/result.h"

namespace rrfp {

/// Is told how many bytes of the file (as it lies on the disk) were read since
/// the last call, so that somebody can show how far a long file is.
using ReadProgress = std::function<void(std::int64_t bytes)>;

class ByteSource {
 public:
  /// The error names the path and what the system said.
  static Result<ByteSource> open(const std::string& path, ReadProgress progress = {});

  ByteSource(ByteSource&&) noexcept;
  ByteSource& operator=(ByteSource&&) noexcept;
  ~ByteSource();

  /// Fills `data` with up to `size` bytes and returns how many; 0 at the end
  /// of the file. An error, which names no path, says that the compressed data
  /// is damaged or ends too early, or what the system said. Of a gzip file all
  /// bytes before the damage come before the error; of a zstd file some few
  /// thousand may be missing.
  Result<std::size_t> read(char* data, std::size_t size);

 private:
  struct Stream;

  explicit ByteSource(std::unique_ptr<Stream> stream);

  std::unique_ptr<Stream> stream_;
};

}  // namespace rrfp
