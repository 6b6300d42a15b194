#include "traces/kineto_reader.h"

#include <filesystem>
#include <map>
#include <utility>

#include "traces/kineto_event.h"
#include "traces/loose_json.h"

namespace rrfp {

namespace {

using What = ProfileAction::What;

class KinetoReader {
 public:
  KinetoReader(const std::string& path, LooseJsonFile file, ProfileNames* names)
      : file_(std::move(file)), names_(*names) {
    profile_.file = path;
    profile_.place_word = "byte";
  }

  Result<RawProfile> read(std::optional<int> otherwise) {
    while (true) {
      const Result<LooseJsonFile::Item> item = file_.next();
      if (!item.ok()) return item.error();
      if (*item == LooseJsonFile::Item::kEnd) break;
      if (*item == LooseJsonFile::Item::kEvent) {
        add_event();
      } else if (const Result<void> read = add_member(); !read.ok()) {
        return read.error();
      }
    }
    if (!file_.has_events()) {
      return Error{profile_.file +
                   ": holds no array \"traceEvents\": it is no trace of the "
                   "PyTorch profiler" +
                   (file_.cut().empty() ? "" : ", or it " + file_.cut())};
    }
    if (const Result<void> known = set_rank(otherwise); !known.ok()) return known.error();
    finish();
    return std::move(profile_);
  }

 private:
  Result<void> add_member() {
    if (file_.key() == "baseTimeNanoseconds") {
      const std::optional<std::int64_t> base = whole_i64(file_.value());
      if (!base || *base < 0 || *base > kMostProfileNs) {
        return Error{profile_.file + ": " + file_.place() + ": baseTimeNanoseconds is " +
                     file_.value().substr(0, 64) +
                     "; expected a whole number of ns from 0 to 2^61"};
      }
      base_ns_ = *base;
    } else if (file_.key() == "distributedInfo") {
      std::vector<LooseMember> members;
      split_object(file_.value(), &members);
      for (const LooseMember& member : members) {
        if (member.nested) continue;
        if (member.key == "rank") info_rank_ = whole_i64(member.value);
        if (member.key == "world_size") world_size_ = whole_i64(member.value);
      }
    }
    return {};
  }

  void add_event() {
    ++profile_.events;
    const KinetoEvent event = read_kineto_event(file_.members());
    if (event.sort == KinetoSort::kOther) return;
    if (event.problem != nullptr) return drop(event.problem);
    const std::int64_t end_ns = event.start_ns + event.length_ns;
    switch (event.sort) {
      case KinetoSort::kKernel:
        extent_.add(event.start_ns, event.start_ns);
        if (!event.correlation) return drop("a kernel without correlation");
        profile_.kernels.push_back({*event.correlation, event.start_ns, end_ns, here(),
                                    is_communication_kernel(event.name), group_of(event)});
        return;
      case KinetoSort::kLaunch:
        extent_.add(event.start_ns, end_ns);
        if (!event.correlation) return;  // calls that launch nothing
        profile_.launches.push_back(
            {*event.correlation, event.start_ns, thread_of(event), ProfileAction::kUnknown});
        return;
      case KinetoSort::kAnnotation:
      case KinetoSort::kDeviceAnnotation:
        return add_annotation(event, end_ns);
      case KinetoSort::kWhole:
        extent_.add_whole(event.start_ns, end_ns);
        return;
      case KinetoSort::kOther:
        return;
    }
  }

  void add_annotation(const KinetoEvent& event, std::int64_t end_ns) {
    const bool on_device = event.sort == KinetoSort::kDeviceAnnotation;
    const bool escaped = event.name.find('\\') != std::string_view::npos;
    const ProfileAction& action =
        escaped ? names_.classify(unescaped(event.name)) : names_.classify(unquoted(event.name));
    // The length of what is used is checked against the rest of the file.
    extent_.add(event.start_ns, action.what == What::kNone && !on_device ? end_ns : event.start_ns);
    if (action.what == What::kNone) return;
    if (action.what == What::kRefused) return drop(action.text.c_str());
    ProfileAnnotation annotation;
    annotation.action = static_cast<std::int32_t>(profile_.actions.size());
    annotation.thread = thread_of(event);
    annotation.start_ns = event.start_ns;
    annotation.end_ns = end_ns;
    annotation.place = here();
    annotation.on_device = on_device;
    profile_.actions.push_back(action);
    profile_.annotations.push_back(annotation);
  }

