#include "traces/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace rrfp {

namespace {

Error failed(const std::string& path, const char* action) {
  return Error{path + ": cannot write: " + action + ": " + std::strerror(errno)};
}

bool write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// A name no other call uses: of the process, and of the call within it.
std::string temporary_name(const std::string& path) {
  static std::atomic<std::uint64_t> calls{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(calls.fetch_add(1));
}

Result<void> write_in_place(const std::string& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return failed(path, "open");
  const bool written = write_all(file, content);
  Result<void> result = written ? Result<void>() : failed(path, "write");
  ::close(file);
  return result;
}

// Fills and flushes the temporary file; it is left behind on failure.
Result<void> write_temporary(const std::string& path, const std::string& temporary,
                             std::string_view content, mode_t mode) {
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) return failed(path, "create a temporary file beside it");
  Result<void> result;
  if (!write_all(file, content)) {
    result = failed(path, "write");
  } else if (::fsync(file) != 0) {
    result = failed(path, "flush");
  }
  if (::close(file) != 0 && result.ok()) result = failed(path, "close");
  return result;
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, std::string_view content) {
  struct stat status = {};
  mode_t mode = 0666;
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      errno = EISDIR;
      return failed(path, "open");
    }
    if (!S_ISREG(status.st_mode)) return write_in_place(path, content);
    mode = status.st_mode & 0777;
  }
  const std::string temporary = temporary_name(path);
  Result<void> result = write_temporary(path, temporary, content, mode);
  if (result.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    result = failed(path, "rename");
  }
  if (!result.ok()) {
    ::unlink(temporary.c_str());
    return result;
  }
  // The new name itself survives a crash only once the folder is flushed. Not
  // every file system can; the content is whole either way.
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  return {};
}

}  // namespace rrfp
