#include "traces/profile_width.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>

namespace rrfp {

namespace {

constexpr int kUnknown = ProfileAction::kUnknown;

/// A rank of the job and what one of its messages calls it.
struct NamedRank {
  int rank = 0;
  int own = 0;
  int peer = 0;
};

bool names_ranks(const ProfileAction& action) {
  return action.names_message() && action.own_rank != kUnknown && action.peer_rank != kUnknown;
}

/// What most messages of a rank call it; others are of other groups.
int usual_name(const RankRecording& recording) {
  std::map<int, int> count;
  for (const ProfileOperation& operation : recording.operations) {
    if (names_ranks(operation.action)) ++count[operation.action.own_rank];
  }
  const auto most = std::max_element(
      count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == count.end() ? kUnknown : most->first;
}

std::vector<NamedRank> named_ranks(const std::vector<RankRecording>& recordings) {
  std::vector<NamedRank> named;
  for (const RankRecording& recording : recordings) {
    const int usual = usual_name(recording);
    for (const ProfileOperation& operation : recording.operations) {
      const ProfileAction& action = operation.action;
      if (!names_ranks(action) || action.own_rank != usual) continue;
      named.push_back({recording.rank, action.own_rank, action.peer_rank});
    }
  }
  return named;
}

std::string files(std::size_t count) { return "the " + std::to_string(count) + " files"; }

Error not_divided(const ProfileWidth& width, const std::string& option, int given) {
  return Error{std::to_string(width.ranks) + " ranks run each stage (" + width.why + "), which " +
               option + " " + std::to_string(given) +
               " does not divide: give --dp and --tp, whose "
               "product it is"};
}

}  // namespace

std::string advice_for_width(int ranks) {
  const std::string number = std::to_string(ranks);
  if (ranks == 1) return "give neither --dp nor --tp";
  return "give --dp " + number + " where they are replicas, --tp " + number +
         " where they are one tensor-parallel group, or both, whose product it is";
}

std::optional<ProfileWidth> width_of_messages(const std::vector<RankRecording>& recordings) {
  const std::vector<NamedRank> named = named_ranks(recordings);
  if (named.empty() || recordings.size() == 1) return std::nullopt;
  const bool global = std::all_of(named.begin(), named.end(),
                                  [](const NamedRank& one) { return one.own == one.rank; });
  if (global) {
    const auto distance = [](const NamedRank& one) { return std::abs(one.peer - one.own); };
    const NamedRank& nearest = *std::min_element(
        named.begin(), named.end(),
        [&](const NamedRank& a, const NamedRank& b) { return distance(a) < distance(b); });
    if (distance(nearest) == 0) return std::nullopt;
    return ProfileWidth{distance(nearest), "rank " + std::to_string(nearest.rank) +
                                               " has messages with rank " +
                                               std::to_string(nearest.peer)};
  }
  // rank / width == own, so width is above rank / (own + 1) and at most rank / own.
  int least = 1;
  int most = std::numeric_limits<int>::max();
  const NamedRank* telling = nullptr;
  for (const NamedRank& one : named) {
    least = std::max(least, one.rank / (one.own + 1) + 1);
    if (one.own == 0) continue;
    most = std::min(most, one.rank / one.own);
    if (telling == nullptr || one.own > telling->own) telling = &one;
  }
  if (least != most) return std::nullopt;
  return ProfileWidth{least, "rank " + std::to_string(telling->rank) + " has messages as rank " +
                                 std::to_string(telling->own) + " of its pipeline"};
}

Result<StageSharing> share_stages(const std::vector<RankRecording>& recordings,
                                  std::optional<int> replicas, std::optional<int> lanes) {
  if (replicas && lanes) return StageSharing{*replicas, *lanes, ""};
  const std::optional<ProfileWidth> width = width_of_messages(recordings);
  if (!width) {
    const std::size_t rest = recordings.size() / static_cast<std::size_t>(lanes.value_or(1));
    if (replicas || rest <= 1) return StageSharing{replicas.value_or(1), lanes.value_or(1), ""};
    return Error{"no annotation names a stage and no message its ranks, so " +
                 files(recordings.size()) +
                 " may be stages or replicas: give --dp, how many replicas there are (1: each rank "
                 "is a stage of its own), and --tp, where ranks form tensor-parallel groups"};
  }
  if (width->ranks == 1 && replicas.value_or(1) == 1 && lanes.value_or(1) == 1) {
    return StageSharing{1, 1, ""};
  }
  if (!replicas && !lanes) {
    return Error{std::to_string(width->ranks) + " ranks run each stage (" + width->why +
                 "): " + advice_for_width(width->ranks)};
  }
  const int given = replicas ? *replicas : *lanes;
  if (width->ranks % given != 0) return not_divided(*width, replicas ? "--dp" : "--tp", given);
  const int other = width->ranks / given;
  StageSharing sharing{replicas.value_or(other), lanes.value_or(other), ""};
  if (other > 1) {
    sharing.note = std::to_string(other) + (replicas ? " lanes" : " replicas") + ", for " +
                   std::to_string(width->ranks) + " ranks run each stage (" + width->why + ")";
  }
  return sharing;
}

}  // namespace rrfp
