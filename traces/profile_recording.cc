#include "traces/profile_recording.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

namespace rrfp {

namespace {

using What = ProfileAction::What;
constexpr int kUnknown = ProfileAction::kUnknown;

/// The extent of the kernels of one annotation.
struct Extent {
  std::int64_t start_ns = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t kernels = 0;
  std::int32_t group = kUnknown;

  void add(const ProfileKernel& kernel) {
    group = kernel.group;
    start_ns = std::min(start_ns, kernel.start_ns);
    end_ns = std::max(end_ns, kernel.end_ns);
    ++kernels;
  }
};

class RankRecorder {
 public:
  RankRecorder(RawProfile profile, std::optional<int> microbatches, DroppedRecords* dropped)
      : profile_(std::move(profile)), microbatches_(microbatches), dropped_(*dropped) {}

  RankRecording record() {
    copy_facts();
    drop_impossible();
    choose_annotations();
    find_owners();
    assign_launches();
    assign_launches_of_other_threads();
    add_kernels();
    make_operations();
    number_microbatches();
    number_iterations();
    return std::move(out_);
  }

 private:
  const ProfileAction& action_of(const ProfileAnnotation& annotation) const {
    return profile_.actions[static_cast<std::size_t>(annotation.action)];
  }
  const ProfileAction& action_of(std::int32_t annotation) const {
    return action_of(profile_.annotations[static_cast<std::size_t>(annotation)]);
  }
  void drop(const std::string& reason, std::int64_t place) {
    dropped_.add(reason, profile_.place(place));
  }

  void copy_facts() {
    out_.file = profile_.file;
    out_.place_word = profile_.place_word;
    out_.rank = profile_.rank;
    out_.rank_from = profile_.rank_from;
    out_.world_size = profile_.world_size;
    out_.bytes = profile_.bytes;
    out_.events = profile_.events;
    out_.cut = profile_.cut;
    out_.kernels = static_cast<std::int64_t>(profile_.kernels.size());
    dropped_.add(profile_.dropped);
  }

  void drop_impossible() {
    const std::int64_t longest_ns = profile_.longest_ns;
    if (longest_ns == 0) return;
    std::erase_if(profile_.kernels, [&](const ProfileKernel& kernel) {
      const bool impossible = kernel.end_ns - kernel.start_ns > longest_ns;
      if (impossible) drop("a kernel that is longer than its whole file", kernel.place);
      return impossible;
    });
    std::erase_if(profile_.annotations, [&](const ProfileAnnotation& annotation) {
      const bool impossible = annotation.end_ns - annotation.start_ns > longest_ns;
      if (impossible) drop("an annotation that is longer than its whole file", annotation.place);
      return impossible;
    });
  }

  /// Those of the CPU, in order and once each; those of the GPU only where
  /// there is no task on the CPU.
  void choose_annotations() {
    std::vector<ProfileAnnotation>& all = profile_.annotations;
    const auto has_tasks = [&](bool on_device) {
      return std::any_of(all.begin(), all.end(), [&](const ProfileAnnotation& each) {
        return each.on_device == on_device && action_of(each).what == What::kTask;
      });
    };
    const bool use_device = !has_tasks(false) && has_tasks(true);
    std::erase_if(all, [&](const ProfileAnnotation& each) { return each.on_device != use_device; });
    std::stable_sort(all.begin(), all.end(),
                     [](const ProfileAnnotation& a, const ProfileAnnotation& b) {
                       return std::tuple(a.thread, a.start_ns, -a.end_ns) <
                              std::tuple(b.thread, b.start_ns, -b.end_ns);
                     });
    std::vector<ProfileAnnotation> once;
    for (const ProfileAnnotation& each : all) {
      if (!once.empty() && same(once.back(), each)) {
        drop("an annotation that stands twice in its file", each.place);
      } else {
        once.push_back(each);
      }
    }
    all = std::move(once);
    for (const ProfileAnnotation& each : all) {
      if (action_of(each).what == What::kStep) steps_.push_back(each);
    }
    std::stable_sort(steps_.begin(), steps_.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    out_.has_steps = !steps_.empty();
  }

  bool same(const ProfileAnnotation& a, const ProfileAnnotation& b) const {
    const ProfileAction& left = action_of(a);
    const ProfileAction& right = action_of(b);
    return a.thread == b.thread && a.start_ns == b.start_ns && a.end_ns == b.end_ns &&
           left.what == right.what && left.kind == right.kind && left.stage == right.stage &&
           left.microbatch == right.microbatch && left.iteration == right.iteration &&
           left.peer_rank == right.peer_rank && left.text == right.text;
  }

  /// Of those that lie in others: whose kernels theirs are. An annotation
  /// that is its own owner becomes an operation.
  void find_owners() {
    const std::vector<ProfileAnnotation>& all = profile_.annotations;
    owners_.resize(all.size());
    std::vector<std::int32_t> open;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto self = static_cast<std::int32_t>(i);
      close(&open, all[i].thread, all[i].start_ns);
      owners_[i] = self;
      const ProfileAction& inner = action_of(self);
      for (const std::int32_t at : open) {
        if (!lies_in(all[i], all[static_cast<std::size_t>(at)])) continue;
        const ProfileAction& outer = action_of(at);
        if (outer.names_message() && inner.names_message() && outer.what == inner.what) {
          owners_[i] = owners_[static_cast<std::size_t>(at)];
        } else if (inner.what == What::kSpan && inner.text.starts_with("nccl:") &&
                   (outer.names_message() || outer.what == What::kTask)) {
          owners_[i] = owners_[static_cast<std::size_t>(at)];
        }
      }
      if (inner.what != What::kStep) open.push_back(self);
    }
  }

