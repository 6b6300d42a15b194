#include "experiments/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "traces/atomic_file.h"

namespace rrfp {

namespace fs = std::filesystem;

namespace {

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

// Whether both lead to one file, which need not be there yet.
bool is_same_file(const std::string& a, const std::string& b) {
  std::error_code failed;
  if (fs::equivalent(a, b, failed) && !failed) return true;
  std::error_code of_a;
  std::error_code of_b;
  const fs::path at_a = fs::weakly_canonical(fs::absolute(a, of_a), of_a);
  const fs::path at_b = fs::weakly_canonical(fs::absolute(b, of_b), of_b);
  return !of_a && !of_b && at_a == at_b;
}

}  // namespace

Result<void> check_files_apart(std::span<const NamedFile> read,
                               std::span<const NamedFile> replaced) {
  for (std::size_t i = 0; i < replaced.size(); ++i) {
    const NamedFile& out = replaced[i];
    if (is_written_in_place(out.path)) continue;
    for (const NamedFile& in : read) {
      if (!is_same_file(in.path == "-" ? "/dev/stdin" : in.path, out.path)) continue;
      return Error{out.name + ": " + out.path + " is what " + in.name +
                   " reads, and would be replaced; give another path"};
    }
    for (const NamedFile& other : replaced.first(i)) {
      if (!is_same_file(other.path, out.path)) continue;
      return Error{out.name + ": " + out.path + " is what " + other.name +
                   " writes as well; give each a file of its own"};
    }
  }
  return {};
}

Result<void> check_new_file(const std::string& path, std::string_view argument) {
  if (is_written_in_place(path)) return {};
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status)) {
    return Error{path + ": exists already; remove it or give another " + std::string(argument)};
  }
  return check_folder(path, path, argument);
}

Result<void> check_output_file(const std::string& path, std::string_view argument) {
  if (is_written_in_place(path)) return {};
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    return Error{path + ": cannot write: is a directory; give a file as " + std::string(argument)};
  }
  // What is behind a link is replaced, and not the link.
  const fs::path behind = fs::exists(status) ? fs::canonical(path, ignored) : fs::path(path);
  return check_folder(path, behind, argument);
}

}  // namespace rrfp
