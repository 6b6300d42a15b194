#include "experiments/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace rrfp {

namespace fs = std::filesystem;

Result<void> check_new_file(const std::string& path, std::string_view argument) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  // /dev/stdout may well lead to a regular file.
  if (path.starts_with("/dev/") || (fs::exists(status) && fs::is_other(status))) return {};
  if (fs::exists(status)) {
    return Error{path + ": exists already; remove it or give another " + std::string(argument)};
  }
  const fs::path folder = fs::path(path).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  if (!fs::is_directory(where, ignored)) {
    return Error{path + ": cannot write: there is no folder " + where +
                 "; make it or give another " + std::string(argument)};
  }
  if (::access(where.c_str(), W_OK | X_OK) != 0) {
    return Error{path + ": cannot write: folder " + where + ": " + std::strerror(errno)};
  }
  return {};
}

}  // namespace rrfp