  static bool lies_in(const ProfileAnnotation& inner, const ProfileAnnotation& outer) {
    // Older files round both ends to a microsecond.
    constexpr std::int64_t kGrainNs = 1000;
    return inner.start_ns < outer.end_ns && inner.end_ns <= outer.end_ns + kGrainNs;
  }

  /// Takes out those that ended before `time_ns`, or lie on other threads.
  void close(std::vector<std::int32_t>* open, std::int32_t thread, std::int64_t time_ns) const {
    std::erase_if(*open, [&](std::int32_t at) {
      const ProfileAnnotation& each = profile_.annotations[static_cast<std::size_t>(at)];
      return each.thread != thread || each.end_ns < time_ns;
    });
  }

  void assign_launches() {
    std::sort(profile_.launches.begin(), profile_.launches.end(),
              [](const ProfileLaunch& a, const ProfileLaunch& b) {
                return std::tie(a.thread, a.time_ns, a.correlation) <
                       std::tie(b.thread, b.time_ns, b.correlation);
              });
    const std::vector<ProfileAnnotation>& all = profile_.annotations;
    std::vector<std::int32_t> open;
    std::size_t next = 0;
    for (ProfileLaunch& launch : profile_.launches) {
      for (; next < all.size() && std::tie(all[next].thread, all[next].start_ns) <=
                                      std::tie(launch.thread, launch.time_ns);
           ++next) {
        const bool holds = action_of(all[next]).what != What::kStep && !all[next].on_device;
        if (holds) open.push_back(static_cast<std::int32_t>(next));
      }
      close(&open, launch.thread, launch.time_ns);
      if (!open.empty()) launch.annotation = owners_[static_cast<std::size_t>(open.back())];
    }
  }

  void assign_launches_of_other_threads() {
    std::vector<std::int32_t> tasks;
    for (std::size_t i = 0; i < profile_.annotations.size(); ++i) {
      const ProfileAnnotation& each = profile_.annotations[i];
      const ProfileAction& action = action_of(each);
      if (action.what == What::kTask && action.kind != Kind::kForward && !each.on_device) {
        tasks.push_back(static_cast<std::int32_t>(i));
      }
    }
    const auto annotation = [&](std::int32_t at) -> const ProfileAnnotation& {
      return profile_.annotations[static_cast<std::size_t>(at)];
    };
    std::stable_sort(tasks.begin(), tasks.end(), [&](std::int32_t a, std::int32_t b) {
      return annotation(a).start_ns < annotation(b).start_ns;
    });
    std::sort(profile_.launches.begin(), profile_.launches.end(),
              [](const ProfileLaunch& a, const ProfileLaunch& b) {
                return std::tie(a.time_ns, a.correlation) < std::tie(b.time_ns, b.correlation);
              });
    std::vector<std::int32_t> open;
    std::size_t next = 0;
    for (ProfileLaunch& launch : profile_.launches) {
      if (launch.annotation != kUnknown) continue;
      while (next < tasks.size() && annotation(tasks[next]).start_ns <= launch.time_ns) {
        open.push_back(tasks[next++]);
      }
      std::erase_if(open, [&](std::int32_t at) { return annotation(at).end_ns < launch.time_ns; });
      if (open.size() == 1) launch.annotation = open.front();
      if (open.size() > 1) launch.annotation = kAmbiguous;
    }
  }

  void add_kernels() {
    // Several calls of one correlation (runtime and driver): the first that an
    // annotation holds.
    std::sort(profile_.launches.begin(), profile_.launches.end(),
              [](const ProfileLaunch& a, const ProfileLaunch& b) {
                return std::tuple(a.correlation, a.annotation < 0, a.time_ns) <
                       std::tuple(b.correlation, b.annotation < 0, b.time_ns);
              });
    extents_.resize(profile_.annotations.size());
    for (const ProfileKernel& kernel : profile_.kernels) {
      const auto launch = std::lower_bound(
          profile_.launches.begin(), profile_.launches.end(), kernel.correlation,
          [](const ProfileLaunch& each, std::uint64_t value) { return each.correlation < value; });
      if (launch == profile_.launches.end() || launch->correlation != kernel.correlation) {
        ++out_.kernels_without_launch;
      } else if (launch->annotation == kAmbiguous) {
        drop("a kernel launched while two backwards are open on other threads", kernel.place);
      } else if (launch->annotation == kUnknown) {
        ++out_.kernels_outside;
      } else {
        add_kernel(kernel, *launch);
      }
    }
    profile_.kernels.clear();
    profile_.launches.clear();
  }

