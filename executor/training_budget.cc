#include "executor/training_budget.h"

#include <algorithm>

namespace rrfp {

namespace {

__extension__ using Wide = __int128;

// The largest ratio of two sizes of the same thing.
class Growth {
 public:
  void add(std::int64_t from, std::int64_t to) {
    if (from == 0) {
      from_nothing_ += to;  // as many as there are fit any budget
    } else if (Wide{to} * from_ > Wide{to_} * from) {
      from_ = from;
      to_ = to;
    }
  }

  // Rounded down: where all are of one size no more of them fit than before.
  Wide of(std::int64_t bytes) const { return Wide{bytes} * to_ / from_ + from_nothing_; }

 private:
  std::int64_t from_ = 1;
  std::int64_t to_ = 0;
  Wide from_nothing_ = 0;
};

std::int64_t at(std::span<const std::int64_t> bytes, std::size_t index) {
  return bytes.empty() ? 0 : bytes[index];
}

bool has_weight_tasks(const Program& program, int stage) {
  for (int m = 0; m < program.microbatches(); ++m) {
    if (program.exists(program.task_id(stage, Slot::kWeight, m))) return true;
  }
  return false;
}

// Whether all but the rank's tokens of whatever fits a budget of `from` lies in the room beyond
// them, however it is filled. By shares it does not where small microbatches fill a token, nor
// where stashes alone do while another stage takes more.
bool tokens_stand_apart(const Program& program, const MemoryModel& from, int rank) {
  if (rule_for(program) == AdmissionRule::kOldestFirst) return true;
  const auto& stages = program.stages_of(rank);
  for (const int stage : stages) {
    if (stages.size() > 1 && has_weight_tasks(program, stage)) return false;
    const std::int64_t token = token_bytes(program, from.activation_bytes, stage);
    for (int m = 0; m < program.microbatches(); ++m) {
      const auto index = static_cast<std::size_t>(stage * program.microbatches() + m);
      if (at(from.activation_bytes, index) != token) return false;
    }
  }
  return true;
}

}  // namespace

std::int64_t training_budget(const Program& program, const MemoryModel& from, const MemoryModel& to,
                             int rank, std::int64_t budget_bytes) {
  const std::span<const std::int64_t> stashes =
      from.weight_stash_bytes.empty() ? from.activation_bytes : from.weight_stash_bytes;
  Growth growth;
  for (const int stage : program.stages_of(rank)) {
    for (int m = 0; m < program.microbatches(); ++m) {
      const auto index = static_cast<std::size_t>(stage * program.microbatches() + m);
      growth.add(at(from.activation_bytes, index), to.activation_bytes[index]);
      if (!program.exists(program.task_id(stage, Slot::kWeight, m))) continue;
      growth.add(at(stashes, index), to.weight_stash_bytes[index]);
    }
  }
  Wide budget = growth.of(budget_bytes);
  if (tokens_stand_apart(program, from, rank)) {
    const std::int64_t room = budget_bytes - least_budget(program, from.activation_bytes, rank);
    budget = least_budget(program, to.activation_bytes, rank) + growth.of(room);
  }
  return static_cast<std::int64_t>(std::min(budget, Wide{1} << 62));
}

}  // namespace rrfp
