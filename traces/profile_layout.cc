#include "traces/profile_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "traces/profile_width.h"

namespace rrfp {

namespace {

using What = ProfileAction::What;
constexpr int kUnknown = ProfileAction::kUnknown;

std::string listed(const std::set<int>& numbers) {
  constexpr std::size_t kMost = 8;
  std::string text;
  std::size_t count = 0;
  for (const int number : numbers) {
    if (count++ == kMost) return text + ", ...";
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  }
  return text;
}

class LayoutBuilder {
 public:
  LayoutBuilder(const std::vector<RankRecording>& recordings, const ProfileLayoutOptions& options)
      : recordings_(recordings),
        options_(options),
        replicas_(options.replicas.value_or(1)),
        lanes_(options.lanes.value_or(1)) {}

  Result<ProfileLayout> build() {
    if (const Result<void> all = find_all_ranks(); !all.ok()) return all.error();
    if (const Result<void> shared = share_ranks(); !shared.ok()) return shared.error();
    if (const Result<void> placed = place_ranks(); !placed.ok()) return placed.error();
    if (const Result<void> found = find_stages(); !found.ok()) return found.error();
    if (const Result<void> filled = fill_stages(); !filled.ok()) return filled.error();
    if (const Result<void> found = find_kinds(); !found.ok()) return found.error();
    Result<Program> program = Program::create(std::move(spec_));
    if (!program.ok()) return Error{recordings_[0].file + ": " + program.error().message};
    ProfileLayout layout(*std::move(program));
    layout.places = std::move(places_);
    layout.notes = std::move(notes_);
    layout.replicas = replicas_;
    layout.lanes = lanes_;
    return layout;
  }

 private:
  template <typename Visit>
  void each_task(Visit visit) const {
    for (std::size_t i = 0; i < recordings_.size(); ++i) {
      for (const ProfileOperation& operation : recordings_[i].operations) {
        if (operation.action.what == What::kTask) visit(i, operation.action);
      }
    }
  }

  Result<void> find_all_ranks() const {
    if (!options_.needs_all_ranks) return {};
    const std::string missing = ranks_without_file(recordings_);
    if (missing.empty()) return {};
    return Error{missing +
                 ": bring them as well, or give --allow-missing for the part of the job that the "
                 "others saw"};
  }

  /// Where annotations name stages, two ranks of one stage are told by that.
  Result<void> share_ranks() {
    bool named = false;
    bool any = false;
    each_task([&](std::size_t, const ProfileAction& action) {
      any = true;
      named = named || action.stage != kUnknown;
    });
    if (named || !any) return {};
    Result<StageSharing> shared = share_stages(recordings_, options_.replicas, options_.lanes);
    if (!shared.ok()) return Error{recordings_[0].file + ", ...: " + shared.error().message};
    replicas_ = shared->replicas;
    lanes_ = shared->lanes;
    if (!shared->note.empty()) notes_.push_back(std::move(shared->note));
    return {};
  }

  Result<void> place_ranks() {
    const int width = replicas_ * lanes_;
    std::map<int, std::string> seen;
    for (const RankRecording& recording : recordings_) {
      const auto [at, added] = seen.emplace(recording.rank, recording.file);
      if (!added) {
        return Error{recording.file + ": is of rank " + std::to_string(recording.rank) + " (" +
                     recording.rank_from + "), as " + at->second + " is"};
      }
      if (recording.world_size && *recording.world_size % width != 0) {
        return Error{recording.file + ": distributedInfo counts " +
                     std::to_string(*recording.world_size) +
                     " ranks, which --dp x --tp = " + std::to_string(width) + " does not divide"};
      }
      places_.push_back(
          {recording.rank / width, recording.rank / lanes_ % replicas_, recording.rank % lanes_});
      ranks_.insert(places_.back().rank);
    }
    return {};
  }

  Result<void> find_stages() {
    bool named = false;
    bool any = false;
    each_task([&](std::size_t, const ProfileAction& action) {
      any = true;
      named = named || action.stage != kUnknown;
    });
    if (!any) {
      const auto cut = std::find_if(recordings_.begin(), recordings_.end(),
                                    [](const RankRecording& each) { return !each.cut.empty(); });
      if (cut != recordings_.end()) {
        return Error{cut->file + ": was cut: it " + cut->cut +
                     ", before any annotation of a task; copy or record it again, or name yours "
                     "with --forward, --backward, --input-gradient and --weight-gradient"};
      }
      return Error{recordings_[0].file + (recordings_.size() > 1 ? " and others" : "") +
                   ": no annotation of a task was found (PP:<action>, forward_step, ...); name "
                   "yours with --forward, --backward, --input-gradient and --weight-gradient"};
    }
    if (!named) {
      for (const int rank : ranks_) rank_of_stage_[rank] = rank;
      notes_.push_back("no annotation names a stage: each pipeline rank is taken for one stage");
      return {};
    }
    std::vector<std::set<int>> stages(recordings_.size());
    each_task([&](std::size_t i, const ProfileAction& action) {
      if (action.stage != kUnknown) stages[i].insert(action.stage);
    });
    return share_stages_named(stages);
  }

