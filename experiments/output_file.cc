#include "experiments/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace rrfp {

namespace fs = std::filesystem;

namespace {

// /dev/stdout may well lead to a regular file.
bool is_no_file(const std::string& path, const fs::file_status& status) {
  return path.starts_with("/dev/") || (fs::exists(status) && fs::is_other(status));
}

// That a file can be made beside what `target` is, or will be.
Result<void> check_folder(const std::string& path, const fs::path& target,
                          std::string_view argument) {
  std::error_code ignored;
  const fs::path folder = target.parent_path();
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

}  // namespace

Result<void> check_new_file(const std::string& path, std::string_view argument) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (is_no_file(path, status)) return {};
  if (fs::exists(status)) {
    return Error{path + ": exists already; remove it or give another " + std::string(argument)};
  }
  return check_folder(path, path, argument);
}

Result<void> check_output_file(const std::string& path, std::string_view argument) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (is_no_file(path, status)) return {};
  if (fs::is_directory(status)) {
    return Error{path + ": cannot write: is a directory; give a file as " + std::string(argument)};
  }
  // What is behind a link is replaced, and not the link.
  const fs::path behind = fs::exists(status) ? fs::canonical(path, ignored) : fs::path(path);
  return check_folder(path, behind, argument);
}

}  // namespace rrfp
