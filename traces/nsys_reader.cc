#include "traces/nsys_reader.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "traces/sqlite_file.h"

namespace rrfp {

namespace {

using What = ProfileAction::What;

/// The lower 24 bits of a globalTid are the thread, the rest is the process.
constexpr std::int64_t process_of(std::int64_t global_thread) {
  return global_thread & ~std::int64_t{0xffffff};
}

/// Whether both ends can be.
bool can_be(std::int64_t start_ns, std::int64_t end_ns) {
  return start_ns >= -kMostProfileNs && start_ns <= kMostProfileNs && end_ns >= start_ns &&
         (start_ns >= 0 || end_ns <= kMostProfileNs) && end_ns - start_ns <= kMostLengthNs;
}

struct Process {
  RawProfile profile;
  ProfileExtent extent;
  std::int64_t lowest_device = std::numeric_limits<std::int64_t>::max();
  std::map<std::int64_t, std::int32_t> threads;
};

class NsysReader {
 public:
  NsysReader(std::string path, SqliteFile file, ProfileNames* names)
      : path_(std::move(path)), file_(std::move(file)), names_(*names) {}

  Result<NsysFile> read() {
    for (const auto part :
         {&NsysReader::read_epoch, &NsysReader::read_strings, &NsysReader::read_ranges,
          &NsysReader::read_launches, &NsysReader::read_kernels}) {
      if (const Result<void> done = (this->*part)(); !done.ok()) return done.error();
    }
    return take();
  }

 private:
  /// Calls `row` for each. Tables without rows are not exported; one that has
  /// not all of these columns is passed over and noted.
  template <typename Row>
  Result<void> each(std::string_view table, std::initializer_list<std::string_view> columns,
                    const std::string& condition, Row row) {
    std::string text = "SELECT ";
    for (const std::string_view column : columns) {
      const Result<bool> has = file_.has(table, column);
      if (!has.ok()) return has.error();
      if (!*has) return pass_over(table, column);
      text += std::string(column) + ", ";
    }
    Result<SqliteRows> rows =
        file_.query(text + "rowid FROM " + std::string(table) + " " + condition);
    if (!rows.ok()) return rows.error();
    while (true) {
      const Result<bool> more = rows->next();
      if (!more.ok()) return more.error();
      if (!*more) return {};
      row(*rows);
    }
  }

  Result<void> pass_over(std::string_view table, std::string_view column) {
    const Result<bool> exists = file_.has(table);
    if (!exists.ok()) return exists.error();
    if (*exists) {
      out_.notes.push_back(path_ + ": table " + std::string(table) + " has no column " +
                           std::string(column) + ": nothing of the table is used");
    }
    return {};
  }

  Result<void> read_epoch() {
    return each("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}, "LIMIT 1",
                [&](const SqliteRows& row) {
                  epoch_ns_ = std::clamp<std::int64_t>(row.integer(0), 0, kMostProfileNs);
                });
  }

  Result<void> read_strings() {
    return each("StringIds", {"id", "value"}, "", [&](const SqliteRows& row) {
      const std::string_view text = row.text(1);
      if (is_communication_kernel(text)) communication_.insert(row.integer(0));
      const ProfileAction& action = names_.classify(without_nvtx_suffix(text));
      if (action.what != What::kNone) actions_.emplace(row.integer(0), action);
    });
  }

  Result<void> read_ranges() {
    const Result<bool> by_id = file_.has("NVTX_EVENTS", "textId");
    if (!by_id.ok()) return by_id.error();
    // An export without textId has all texts inline.
    const std::string_view id = *by_id ? "textId" : "eventType";
    return each("NVTX_EVENTS", {"start", "end", "globalTid", "text", id},
                "WHERE eventType IN (59, 60)", [&](const SqliteRows& row) {
                  if (!row.is_null(3)) {
                    add_range(row, names_.classify(without_nvtx_suffix(row.text(3))));
                  } else if (*by_id) {
                    const auto known = actions_.find(row.integer(4));
                    if (known != actions_.end()) add_range(row, known->second);
                  }
                });
  }

  void add_range(const SqliteRows& row, const ProfileAction& action) {
    if (action.what == What::kNone) return;
    Process& process = process_at(process_of(row.integer(2)));
    RawProfile& profile = process.profile;
    ++profile.events;
    ProfileAnnotation range;
    range.place = row.integer(5);
    const auto drop = [&](const std::string& reason) {
      profile.dropped.add(reason, profile.place(range.place));
    };
    if (action.what == What::kRefused) return drop(action.text);
    if (row.is_null(1)) return drop("a range that never ended");
    if (!can_be(row.integer(0), row.integer(1))) return drop("a range whose times cannot be");
    range.start_ns = row.integer(0) + epoch_ns_;
    range.end_ns = row.integer(1) + epoch_ns_;
    process.extent.add(range.start_ns, range.start_ns);
    range.thread = thread_at(&process, row.integer(2));
    range.action = static_cast<std::int32_t>(profile.actions.size());
    profile.actions.push_back(action);
    profile.annotations.push_back(range);
  }