  /// A stage has one rank, and the files of a rank are alike. A file that was cut may lack some of
  /// its stages, but not have others.
  Result<void> share_stages_named(const std::vector<std::set<int>>& stages) {
    std::map<int, std::size_t> first_of_stage;
    std::map<int, std::size_t> first_of_rank;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      if (stages[i].empty()) continue;
      for (const int stage : stages[i]) {
        rank_of_stage_.emplace(stage, places_[i].rank);
        const std::size_t first = first_of_stage.emplace(stage, i).first->second;
        if (places_[first].rank == places_[i].rank) continue;
        return Error{recordings_[i].file + ": runs stage " + std::to_string(stage) + ", as " +
                     recordings_[first].file + " does" + given_width() + ranks_of_each(stages)};
      }
      const std::size_t first = first_of_rank.emplace(places_[i].rank, i).first->second;
      const auto shared = [&](int stage) { return stages[first].contains(stage); };
      if (std::any_of(stages[i].begin(), stages[i].end(), shared)) continue;
      return Error{recordings_[i].file + ": runs stage " + listed(stages[i]) + ", and " +
                   recordings_[first].file + " stage " + listed(stages[first]) +
                   ", so they are no replicas or lanes of one rank" + given_width() +
                   ranks_of_each(stages)};
    }
    return {};
  }

  std::string given_width() const {
    if (!options_.replicas && !options_.lanes) return "; neither --dp nor --tp was given";
    return "; --dp x --tp is " + std::to_string(replicas_ * lanes_);
  }

  /// What would fit, where all stages are shared by as many files.
  static std::string ranks_of_each(const std::vector<std::set<int>>& stages) {
    std::map<int, int> ranks;
    for (const std::set<int>& of_file : stages) {
      for (const int stage : of_file) ++ranks[stage];
    }
    const int width = ranks.begin()->second;
    for (const auto& [stage, count] : ranks) {
      if (count != width) return ": give --dp for replicas, --tp for lanes of one rank";
    }
    return ", and " + std::to_string(width) + (width == 1 ? " rank runs" : " ranks run") +
           " each stage: " + advice_for_width(width);
  }

  /// Stages that no file has, and ranks without a file.
  Result<void> fill_stages() {
    const int stages = rank_of_stage_.rbegin()->first + 1;
    if (stages > static_cast<int>(kMostStages)) {
      return Error{recordings_[0].file + ": stage " + std::to_string(stages - 1) +
                   " is too large; at most " + std::to_string(kMostStages - 1)};
    }
    spec_.ranks = *ranks_.rbegin() + 1;
    std::set<int> missing;
    for (int stage = 0; stage < stages; ++stage) {
      if (!rank_of_stage_.contains(stage)) missing.insert(stage);
    }
    if (missing.empty()) {
      number_ranks_densely();
    } else if (Result<void> guessed = place_missing(stages, missing); !guessed.ok()) {
      return guessed;
    }
    for (int stage = 0; stage < stages; ++stage) {
      StageSpec one;
      one.rank = rank_of_stage_[stage];
      if (stage > 0) one.predecessors = {stage - 1};
      spec_.stages.push_back(std::move(one));
    }
    return {};
  }

  /// Files of some ranks only, as of one lane, whose stages are complete.
  void number_ranks_densely() {
    std::map<int, int> dense;
    for (const int rank : ranks_) dense.emplace(rank, static_cast<int>(dense.size()));
    if (static_cast<int>(dense.size()) == spec_.ranks) return;
    notes_.push_back("the files of ranks " + listed(ranks_) +
                     " hold all stages: they are numbered from 0 as pipeline ranks");
    for (ProfilePlace& place : places_) place.rank = dense[place.rank];
    for (auto& [stage, rank] : rank_of_stage_) rank = dense[rank];
    spec_.ranks = static_cast<int>(dense.size());
  }

