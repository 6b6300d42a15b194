#include "experiments/trace_progress.h"

#include <filesystem>
#include <system_error>

namespace rrfp {

namespace {

constexpr std::int64_t kKib = 1024;

/// Of the file, or of all files of the folder.
std::size_t kib_of(const std::string& path) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) {
    std::size_t sum = 0;
    std::filesystem::directory_iterator at(path, failed);
    for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
      if (at->is_regular_file(failed)) sum += kib_of(at->path().string());
    }
    return sum;
  }
  const std::uintmax_t bytes = std::filesystem::file_size(path, failed);
  return failed ? 0 : static_cast<std::size_t>(bytes / kKib);
}

}  // namespace

TraceProgress::TraceProgress(std::ostream& err, const std::string& path, int passes)
    : bar_(err, is_terminal_stderr(), kib_of(path) * static_cast<std::size_t>(passes)) {}

ReadProgress TraceProgress::callback() {
  return [this](std::int64_t bytes) {
    rest_bytes_ += bytes;
    bar_.add(static_cast<std::size_t>(rest_bytes_ / kKib));
    rest_bytes_ %= kKib;
  };
}

}  // namespace rrfp
