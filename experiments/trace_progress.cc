#include "experiments/trace_progress.h"

#include <filesystem>
#include <system_error>

namespace rrfp {

namespace {

constexpr std::int64_t kKib = 1024;

std::size_t kib_of(const std::string& path) {
  std::error_code failed;
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