  /// Threads have numbers, words or nothing for a name; any text will do.
  std::int32_t thread_of(const KinetoEvent& event) {
    if (event.process == last_process_ && event.thread == last_thread_) return last_id_;
    const auto id = static_cast<std::int32_t>(threads_.size());
    last_process_ = event.process;
    last_thread_ = event.thread;
    last_id_ = threads_.emplace(std::pair(last_process_, last_thread_), id).first->second;
    return last_id_;
  }

  std::int32_t group_of(const KinetoEvent& event) {
    if (event.group_ranks.empty()) return ProfileAction::kUnknown;
    std::string text = std::string(event.group_name) + " " + std::string(event.group_ranks);
    const auto id = static_cast<std::int32_t>(profile_.groups.size());
    const auto [at, added] = groups_.emplace(text, id);
    if (added) profile_.groups.push_back(std::move(text));
    return at->second;
  }

  std::int64_t here() const { return file_.item(); }
  void drop(const char* reason) { profile_.dropped.add(reason, profile_.place(here())); }

  Result<void> set_rank(std::optional<int> otherwise) {
    constexpr std::int64_t kMostRank = 1 << 20;
    const auto fits = [](std::optional<std::int64_t> value) {
      return value && *value >= 0 && *value < kMostRank;
    };
    if (fits(world_size_)) profile_.world_size = static_cast<int>(*world_size_);
    const std::string name = std::filesystem::path(profile_.file).filename().string();
    if (fits(info_rank_)) {
      profile_.rank = static_cast<int>(*info_rank_);
      profile_.rank_from = "distributedInfo";
    } else if (const std::optional<int> named = rank_in_name(name)) {
      profile_.rank = *named;
      profile_.rank_from = "the file's name";
    } else if (otherwise) {
      profile_.rank = *otherwise;
      profile_.rank_from = "being the only file";
    } else {
      return Error{profile_.file +
                   ": distributedInfo holds no rank and the name no \"rank<N>\": "
                   "rename it, as to rank0.json"};
    }
    return {};
  }

  void finish() {
    profile_.bytes = file_.bytes();
    profile_.cut = file_.cut();
    profile_.longest_ns = extent_.longest_ns();
    if (file_.other_elements() > 0) {
      profile_.dropped.add("an element of traceEvents that is no object", profile_.file,
                           file_.other_elements());
    }
    if (base_ns_ == 0) return;
    for (ProfileAnnotation& annotation : profile_.annotations) {
      annotation.start_ns += base_ns_;
      annotation.end_ns += base_ns_;
    }
    for (ProfileLaunch& launch : profile_.launches) launch.time_ns += base_ns_;
    for (ProfileKernel& kernel : profile_.kernels) {
      kernel.start_ns += base_ns_;
      kernel.end_ns += base_ns_;
    }
  }

  LooseJsonFile file_;
  ProfileNames& names_;
  RawProfile profile_;
  std::int64_t base_ns_ = 0;
  std::optional<std::int64_t> info_rank_;
  std::optional<std::int64_t> world_size_;
  ProfileExtent extent_;
  std::map<std::pair<std::string, std::string>, std::int32_t> threads_;
  std::map<std::string, std::int32_t> groups_;
  // The thread of the event before: most often the same again.
  std::string last_process_;
  std::string last_thread_;
  std::int32_t last_id_ = -1;
};

}  // namespace

Result<RawProfile> read_kineto_file(const std::string& path, ProfileNames* names,
                                    std::optional<int> otherwise, ReadProgress progress) {
  Result<LooseJsonFile> file = LooseJsonFile::open(path, std::move(progress));
  if (!file.ok()) return file.error();
  return KinetoReader(path, *std::move(file), names).read(otherwise);
}

}  // namespace rrfp
