#include "traces/profile_import.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "traces/kineto_reader.h"
#include "traces/nsys_reader.h"

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

/// What was dropped or passed over is likely the reason.
Error nothing_usable(const std::string& file, const NsysFile& nsys) {
  Error error{file +
              ": holds neither kernels (CUPTI_ACTIVITY_KIND_KERNEL) nor NVTX ranges of "
              "a pipeline that can be used; record with --trace=cuda,nvtx"};
  for (const DroppedRecords::Reason& reason : nsys.dropped.reasons) {
    error.message += "; dropped " + std::to_string(reason.count) + ": " + reason.reason +
                     " (first: " + reason.first + ")";
  }
  for (const std::string& note : nsys.notes) error.message += "; " + note;
  return error;
}

/// Sets the ranks of the profiles of all files of Nsight Systems.
Result<void> number_ranks(std::vector<std::vector<RawProfile>>* files, ProfileReport* report) {
  const std::size_t each = files->front().size();
  int next = 0;
  for (std::vector<RawProfile>& profiles : *files) {
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      RawProfile& profile = profiles[i];
      if (profiles.size() != each) {
        return Error{profile.file + ": holds " + std::to_string(profiles.size()) + " processes, " +
                     files->front()[0].file + " " + std::to_string(each) +
                     "; expected as many in each file"};
      }
      const std::string name = std::filesystem::path(profile.file).filename().string();
      const std::optional<int> named = rank_in_name(name);
      if (each == 1 && files->size() > 1 && !named) {
        return Error{profile.file +
                     ": the name says no \"rank<N>\": rename it, as to rank0.sqlite"};
      }
      profile.rank = each == 1 && named ? *named : next;
      profile.rank_from = each == 1 && named ? "the file's name" : "the order of GPUs";
      ++next;
    }
  }
  if (each > 1 && files->size() > 1) {
    report->notes.push_back("ranks count the processes of a file by GPU, and files by their names");
  }
  return {};
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

Result<ProfileImport> import_nsys(const std::string& path, const ProfileImportOptions& options,
                                  const ReadProgress& progress) {
  Result<ProfileNames> names = ProfileNames::create(options.patterns, options.b_means);
  if (!names.ok()) return names.error();
  const Result<std::vector<std::string>> files = files_of(path);
  if (!files.ok()) return files.error();
  ProfileReport report;
  std::vector<std::vector<RawProfile>> read;
  for (const std::string& file : *files) {
    Result<NsysFile> nsys = read_nsys_file(file, &*names);
    if (!nsys.ok()) return nsys.error();
    if (nsys->profiles.empty()) return nothing_usable(file, *nsys);
    report.notes.insert(report.notes.end(), nsys->notes.begin(), nsys->notes.end());
    report.dropped.add(nsys->dropped);
    if (progress) progress(nsys->profiles.front().bytes);
    read.push_back(std::move(nsys->profiles));
  }
  if (const Result<void> known = number_ranks(&read, &report); !known.ok()) return known.error();
  std::vector<RankRecording> recordings;
  for (std::vector<RawProfile>& profiles : read) {
    for (RawProfile& profile : profiles) {
      recordings.push_back(record_rank(std::move(profile), options.microbatches, &report.dropped));
    }
  }
  return assemble_profiles(std::move(recordings), options.layout, std::move(report));
}

}  // namespace rrfp
