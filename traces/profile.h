// What a profiler saw of one rank, whatever its file format: annotations,
// launches and kernels. Importers fill it; profile_recording.h makes tasks and
// messages of it, by the same rules for all formats.
//
// Invariants
//  1. Times are int64 ns of one clock per profile, a sum of an epoch from 0 to
//     kMostProfileNs, a time of at most that either way, and a length of at
//     most half of it: differences of any two fit.
//  2. Only annotations that say something about the pipeline are kept.
//
// Thread safety: as a container.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "scheduler_core/task.h"
#include "traces/native_trace.h"

namespace rrfp {

inline constexpr std::int64_t kMostProfileNs = std::int64_t{1} << 61;
inline constexpr std::int64_t kMostLengthNs = kMostProfileNs / 2;

/// What the name of an annotation says.
struct ProfileAction {
  enum class What : std::uint8_t {
    kNone,     ///< nothing about the pipeline
    kStep,     ///< an iteration of training
    kTask,     ///< F, B, I or W
    kSend,     ///< of an activation or gradient
    kReceive,  ///< the same
    kSpan,     ///< a collective, the optimizer
    kRefused,  ///< meant to be one of these, and cannot be used
  };
  static constexpr int kUnknown = -1;

  What what = What::kNone;
  Kind kind = Kind::kForward;  ///< of a task; of a message with a stage, kForward or kBackward
  int stage = kUnknown;
  int microbatch = kUnknown;
  int iteration = kUnknown;  ///< of a step
  int own_rank = kUnknown;   ///< of a message, as its text says: in its process group
  int peer_rank = kUnknown;  ///< the same
  std::string text;          ///< of a span: its name; of what is refused: why

  bool names_message() const { return what == What::kSend || what == What::kReceive; }
};

struct ProfileAnnotation {
  std::int32_t action = 0;  ///< index into RawProfile::actions
  std::int32_t thread = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t place = 0;  ///< in the file
  bool on_device = false;  ///< the GPU's twin of an annotation
};

struct ProfileLaunch {
  std::uint64_t correlation = 0;
  std::int64_t time_ns = 0;
  std::int32_t thread = 0;
  std::int32_t annotation = ProfileAction::kUnknown;  ///< that holds it
};

struct ProfileKernel {
  std::uint64_t correlation = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t place = 0;  ///< in the file
  bool communicates = false;
  std::int32_t group = ProfileAction::kUnknown;  ///< index into RawProfile::groups
};

/// How long anything in a profile can be. Lengths on the GPU and of what is
/// used do not count towards it: those are what is checked.
class ProfileExtent {
 public:
  /// Of any event. `end_ns`: of something on the CPU that is not used, else
  /// its start again.
  void add(std::int64_t start_ns, std::int64_t end_ns);
  /// All of the time that the profiler recorded.
  void add_whole(std::int64_t start_ns, std::int64_t end_ns);

  /// 0 where that is not known. Of a few events the last may well be longer
  /// than the rest together, unless the whole is known.
  std::int64_t longest_ns() const;

 private:
  std::int64_t events_ = 0;
  bool has_whole_ = false;
  std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns_ = std::numeric_limits<std::int64_t>::min();
};

struct RawProfile {
  std::string file;
  std::string place_word;  ///< "byte" or "row": what places count
  int rank = 0;
  std::string rank_from;  ///< what said so
  std::optional<int> world_size;
  std::vector<ProfileAction> actions;
  std::vector<std::string> groups;  ///< process groups, by a text that all members share
  std::vector<ProfileAnnotation> annotations;
  // Not vectors: they are the bulk, and growing must not double it.
  std::deque<ProfileLaunch> launches;
  std::deque<ProfileKernel> kernels;
  std::int64_t longest_ns = 0;  ///< nothing can be longer; 0: not known
  std::int64_t bytes = 0;       ///< of text
  std::int64_t events = 0;      ///< of all sorts, dropped ones included
  std::string cut;              ///< where and why the file ends too early; else empty
  DroppedRecords dropped;       ///< events

  std::string place(std::int64_t at) const {
    return file + ": " + place_word + " " + std::to_string(at);
  }
};

}  // namespace rrfp
