#include "executor/gradient_sync.h"

#include <algorithm>

#include "executor/letter_check.h"

namespace rrfp {

GradientSync::GradientSync(const LoopContext& context) : context_(context) {
  const Program& program = context.world->program();
  for (const int stage : program.stages_of(context.place.rank)) {
    Stage entry;
    entry.stage = stage;
    for (const Slot slot : {Slot::kBackward, Slot::kWeight}) {
      for (int m = 0; m < program.microbatches(); ++m) {
        const TaskId task = program.task_id(stage, slot, m);
        if (program.exists(task) && program.accumulates(task)) ++entry.accumulating;
      }
    }
    if (entry.accumulating == 0) continue;
    if (context.place.replica == 0) {
      entry.gathered.resize(static_cast<std::size_t>(context.grid.replicas));
    }
    stages_.push_back(std::move(entry));
  }
  open_ = static_cast<int>(stages_.size());
  if (open_ == 0) optimizer_due_ns_ = context.end->optimizer_ns;
}

GradientSync::Stage* GradientSync::find(int stage) {
  const auto found = std::find_if(stages_.begin(), stages_.end(),
                                  [stage](const Stage& entry) { return entry.stage == stage; });
  return found == stages_.end() ? nullptr : &*found;
}

Result<void> GradientSync::on_finished(TaskId task, std::int64_t now_ns) {
  const Program& program = context_.world->program();
  if (!program.accumulates(task)) return {};
  Stage* stage = find(program.stage_of(task));
  RRFP_CHECK(stage != nullptr && stage->accumulating > 0);
  if (--stage->accumulating > 0) return {};
  stage->start_ns = now_ns;
  Result<Payload> gradient = context_.device->gradient(stage->stage);
  if (!gradient.ok()) return gradient.error();
  if (context_.place.replica == 0) return gather(*stage, 0, std::move(*gradient), now_ns);
  Letter letter;
  letter.tag = Tag::kGradient;
  letter.iteration = context_.iteration;
  letter.stage = stage->stage;
  letter.lane = context_.place.replica;
  letter.to = context_.grid.endpoint({0, context_.place.rank, context_.place.lane});
  context_.mail->send(letter, std::move(*gradient));
  return {};
}

Result<void> GradientSync::gather(Stage& stage, int replica, Payload payload, std::int64_t now_ns) {
  stage.gathered[static_cast<std::size_t>(replica)] = std::move(payload);
  if (!std::all_of(stage.gathered.begin(), stage.gathered.end(),
                   [](const std::optional<Payload>& entry) { return entry.has_value(); })) {
    return {};
  }
  std::vector<Payload> replicas;
  for (std::optional<Payload>& entry : stage.gathered) replicas.push_back(std::move(*entry));
  Result<Payload> sum = context_.device->reduce(stage.stage, replicas);
  if (!sum.ok()) return sum.error();
  const std::vector<std::int64_t>& sync_ns = context_.end->gradient_sync_ns;
  stage.due_ns = now_ns + (sync_ns.empty() ? 0 : sync_ns[static_cast<std::size_t>(stage.stage)]);
  for (int to = 1; to < context_.grid.replicas; ++to) {
    Letter letter;
    letter.tag = Tag::kReduced;
    letter.iteration = context_.iteration;
    letter.stage = stage.stage;
    letter.due_ns = stage.due_ns;
    letter.to = context_.grid.endpoint({to, context_.place.rank, context_.place.lane});
    context_.mail->send(letter, sum->copy());
  }
  stage.reduced = std::move(*sum);
  return {};
}

Result<void> GradientSync::on_letter(const Letter& letter, Payload payload, std::int64_t now_ns) {
  const auto wrong = [&](const std::string& why) {
    return out_of_turn(letter, context_.grid, context_.world->program(), why);
  };
  Stage* stage = find(letter.stage);
  if (stage == nullptr) return wrong("which has no gradient");
  if (letter.tag == Tag::kGradient) {
    if (stage->gathered[static_cast<std::size_t>(letter.lane)]) return wrong(kSentBefore);
    return gather(*stage, letter.lane, std::move(payload), now_ns);
  }
  if (stage->reduced || stage->done) return wrong(kSentBefore);
  if (stage->accumulating > 0) return wrong("to which this worker has yet to add its own");
  stage->reduced = std::move(payload);
  stage->due_ns = now_ns;
  return {};
}

Result<bool> GradientSync::step(std::int64_t now_ns) {
  bool moved = false;
  for (Stage& stage : stages_) {
    if (!stage.reduced || now_ns < stage.due_ns) continue;
    Result<void> taken = context_.device->take_gradient(stage.stage, std::move(*stage.reduced));
    if (!taken.ok()) return taken.error();
    stage.reduced.reset();
    stage.due_ns = kNever;
    stage.done = true;
    records_.push_back({stage.stage, 0, stage.start_ns, now_ns});
    moved = true;
    if (--open_ == 0) optimizer_due_ns_ = now_ns + context_.end->optimizer_ns;
  }
  if (open_ == 0 && !ended_ && now_ns >= optimizer_due_ns_) {
    Result<void> stepped = context_.device->finish_iteration();
    if (!stepped.ok()) return stepped.error();
    ended_ = moved = true;
    end_ns_ = now_ns;
  }
  return moved;
}

std::int64_t GradientSync::next_ns() const {
  if (ended_) return kNever;
  std::int64_t next_ns = optimizer_due_ns_;
  for (const Stage& stage : stages_) next_ns = std::min(next_ns, stage.due_ns);
  return next_ns;
}

std::string GradientSync::waiting() const {
  for (const Stage& stage : stages_) {
    if (stage.done || stage.accumulating > 0) continue;
    const std::string of = "the gradient of stage " + std::to_string(stage.stage);
    if (context_.place.replica > 0) return of + ", summed by replica 0";
    for (std::size_t replica = 0; replica < stage.gathered.size(); ++replica) {
      if (!stage.gathered[replica]) return of + " from replica " + std::to_string(replica);
    }
  }
  return {};
}

}  // namespace rrfp