  Result<void> read_launches() {
    return each("CUPTI_ACTIVITY_KIND_RUNTIME", {"start", "end", "globalTid", "correlationId"}, "",
                [&](const SqliteRows& row) {
                  if (row.is_null(2) || row.is_null(3)) return;
                  if (!can_be(row.integer(0), row.integer(1))) return;
                  Process& process = process_at(process_of(row.integer(2)));
                  ++process.profile.events;
                  const std::int64_t start_ns = row.integer(0) + epoch_ns_;
                  process.extent.add(start_ns, row.integer(1) + epoch_ns_);
                  process.profile.launches.push_back({static_cast<std::uint64_t>(row.integer(3)),
                                                      start_ns, thread_at(&process, row.integer(2)),
                                                      ProfileAction::kUnknown});
                });
  }

  /// Any of a kernel's names says whether it is one of NCCL.
  Result<void> read_kernels() {
    constexpr std::string_view kTable = "CUPTI_ACTIVITY_KIND_KERNEL";
    std::string_view name = "shortName";
    for (const std::string_view column : {"shortName", "demangledName", "mangledName"}) {
      const Result<bool> has = file_.has(kTable, column);
      if (!has.ok()) return has.error();
      if (!*has) continue;
      name = column;
      break;
    }
    return each(kTable, {"start", "end", "globalPid", "correlationId", name, "deviceId"}, "",
                [&](const SqliteRows& row) { add_kernel(row); });
  }

  void add_kernel(const SqliteRows& row) {
    Process& process = process_at(row.integer(2));
    RawProfile& profile = process.profile;
    ++profile.events;
    ProfileKernel kernel;
    kernel.place = row.integer(6);
    if (row.is_null(3) || !can_be(row.integer(0), row.integer(1))) {
      profile.dropped.add(
          row.is_null(3) ? "a kernel without correlation" : "a kernel whose times cannot be",
          profile.place(kernel.place));
      return;
    }
    kernel.correlation = static_cast<std::uint64_t>(row.integer(3));
    kernel.start_ns = row.integer(0) + epoch_ns_;
    kernel.end_ns = row.integer(1) + epoch_ns_;
    kernel.communicates = communication_.contains(row.integer(4));
    process.extent.add(kernel.start_ns, kernel.start_ns);
    process.lowest_device = std::min(process.lowest_device, row.integer(5));
    profile.kernels.push_back(kernel);
  }

  Process& process_at(std::int64_t id) {
    const auto [at, added] = processes_.try_emplace(id);
    if (added) {
      at->second.profile.file = path_;
      at->second.profile.place_word = "row";
    }
    return at->second;
  }
  static std::int32_t thread_at(Process* process, std::int64_t id) {
    const auto next = static_cast<std::int32_t>(process->threads.size());
    return process->threads.emplace(id, next).first->second;
  }

  NsysFile take() {
    std::error_code unknown;
    const std::uintmax_t size = std::filesystem::file_size(path_, unknown);
    std::vector<std::pair<std::int64_t, RawProfile>> sorted;
    for (auto& [id, process] : processes_) {
      RawProfile& profile = process.profile;
      if (profile.kernels.empty() && profile.annotations.empty()) {
        out_.dropped.add(profile.dropped);
        continue;
      }
      profile.longest_ns = process.extent.longest_ns();
      profile.bytes = unknown ? 0 : static_cast<std::int64_t>(size);
      sorted.emplace_back(process.lowest_device, std::move(profile));
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [device, profile] : sorted) out_.profiles.push_back(std::move(profile));
    return std::move(out_);
  }

  std::string path_;
  SqliteFile file_;
  ProfileNames& names_;
  std::int64_t epoch_ns_ = 0;
  std::set<std::int64_t> communication_;           ///< StringIds of NCCL kernels
  std::map<std::int64_t, ProfileAction> actions_;  ///< StringIds that say something
  std::map<std::int64_t, Process> processes_;      ///< by globalPid
  NsysFile out_;
};

}  // namespace

Result<NsysFile> read_nsys_file(const std::string& path, ProfileNames* names) {
  Result<SqliteFile> file = SqliteFile::open(path);
  if (!file.ok()) return file.error();
  return NsysReader(path, *std::move(file), names).read();
}

}  // namespace rrfp
