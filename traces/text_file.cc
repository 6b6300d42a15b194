#include "traces/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace rrfp {

namespace {

// Closes the descriptor on every way out.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }

 private:
  int value_;
};

}  // namespace

Error file_too_big(const std::string& file, std::size_t limit_bytes) {
  return Error{file + ": larger than the limit of " + std::to_string(limit_bytes) +
               " bytes; raise the limit to read it"};
}

Result<std::string> read_text_file(const std::string& path, std::size_t limit_bytes) {
  const auto failed = [&path] { return Error{path + ": cannot read: " + std::strerror(errno)}; };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return failed();
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) return failed();
  if (S_ISDIR(status.st_mode)) return Error{path + ": is a directory; a file is needed"};
  const auto size = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  if (size > limit_bytes) return file_too_big(path, limit_bytes);

  constexpr std::size_t kBlock = std::size_t{1} << 16;
  std::string text;
  text.reserve(size + 1);
  std::vector<char> block(kBlock);
  for (;;) {
    const ssize_t got = ::read(file.get(), block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    if (got == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > limit_bytes) return file_too_big(path, limit_bytes);
  }
}

}  // namespace rrfp
