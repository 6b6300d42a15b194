#include "traces/profile_import.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "traces/kineto_reader.h"

namespace rrfp {

namespace {

/// The file itself, or the files of the folder in alphabetical order.
Result<std::vector<std::string>> files_of(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator at(path, failed), end; !failed && at != end;
       at.increment(failed)) {
    std::error_code unknown;
    const bool hidden = at->path().filename().string().starts_with('.');
    if (!hidden && at->is_regular_file(unknown)) files.push_back(at->path().string());
  }
  if (failed) return Error{path + ": cannot be listed: " + failed.message()};
  if (files.empty()) return Error{path + ": holds no file"};
  std::sort(files.begin(), files.end());
  return files;
}

/// Whether the text begins as JSON does.
bool looks_like_json(const std::string& path) {
  Result<ByteSource> source = ByteSource::open(path);
  if (!source.ok()) return true;  // the reader says what is wrong
  char text[64] = {};
  const Result<std::size_t> count = source->read(text, sizeof text);
  if (!count.ok()) return true;
  std::string_view head(text, *count);
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (head[first] == '{' || head[first] == '[');
}

}  // namespace

Result<ProfileImport> import_kineto(const std::string& path, const ProfileImportOptions& options,
                                    const ReadProgress& progress) {
  Result<ProfileNames> names = ProfileNames::create(options.patterns, options.b_means);
  if (!names.ok()) return names.error();
  Result<std::vector<std::string>> files = files_of(path);
  if (!files.ok()) return files.error();
  ProfileReport report;
  if (files->size() > 1) {
    std::erase_if(*files, [&](const std::string& file) {
      const bool other = !looks_like_json(file);
      if (other) report.notes.push_back(file + " is no JSON: passed over");
      return other;
    });
    if (files->empty()) return Error{path + ": holds no JSON file"};
  }
  const std::optional<int> alone = files->size() == 1 ? std::optional<int>(0) : std::nullopt;
  std::vector<RankRecording> recordings;
  for (const std::string& file : *files) {
    Result<RawProfile> profile = read_kineto_file(file, &*names, alone, progress);
    if (!profile.ok()) return profile.error();
    recordings.push_back(record_rank(*std::move(profile), options.microbatches, &report.dropped));
  }
  return assemble_profiles(std::move(recordings), options.layout, std::move(report));
}

}  // namespace rrfp
