#include "traces/growing_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "traces/atomic_file.h"

namespace rrfp {

GrowingFile::~GrowingFile() {
  if (file_ >= 0) ::close(file_);
}

Result<void> GrowingFile::append(std::string_view piece) {
  const auto failed = [this](const char* action) {
    return Error{path_ + ": cannot write: " + action + ": " + std::strerror(errno)};
  };
  if (file_ < 0) {
    Result<void> begun = write_file_atomically(path_, piece);
    if (!begun.ok()) return begun;
    file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file_ < 0) return failed("open");
    return {};
  }
  while (!piece.empty()) {
    const ssize_t written = ::write(file_, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write");
    piece.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace rrfp
