#include "traces/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

// A name that no other call of this process uses. Left over by a process that
// had the same number it may still be taken.
std::string temporary_name(const std::string& path) {
  static std::atomic<std::uint64_t> calls{0};
  return path + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(calls.fetch_add(1));
}

// Creates a new file beside `path` and says under which name; -1 on failure.
int create_temporary(const std::string& path, mode_t mode, std::string& name) {
  constexpr int kAttempts = 1000;
  int file = -1;
  for (int attempt = 0; attempt < kAttempts && file < 0; ++attempt) {
    name = temporary_name(path);
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file < 0 && errno != EEXIST) break;
  }
  return file;
}

Result<void> write_in_place(const std::string& path, std::string_view content) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return failed(path, "open");
  const bool written = write_all(file, content);
  Result<void> result = written ? Result<void>() : failed(path, "write");
  ::close(file);
  return result;
}

// Writes, flushes and closes.
Result<void> fill(int file, const std::string& path, std::string_view content) {
  Result<void> result;
  if (!write_all(file, content)) {
    result = failed(path, "write");
  } else if (::fsync(file) != 0) {
    result = failed(path, "flush");
  }
  if (::close(file) != 0 && result.ok()) result = failed(path, "close");
  return result;
}

// The new name itself survives a crash only once the folder is flushed. Not
// every file system can; the content is whole either way.
void flush_folder(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace

bool is_written_in_place(const std::string& path) {
  if (path.starts_with("/dev/")) return true;
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

std::string behind_links(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) return path;
  char* const real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string target = real;
  std::free(real);
  return target;
}

Result<void> write_file_atomically(const std::string& path, std::string_view content) {
  if (is_written_in_place(path)) return write_in_place(path, content);
  const std::string target = behind_links(path);
  struct stat status = {};
  mode_t mode = 0666;
  if (::stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) {
      return Error{path + ": cannot write: is a directory; a file is needed"};
    }
    mode = status.st_mode & 0777;
  }
  std::string temporary;
  const int file = create_temporary(target, mode, temporary);
  if (file < 0) return failed(path, "create a temporary file beside it");
  Result<void> result = fill(file, path, content);
  if (result.ok() && std::rename(temporary.c_str(), target.c_str()) != 0) {
    result = failed(path, "rename");
  }
  if (!result.ok()) {
    ::unlink(temporary.c_str());
    return result;
  }
  flush_folder(target);
  return {};
}

}  // namespace rrfp