  /// Where all that is known lies as stage modulo ranks, so does the rest,
  /// unless a file of that rank is there and says nothing of it.
  Result<void> place_missing(int stages, const std::set<int>& missing) {
    const bool looped = std::all_of(
        rank_of_stage_.begin(), rank_of_stage_.end(),
        [&](const auto& placed) { return placed.first % spec_.ranks == placed.second; });
    const bool elsewhere = std::none_of(missing.begin(), missing.end(), [&](int stage) {
      return ranks_.contains(stage % spec_.ranks);
    });
    if (!looped || !elsewhere || stages < spec_.ranks) {
      return Error{"no file holds a task of stage " + listed(missing) + "; files of ranks " +
                   listed(ranks_) + " were read (" + recordings_[0].file + ", ...): bring all"};
    }
    for (const int stage : missing) rank_of_stage_[stage] = stage % spec_.ranks;
    notes_.push_back("no file holds a task of stage " + listed(missing) +
                     ": nothing of it is in the trace");
    return {};
  }

  Result<void> find_kinds() {
    std::set<int> trained;
    std::set<int> weighted;
    std::set<Kind> kinds;
    each_task([&](std::size_t i, const ProfileAction& action) {
      spec_.microbatches = std::max(spec_.microbatches, action.microbatch + 1);
      kinds.insert(action.kind);
      const bool split =
          action.kind == Kind::kInputGradient || action.kind == Kind::kWeightGradient;
      spec_.split_backward = spec_.split_backward || split;
      const int stage = action.stage != kUnknown ? action.stage : places_[i].rank;
      if (action.kind != Kind::kForward) trained.insert(stage);
      if (action.kind == Kind::kWeightGradient || action.kind == Kind::kBackward) {
        weighted.insert(stage);
      }
    });
    if (kinds.contains(Kind::kBackward) && kinds.contains(Kind::kWeightGradient) &&
        !kinds.contains(Kind::kInputGradient)) {
      return Error{recordings_[0].file +
                   ": there are B and W but no I: where B is the gradient of the input alone, say "
                   "--b-means input"};
    }
    // Only whole stages at the beginning can be without a backward.
    std::set<int> frozen;
    for (int stage = 0; stage < static_cast<int>(spec_.stages.size()); ++stage) {
      if (trained.contains(stage)) break;
      spec_.stages[static_cast<std::size_t>(stage)].backward = Backward::kNone;
      frozen.insert(stage);
    }
    if (!frozen.empty()) {
      notes_.push_back("stage " + listed(frozen) + " has no backward: taken for frozen");
    }
    std::set<int> input_only;
    for (const int stage : trained) {
      if (weighted.contains(stage)) continue;
      spec_.stages[static_cast<std::size_t>(stage)].backward = Backward::kInput;
      input_only.insert(stage);
    }
    if (!input_only.empty()) {
      notes_.push_back("stage " + listed(input_only) +
                       " has no weight gradient: its weights are taken for frozen");
    }
    return {};
  }

  const std::vector<RankRecording>& recordings_;
  const ProfileLayoutOptions& options_;
  int replicas_;
  int lanes_;
  std::vector<ProfilePlace> places_;
  std::set<int> ranks_;  ///< of the pipeline, that have a file
  std::map<int, int> rank_of_stage_;
  ProgramSpec spec_;
  std::vector<std::string> notes_;
};

}  // namespace

std::string ranks_without_file(const std::vector<RankRecording>& recordings) {
  const RankRecording* counts = nullptr;
  std::set<int> ranks;
  for (const RankRecording& recording : recordings) {
    ranks.insert(recording.rank);
    const bool more =
        recording.world_size && (counts == nullptr || *recording.world_size > *counts->world_size);
    if (more) counts = &recording;
  }
  if (counts == nullptr) return "";
  std::set<int> missing;
  for (int rank = 0; rank < *counts->world_size; ++rank) {
    if (!ranks.contains(rank)) missing.insert(rank);
  }
  if (missing.empty()) return "";
  return "files of " + std::to_string(ranks.size()) + " of " + std::to_string(*counts->world_size) +
         " ranks; " +
         (missing.size() == 1 ? "rank " + listed(missing) + " has none"
                              : "ranks " + listed(missing) + " have none") +
         " (world_size of " + counts->file + ")";
}

Result<ProfileLayout> lay_out_profiles(const std::vector<RankRecording>& recordings,
                                       const ProfileLayoutOptions& options) {
  return LayoutBuilder(recordings, options).build();
}

int stage_of(const ProfileOperation& operation, const ProfileLayout& layout,
             std::size_t recording) {
  if (operation.action.stage != kUnknown) return operation.action.stage;
  const auto stages = layout.program.stages_of(layout.places[recording].rank);
  return stages.size() == 1 ? stages[0] : kUnknown;
}

}  // namespace rrfp
