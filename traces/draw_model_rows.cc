#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "traces/draw_model.h"

namespace rrfp {

namespace {

std::size_t kind_index(Kind kind) { return static_cast<std::size_t>(kind); }

}  // namespace

Kind kind_of(Slot slot, bool split_backward) {
  if (slot == Slot::kForward) return Kind::kForward;
  if (slot == Slot::kWeight) return Kind::kWeightGradient;
  return split_backward ? Kind::kInputGradient : Kind::kBackward;
}

bool means(const std::vector<Kind>& kinds, Slot slot, bool split_backward) {
  if (lists_or_all(kinds, kind_of(slot, split_backward))) return true;
  return slot != Slot::kForward && lists_or_all(kinds, Kind::kBackward);
}

CompiledDraw::CompiledDraw(const DrawModel& model, std::size_t position, const Scenario& scenario,
                           const Program& program, std::shared_ptr<const TimeAxis> axis)
    : model_(model),
      position_(position),
      seed_(scenario.seed),
      lanes_(scenario.tensor_parallel.lanes),
      replicas_(scenario.data_parallel.replicas),
      microbatches_(program.microbatches()),
      axis_(std::move(axis)) {
  if (!model_.has_kinds()) samplers_.emplace_back(model_.distribution);
  switch (model_.target) {
    case DrawTarget::kCompute:
      add_task_rows(program);
      break;
    case DrawTarget::kInput:
      rows_.push_back({.microbatches = microbatches_});
      break;
    default:
      add_message_rows(program);
  }
  long_run_ = model_.probability;
  if (const auto* steps = std::get_if<RepeatedSteps>(&model_.timing)) long_run_ /= steps->every;
  if (const auto* episodes = std::get_if<Episodes>(&model_.timing)) {
    compile_timeline(*episodes, program);
    long_run_ *= timeline_->share();
  }
}

int CompiledDraw::scope_row(int stage, Slot slot, int rank) const {
  switch (model_.scope) {
    case DrawScope::kOperation:
      return model_.has_kinds() ? stage : stage * kSlots + static_cast<int>(slot);
    case DrawScope::kStage:
      return stage;
    case DrawScope::kRank:
    case DrawScope::kGpu:
      return rank / model_.group;
    default:
      return 0;
  }
}

void CompiledDraw::add_task_rows(const Program& program) {
  const Selection& selection = model_.selection;
  const bool split = program.split_backward();
  std::array<int, 4> sampler_of_kind{};
  for (std::size_t kind = 0; kind < model_.by_kind.size(); ++kind) {
    sampler_of_kind[kind] = -1;
    if (!model_.by_kind[kind]) continue;
    sampler_of_kind[kind] = static_cast<int>(samplers_.size());
    samplers_.emplace_back(*model_.by_kind[kind]);
  }
  for (int stage = 0; stage < program.stages(); ++stage) {
    const int rank = program.rank_of(stage);
    if (!lists_or_all(selection.stages, stage) || !lists_or_all(selection.ranks, rank)) continue;
    for (const Slot slot : {Slot::kForward, Slot::kBackward, Slot::kWeight}) {
      if (!program.exists(program.task_id(stage, slot, 0))) continue;
      if (!means(selection.kinds, slot, split)) continue;
      const bool first = slot == Slot::kForward && program.stages_of(rank).front() == stage;
      if (selection.first_of_iteration && !first) continue;
      int sampler = 0;
      if (model_.has_kinds()) {
        sampler = sampler_of_kind[kind_index(kind_of(slot, split))];
        if (sampler < 0 && slot != Slot::kForward) {
          sampler = sampler_of_kind[kind_index(Kind::kBackward)];
        }
        if (sampler < 0) continue;
      }
      rows_.push_back({stage * kSlots + static_cast<int>(slot), scope_row(stage, slot, rank), stage,
                       slot, selection.first_of_iteration ? 1 : microbatches_, sampler, rank});
    }
  }
}

bool CompiledDraw::selects(const Edge& edge) const {
  const Selection& selection = model_.selection;
  if (!edge.crosses()) return false;
  if (!lists_or_all(selection.links, Link{edge.from_rank, edge.to_rank})) return false;
  return lists_or_all(selection.ranks, edge.from_rank) ||
         lists_or_all(selection.ranks, edge.to_rank);
}

void CompiledDraw::add_message_rows(const Program& program) {
  std::map<Link, int> pairs;
  for (const Edge& edge : program.edges()) {
    if (!edge.crosses()) continue;
    pairs.emplace(
        Link{std::min(edge.from_rank, edge.to_rank), std::max(edge.from_rank, edge.to_rank)},
        static_cast<int>(pairs.size()));
  }
  for (EdgeId id = 0; id < static_cast<EdgeId>(program.edges().size()); ++id) {
    const Edge& edge = program.edge(id);
    if (!selects(edge)) continue;
    if (!means(model_.selection.kinds, edge.slot(), program.split_backward())) continue;
    int shared = 0;
    if (model_.scope == DrawScope::kMessage) shared = id;
    if (model_.scope == DrawScope::kLink) shared = edge.from_rank * kMostRanks + edge.to_rank;
    const auto pair = pairs.find(
        {std::min(edge.from_rank, edge.to_rank), std::max(edge.from_rank, edge.to_rank)});
    const auto* episodes = std::get_if<Episodes>(&model_.timing);
    const bool by_pair = episodes != nullptr && episodes->element == EpisodeElement::kLinkPair;
    rows_.push_back({id, shared, edge.from, edge.slot(), microbatches_, 0,
                     by_pair ? pair->second : edge.from_rank});
  }
}

void CompiledDraw::compile_timeline(const Episodes& episodes, const Program& program) {
  int elements = 1;
  if (episodes.element != EpisodeElement::kAll) {
    hit_elements_ = program.ranks();
    for (const Row& row : rows_) hit_elements_ = std::max(hit_elements_, row.hit_element + 1);
    hit_index_.assign(static_cast<std::size_t>(hit_elements_ * replicas_), -1);
    std::vector<bool> used(static_cast<std::size_t>(hit_elements_));
    for (const Row& row : rows_) used[static_cast<std::size_t>(row.hit_element)] = true;
    elements = 0;
    const bool everywhere = episodes.element == EpisodeElement::kRank;
    for (int replica = 0; replica < replicas_; ++replica) {
      if (!lists_or_all(model_.selection.replicas, replica)) continue;
      // A rank is hit in all replicas at once.
      if (everywhere) elements = 0;
      for (int one = 0; one < hit_elements_; ++one) {
        if (!used[static_cast<std::size_t>(one)]) continue;
        hit_index_[static_cast<std::size_t>(replica * hit_elements_ + one)] = elements++;
      }
    }
  }
  timeline_.emplace(episodes, elements, seed_, purpose_of(position_, 0, 0));
}

}  // namespace rrfp
