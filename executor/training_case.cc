#include "executor/training_case.h"

#include <algorithm>

#include "executor/training_budget.h"

namespace rrfp {

namespace {

std::size_t by_stage(const Program& program, int stage, int microbatch) {
  return static_cast<std::size_t>(stage * program.microbatches() + microbatch);
}

// Multiplications of a forward pass; `attention` those without weights, which
// the backward has twice and the weight gradient not at all.
struct Work {
  std::int64_t weights = 0;
  std::int64_t attention = 0;
};

Work work_of(const ModelSpec& spec, const StageCut& cut, std::span<const int> lengths) {
  const std::int64_t rows = rows_of(cut.roots, lengths);
  const std::int64_t width = spec.width;
  Work work;
  work.weights = cut.blocks * rows * width * (4 * width + 2 * spec.mlp_width) / spec.lanes;
  work.attention = cut.blocks * 2 * rows * rows * width / spec.lanes;
  if (cut.last) work.weights += lengths[0] * width * kTokens;
  return work;
}

std::int64_t time_of(std::int64_t multiplications) {
  return 1 + static_cast<std::int64_t>(TrainingCases::kMultiplyNs *
                                       static_cast<double>(multiplications));
}

}  // namespace

Result<TrainingCases> TrainingCases::create(const ModelSpec& spec, const Program& program,
                                            TrainingFootprint footprint) {
  const Result<std::vector<StageCut>> cuts = cut_model(spec, program);
  if (!cuts.ok()) return cuts.error();
  TrainingCases cases(spec, std::move(footprint));
  for (const StageCut& cut : *cuts) {
    if (cut.root >= 0) ++cases.roots_;
    cases.stages_.emplace_back(spec, cut, HeldLanes{});
  }
  return cases;
}

Case TrainingCases::fill(Case base, const std::vector<std::vector<int>>& lengths,
                         bool paced) const {
  RRFP_CHECK(static_cast<int>(lengths.size()) == base.program.microbatches());
  fill_memory(base, lengths);
  fill_messages(base, lengths);
  if (!paced) fill_durations(base, lengths);
  return base;
}

StashBytes TrainingCases::stash_bytes(const Stage& stage, std::span<const int> lengths) const {
  if (footprint_.stash) return footprint_.stash(spec_, stage.cut(), lengths);
  return {stage.forward_bytes(lengths), stage.weight_bytes(lengths)};
}

void TrainingCases::fill_memory(Case& made, const std::vector<std::vector<int>>& lengths) const {
  const Program& program = made.program;
  const Memory base = std::move(made.memory);
  made.memory.activation_bytes.assign(
      static_cast<std::size_t>(program.stages() * program.microbatches()), 0);
  made.memory.weight_stash_bytes = made.memory.activation_bytes;
  made.memory.budget_bytes = base.budget_bytes;
  for (const Stage& stage : stages_) {
    for (int m = 0; m < program.microbatches(); ++m) {
      const std::vector<int>& of = lengths[static_cast<std::size_t>(m)];
      const std::size_t at = by_stage(program, stage.cut().stage, m);
      const StashBytes bytes = stash_bytes(stage, of);
      made.memory.weight_stash_bytes[at] = bytes.weight;
      // Taken at F: what F leaves and, where that is more, what I turns it into.
      made.memory.activation_bytes[at] = std::max(bytes.forward, bytes.weight);
    }
  }
  const MemoryModel from{base.activation_bytes, base.weight_stash_bytes};
  const MemoryModel to{made.memory.activation_bytes, made.memory.weight_stash_bytes};
  for (std::size_t rank = 0; rank < base.budget_bytes.size(); ++rank) {
    std::optional<std::int64_t>& budget = made.memory.budget_bytes[rank];
    if (budget) budget = training_budget(program, from, to, static_cast<int>(rank), *budget);
  }
}

void TrainingCases::fill_messages(Case& made, const std::vector<std::vector<int>>& lengths) const {
  const Program& program = made.program;
  made.network.message_bytes.assign(static_cast<std::size_t>(program.task_ids()), 0);
  for (const Stage& stage : stages_) {
    const int number = stage.cut().stage;
    for (int m = 0; m < program.microbatches(); ++m) {
      const std::vector<int>& of = lengths[static_cast<std::size_t>(m)];
      // A gradient's size differs by predecessor; the table has the largest.
      std::int64_t gradient_rows = 0;
      for (const std::vector<int>& brought : stage.cut().brought) {
        gradient_rows = std::max<std::int64_t>(gradient_rows, rows_of(brought, of));
      }
      const auto forward = static_cast<std::size_t>(program.task_id(number, Slot::kForward, m));
      const auto backward = static_cast<std::size_t>(program.task_id(number, Slot::kBackward, m));
      const std::int64_t row_bytes = spec_.width * footprint_.number_bytes;
      made.network.message_bytes[forward] = rows_of(stage.cut().roots, of) * row_bytes;
      made.network.message_bytes[backward] = gradient_rows * row_bytes;
    }
  }
}

void TrainingCases::fill_durations(Case& made, const std::vector<std::vector<int>>& lengths) const {
  const Program& program = made.program;
  made.duration_ns.assign(static_cast<std::size_t>(program.task_ids()), 0);
  made.expected_ns.clear();
  for (const Stage& stage : stages_) {
    const int number = stage.cut().stage;
    for (int m = 0; m < program.microbatches(); ++m) {
      const Work work = work_of(spec_, stage.cut(), lengths[static_cast<std::size_t>(m)]);
      const auto set = [&](Slot slot, std::int64_t multiplications) {
        const TaskId task = program.task_id(number, slot, m);
        if (!program.exists(task)) return;
        made.duration_ns[static_cast<std::size_t>(task)] = time_of(multiplications);
      };
      const bool with_weights =
          !program.split_backward() && program.backward_of(number) == Backward::kFull;
      set(Slot::kForward, work.weights + work.attention);
      set(Slot::kBackward, (with_weights ? 2 : 1) * work.weights + 2 * work.attention);
      set(Slot::kWeight, work.weights);
    }
  }
}

}  // namespace rrfp