  void add_kernel(const ProfileKernel& kernel, const ProfileLaunch& launch) {
    const auto at = static_cast<std::size_t>(launch.annotation);
    const ProfileAction& action = action_of(launch.annotation);
    ++out_.kernels_used;
    if (profile_.annotations[at].thread != launch.thread) ++out_.kernels_of_other_threads;
    const bool counts = action.what == What::kTask        ? !kernel.communicates
                        : action.names_message()          ? kernel.communicates
                        : action.text.starts_with("nccl") ? kernel.communicates
                                                          : true;
    if (!counts) return;
    extents_[at].add(kernel);
    if (action.what == What::kTask) out_.on_device = true;
  }

  void make_operations() {
    const std::vector<ProfileAnnotation>& all = profile_.annotations;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (owners_[i] != static_cast<std::int32_t>(i)) continue;
      if (action_of(all[i]).what != What::kStep) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return all[a].start_ns < all[b].start_ns;
    });
    for (const std::size_t i : order) {
      const ProfileAnnotation& each = all[i];
      const ProfileAction& action = action_of(each);
      ProfileOperation operation{action, kUnknown, each.start_ns, each.end_ns, each.place, {}};
      if (out_.has_steps && !find_step(each.start_ns, &operation.iteration)) {
        drop("an annotation outside every step", each.place);
        continue;
      }
      if (out_.on_device) {
        if (extents_[i].kernels == 0) {
          drop(std::string(word(action)) + " without a kernel of its own", each.place);
          continue;
        }
        operation.start_ns = extents_[i].start_ns;
        operation.end_ns = extents_[i].end_ns;
        if (extents_[i].group != kUnknown) {
          operation.group = profile_.groups[static_cast<std::size_t>(extents_[i].group)];
        }
      } else if (action.names_message()) {
        drop(
            "a send or receive of a profile without kernels: its times are not those of the "
            "transfer",
            each.place);
        continue;
      }
      out_.operations.push_back(std::move(operation));
    }
  }

  static const char* word(const ProfileAction& action) {
    return action.what == What::kTask ? "a task" : action.names_message() ? "a message" : "a span";
  }

  bool find_step(std::int64_t time_ns, int* iteration) const {
    const auto after = std::upper_bound(
        steps_.begin(), steps_.end(), time_ns,
        [](std::int64_t time, const ProfileAnnotation& step) { return time < step.start_ns; });
    if (after == steps_.begin() || std::prev(after)->end_ns < time_ns) return false;
    *iteration = action_of(*std::prev(after)).iteration;
    return true;
  }

  /// Tasks of one kind and stage, in order, within an iteration where there
  /// are steps.
  void number_microbatches() {
    std::map<std::tuple<int, Kind, int>, int> counts;
    for (ProfileOperation& operation : out_.operations) {
      if (operation.action.what != What::kTask || operation.action.microbatch != kUnknown) continue;
      int& count = counts[{operation.iteration, operation.action.kind, operation.action.stage}];
      operation.action.microbatch = count++;
      out_.counted_microbatches = true;
      if (out_.has_steps || !microbatches_) continue;
      operation.iteration = operation.action.microbatch / *microbatches_;
      operation.action.microbatch %= *microbatches_;
    }
  }

  /// Where no step is recorded.
  void number_iterations() {
    if (out_.has_steps) return;
    std::map<std::tuple<What, Kind, int, int>, int> counts;
    int last = 0;
    for (ProfileOperation& operation : out_.operations) {
      const ProfileAction& action = operation.action;
      if (action.what == What::kSpan) {
        operation.iteration = last;
      } else if (operation.iteration == kUnknown &&
                 !(action.names_message() && action.stage == kUnknown)) {
        operation.iteration = counts[{action.what, action.kind, action.stage, action.microbatch}]++;
      }
      if (action.what == What::kTask) last = std::max(last, operation.iteration);
    }
  }

  static constexpr std::int32_t kAmbiguous = -2;

  RawProfile profile_;
  std::optional<int> microbatches_;
  DroppedRecords& dropped_;
  RankRecording out_;
  std::vector<ProfileAnnotation> steps_;
  std::vector<std::int32_t> owners_;  ///< by annotation
  std::vector<Extent> extents_;       ///< by annotation
};

}  // namespace

RankRecording record_rank(RawProfile profile, std::optional<int> microbatches,
                          DroppedRecords* dropped) {
  return RankRecorder(std::move(profile), microbatches, dropped).record();
}

}  // namespace rrfp
