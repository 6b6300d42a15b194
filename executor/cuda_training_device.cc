#include "executor/cuda_training_device.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "executor/training_report.h"

namespace rrfp {

CudaTrainingDevice::CudaTrainingDevice(std::shared_ptr<CudaDevicePartitions> partitions,
                                       CudaPartition& partition, const Place& place,
                                       const CudaSettings& settings,
                                       std::shared_ptr<const CpuTraining> training,
                                       LaneGatherMaker make_gather)
    : CudaQueueDevice(std::move(partitions), partition, place, settings),
      training_(std::move(training)),
      make_gather_(std::move(make_gather)) {}

// --- What lasts: weights and memory.

Result<void> CudaTrainingDevice::make_stages() {
  Result<std::unique_ptr<CudaCompute>> compute =
      CudaCompute::create(partition().compute(), settings().tf32);
  if (!compute.ok()) return compute.error();
  compute_ = std::move(*compute);
  const Program& program = world_->program();
  Result<std::vector<StageCut>> cuts = cut_model(spec(), program);
  if (!cuts.ok()) return cuts.error();
  cuts_ = std::move(*cuts);
  stages_.resize(cuts_.size());
  int most_rows = 0;
  for (const int number : program.stages_of(place().rank)) {
    const StageCut& cut = cuts_[static_cast<std::size_t>(number)];
    Result<std::unique_ptr<CudaStage>> made =
        CudaStage::create(spec(), cut, place().lane, *compute_);
    if (!made.ok()) return made.error();
    stages_[static_cast<std::size_t>(number)] = std::move(*made);
    most_rows = std::max(most_rows, static_cast<int>(cut.roots.size()) * spec().longest);
  }
  CudaCarver measure;
  static_cast<void>(CudaScratch::lay_out(spec(), most_rows, measure));
  Result<CudaMemory> scratch = CudaMemory::create(measure.bytes(), "the passes of a stage");
  if (!scratch.ok()) return scratch.error();
  scratch_ = std::move(*scratch);
  if (training_->grid.lanes == 1) return {};
  const std::size_t most = TensorShape{most_rows, spec().width}.size();
  Result<std::unique_ptr<CudaLaneGather>> gather = make_gather_(most);
  if (!gather.ok()) return gather.error();
  Result<CudaLaneSum> lanes = CudaLaneSum::create(std::move(*gather), training_->grid.lanes, most);
  if (!lanes.ok()) return lanes.error();
  lanes_ = std::move(*lanes);
  return {};
}

std::optional<std::int64_t> CudaTrainingDevice::budget_bytes() const {
  const Memory& memory = world_->input().memory;
  const auto rank = static_cast<std::size_t>(place().rank);
  if (rank >= memory.budget_bytes.size()) return std::nullopt;
  return memory.budget_bytes[rank];
}

Result<void> CudaTrainingDevice::begin_stashes() {
  std::vector<std::span<const int>> lengths_of;
  for (int m = 0; m < microbatches_; ++m) lengths_of.push_back(lengths(m));
  const Result<std::optional<std::size_t>> most = reserve_bytes();
  if (!most.ok()) return most.error();
  const StashLimits limits{world_->schedule().ranks[static_cast<std::size_t>(place().rank)],
                           world_->input().policy.window, world_->input().queue_depth,
                           budget_bytes(), *most};
  return stashes_.begin(spec(), cuts_, lengths_of, world_->program(), place().rank, limits);
}

Result<void> CudaTrainingDevice::reserve_losses() {
  if (loss_capacity_ >= microbatches_) return {};
  Result<CudaPinnedMemory> losses =
      CudaPinnedMemory::create(static_cast<std::size_t>(microbatches_) * sizeof(double));
  if (!losses.ok()) return losses.error();
  losses_ = std::move(*losses);
  loss_capacity_ = microbatches_;
  return {};
}

Result<void> CudaTrainingDevice::begin(const PreparedCase& world, int iteration) {
  world_ = &world;
  iteration_ = iteration;
  const Program& program = world.program();
  microbatches_ = program.microbatches();
  if (Result<void> ready = start_over(); !ready.ok()) return ready;
  if (stages_.empty()) {
    if (Result<void> made = make_stages(); !made.ok()) return made;
  }
  if (static_cast<int>(stages_.size()) != program.stages()) {
    return Error{"the program of iteration " + std::to_string(iteration) +
                 " has other stages than the one before"};
  }
  scale_ = 1 / static_cast<float>(training_->data.targets_of_step(
                   iteration, training_->grid.replicas, microbatches_));
  std::vector<Sample> samples =
      training_->data.samples(iteration, place().replica, microbatches_, world.arrangement());
  const auto messages = program.edges().size() * static_cast<std::size_t>(microbatches_);
  inbox_.assign(messages, std::nullopt);
  outbox_.assign(messages, std::nullopt);
  trained_.clear();
  Result<void> begun = samples_.upload(std::move(samples), *compute_);
  if (begun.ok()) begun = begin_stashes();
  if (begun.ok()) begun = reserve_losses();
  if (begun.ok()) begun = reserve(program);
  to_try_.clear();
  if (begun.ok() && settings().connected()) choose_tries();
  return begun;
}

// Each shape of a pass once in the run: with another one cuBLAS may use another kernel.
void CudaTrainingDevice::choose_tries() {
  for (const int number : world_->program().stages_of(place().rank)) {
    for (int microbatch = 0; microbatch < microbatches_; ++microbatch) {
      std::vector<int> shape(lengths(microbatch).begin(), lengths(microbatch).end());
      shape.push_back(number);
      if (tried_.insert(std::move(shape)).second) to_try_.emplace_back(number, microbatch);
    }
  }
}

Result<int> CudaTrainingDevice::warm_up() {
  if (to_try_.empty()) return 0;
  const auto [number, microbatch] = to_try_.back();
  to_try_.pop_back();
  if (Result<void> tried = try_pass(stage(number), microbatch); !tried.ok()) return tried.error();
  if (to_try_.empty()) stashes_.forget_high_water();
  return static_cast<int>(to_try_.size());
}

// On whatever the scratch holds; the weights' gradients are 0 before and after.
Result<void> CudaTrainingDevice::try_pass(CudaStage& of, int microbatch) {
  const StageCut& cut = of.cut();
  Result<void> kept = stashes_.keep(spec(), cut, lengths(microbatch), microbatch);
  if (!kept.ok()) return kept;
  CudaLaneSum alone;  // the other lanes may have other shapes to try, or none
  const CudaPass with = pass(cut, microbatch, alone);
  const CudaStage::Stash& stash = stashes_.stash(cut.stage, microbatch);
  of.forward(with, sample(cut, microbatch), stash,
             reinterpret_cast<double*>(losses_.data()) + microbatch);
  of.input_gradient(with, sample(cut, microbatch), scale_, stash);
  of.weight_gradient(*compute_, sample(cut, microbatch), stash);
  of.parameters().clear_gradients(*compute_);
  Result<void> waited = compute_->wait();
  stashes_.give_back(cut.stage, microbatch, Returns::kEverything);
  return waited;
}

// --- What comes in and goes out.

// An activation has the rows of the stage that it comes from, and so has its gradient.
int CudaTrainingDevice::rows_along(EdgeId edge, int microbatch) const {
  const Edge& along = world_->program().edge(edge);
  const int forward_from = along.slot() == Slot::kForward ? along.from : along.to;
  return rows_of(cuts_[static_cast<std::size_t>(forward_from)].roots, lengths(microbatch));
}

// Tensors that stay on the rank have blocks as well.
std::size_t CudaTrainingDevice::block_bytes(EdgeId edge, int microbatch) const {
  return TensorShape{rows_along(edge, microbatch), spec().width}.size() * sizeof(float);
}

Result<void> CudaTrainingDevice::take_input(TaskId task, int producer, Payload payload) {
  if (failure()) return *failure();
  const Program& program = world_->program();
  const int microbatch = program.microbatch_of(task);
  const Kind kind = program.slot_of(task) == Slot::kForward ? Kind::kForward : Kind::kBackward;
  const EdgeId edge = program.find_edge(kind, producer, program.stage_of(task));
  const Result<CudaMessage> taken =
      expect_cuda_message(payload, block_bytes(edge, microbatch), program, task, producer);
  if (!taken.ok()) return taken.error();
  inbox_[message(edge, microbatch)] = *taken;
  return {};
}

CudaMatrix CudaTrainingDevice::input(EdgeId edge, int microbatch, int rows) const {
  const std::optional<CudaMessage>& taken = inbox_[message(edge, microbatch)];
  RRFP_CHECK(taken.has_value());
  return CudaMatrix::dense(static_cast<float*>(taken->block), rows, spec().width);
}

// A block for what goes along `edge`, which whoever gets it gives back.
Result<CudaMatrix> CudaTrainingDevice::hand_on(EdgeId edge, int microbatch, int rows) {
  CudaMatrix made = CudaMatrix::dense(nullptr, rows, spec().width);
  const Result<void*> block = partition().blocks().take(made.bytes());
  if (!block.ok()) return block.error();
  made.data = static_cast<float*>(*block);
  const CudaMessage handed = {*block, made.bytes(), &partition().blocks()};
  (world_->program().edge(edge).local() ? inbox_ : outbox_)[message(edge, microbatch)] = handed;
  return made;
}

Result<Payload> CudaTrainingDevice::output(TaskId task, EdgeId edge) {
  if (failure()) return *failure();
  std::optional<CudaMessage>& sent = outbox_[message(edge, world_->program().microbatch_of(task))];
  if (!sent) return Payload();
  Payload payload = to_payload(*sent);
  sent.reset();
  return payload;
}

// Each root's sequence from the first predecessor that brings it, plus those of the others.
void CudaTrainingDevice::join(const StageCut& cut, int microbatch, const CudaMatrix& stream) {
  const Program& program = world_->program();
  const std::span<const int> predecessors = program.predecessors(cut.stage);
  std::vector<int> joined;
  for (std::size_t i = 0; i < predecessors.size(); ++i) {
    const EdgeId edge = program.find_edge(Kind::kForward, predecessors[i], cut.stage);
    const CudaMatrix part = input(edge, microbatch, rows_of(cut.brought[i], lengths(microbatch)));
    int from = 0;
    for (const int root : cut.brought[i]) {
      const int rows = lengths(microbatch)[static_cast<std::size_t>(root)];
      const auto at = std::find(cut.roots.begin(), cut.roots.end(), root);
      const CudaMatrix to =
          stream.middle_rows(rows_of({cut.roots.begin(), at}, lengths(microbatch)), rows);
      const CudaMatrix brought = part.middle_rows(from, rows);
      from += rows;
      if (std::find(joined.begin(), joined.end(), root) == joined.end()) {
        compute_->copy(brought, to);
        joined.push_back(root);
      } else {
        compute_->run("launch of a sum", [&](cudaStream_t on) {
          return launch_add(to.size(), brought.data, to.data, on);
        });
      }
    }
  }
}

void CudaTrainingDevice::sum_gradients_into(const StageCut& cut, int microbatch,
                                            const CudaMatrix& gradient) {
  const Program& program = world_->program();
  bool first = true;
  for (const int successor : program.successors(cut.stage)) {
    const EdgeId edge = program.find_edge(Kind::kBackward, successor, cut.stage);
    const CudaMatrix part = input(edge, microbatch, gradient.rows);
    if (first) {
      compute_->copy(part, gradient);
    } else {
      compute_->run("launch of a sum", [&](cudaStream_t on) {
        return launch_add(gradient.size(), part.data, gradient.data, on);
      });
    }
    first = false;
  }
}

// The sequences of `roots` out of a stream of stage `of`.
void CudaTrainingDevice::copy_roots(std::span<const int> roots, const StageCut& of, int microbatch,
                                    const CudaMatrix& stream, const CudaMatrix& part) {
  int to = 0;
  for (const int root : roots) {
    const int rows = lengths(microbatch)[static_cast<std::size_t>(root)];
    const auto at = std::find(of.roots.begin(), of.roots.end(), root);
    const int from = rows_of({of.roots.begin(), at}, lengths(microbatch));
    compute_->copy(stream.middle_rows(from, rows), part.middle_rows(to, rows));
    to += rows;
  }
}

// --- Tasks.

std::int64_t CudaTrainingDevice::least_length_ns(TaskId task) const {
  return training_->paced ? world_->duration_ns()[static_cast<std::size_t>(task)] : 0;
}

CudaPass CudaTrainingDevice::pass(const StageCut& cut, int microbatch, CudaLaneSum& lanes) {
  CudaCarver carver(scratch_.data());
  return {*compute_, lanes,
          CudaScratch::lay_out(spec(), rows_of(cut.roots, lengths(microbatch)), carver)};
}

Result<void> CudaTrainingDevice::enqueue(TaskId task) {
  const Program& program = world_->program();
  const int microbatch = program.microbatch_of(task);
  CudaStage& of = stage(program.stage_of(task));
  Result<void> enqueued;
  if (program.slot_of(task) == Slot::kForward) enqueued = enqueue_forward(of, microbatch);
  if (program.slot_of(task) == Slot::kBackward) enqueued = enqueue_backward(of, microbatch);
  if (!enqueued.ok()) return enqueued;
  if (program.accumulates(task)) {
    of.weight_gradient(*compute_, sample(of.cut(), microbatch),
                       stashes_.stash(of.cut().stage, microbatch));
  }
  if (!compute_->failure()) return {};
  return Error{to_string(program.task(task)) + ": " + compute_->failure()->message};
}

Result<void> CudaTrainingDevice::enqueue_forward(CudaStage& of, int microbatch) {
  const StageCut& cut = of.cut();
  Result<void> taken = stashes_.keep(spec(), cut, lengths(microbatch), microbatch);
  if (!taken.ok()) return taken;
  const CudaPass with = pass(cut, microbatch, lanes_);
  if (cut.root < 0) join(cut, microbatch, with.scratch.stream);
  of.forward(with, sample(cut, microbatch), stashes_.stash(cut.stage, microbatch),
             reinterpret_cast<double*>(losses_.data()) + microbatch);
  for (const EdgeId edge : world_->program().edges_from(cut.stage, Slot::kForward)) {
    const Result<CudaMatrix> handed = hand_on(edge, microbatch, with.scratch.stream.rows);
    if (!handed.ok()) return handed.error();
    compute_->copy(with.scratch.stream, *handed);
  }
  return {};
}

Result<void> CudaTrainingDevice::enqueue_backward(CudaStage& of, int microbatch) {
  const Program& program = world_->program();
  const StageCut& cut = of.cut();
  const CudaPass with = pass(cut, microbatch, lanes_);
  sum_gradients_into(cut, microbatch, with.scratch.gradient);
  of.input_gradient(with, sample(cut, microbatch), scale_, stashes_.stash(cut.stage, microbatch));
  const std::span<const int> predecessors = program.predecessors(cut.stage);
  for (const EdgeId edge : program.edges_from(cut.stage, Slot::kBackward)) {
    const auto index = std::find(predecessors.begin(), predecessors.end(), program.edge(edge).to) -
                       predecessors.begin();
    const std::vector<int>& roots = cut.brought[static_cast<std::size_t>(index)];
    const Result<CudaMatrix> handed =
        hand_on(edge, microbatch, rows_of(roots, lengths(microbatch)));
    if (!handed.ok()) return handed.error();
    copy_roots(roots, cut, microbatch, with.scratch.gradient, *handed);
  }
  return {};
}

Result<void> CudaTrainingDevice::finish(TaskId task) {
  const Program& program = world_->program();
  const int microbatch = program.microbatch_of(task);
  const int number = program.stage_of(task);
  for (const EdgeId edge : program.edges_to(number, program.slot_of(task))) {
    std::optional<CudaMessage>& used = inbox_[message(edge, microbatch)];
    if (used) used->give_back();
    used.reset();
  }
  stashes_.give_back(number, microbatch, returned_by(program, task));
  if (program.slot_of(task) != Slot::kForward || !stage(number).cut().last) return {};
  const Real loss = reinterpret_cast<const double*>(losses_.data())[microbatch];
  if (std::isfinite(loss)) return {};
  return not_a_number(iteration_, training_->grid.replicas, place().replica, microbatch, loss);
}

// --- The end of an iteration.

Result<Payload> CudaTrainingDevice::gradient(int number) {
  if (failure()) return *failure();
  return stage(number).parameters().gather(*compute_);
}

Result<Payload> CudaTrainingDevice::reduce(int number, std::span<Payload> replicas) {
  Result<Payload> sum = sum_gradients(replicas);
  if (sum.ok()) return sum;
  return Error{"stage " + std::to_string(number) + ": " + sum.error().message};
}

Result<void> CudaTrainingDevice::take_gradient(int number, Payload sum) {
  return stage(number).parameters().scatter(sum, *compute_);
}

Result<void> CudaTrainingDevice::finish_iteration() {
  if (failure()) return *failure();
  for (const std::unique_ptr<CudaStage>& of : stages_) {
    if (of == nullptr) continue;
    if (world_->program().backward_of(of->cut().stage) != Backward::kFull) continue;
    of->parameters().take_step(training_->spec.optimizer, *compute_);
  }
  Result<void> waited = compute_->wait();
  if (!waited.ok() || iteration_ + 1 < training_->steps) return waited;
  for (const std::unique_ptr<CudaStage>& of : stages_) {
    if (of == nullptr) continue;
    Result<std::vector<NamedMatrix>> values = of->parameters().values(*compute_);
    if (!values.ok()) return values.error();
    std::move(values->begin(), values->end(), std::back_inserter(trained_));
  }
  return {};
}

std::vector<std::byte> CudaTrainingDevice::report() {
  std::vector<NamedMatrix> entries = std::move(trained_);
  entries.emplace_back(kStashName,
                       Matrix::Constant(1, 1, static_cast<Real>(stashes_.high_water_bytes())));
  if (stages_.back() && place().lane == 0) {
    const auto* losses = reinterpret_cast<const double*>(losses_.data());
    entries.emplace_back(kLossName, Eigen::Map<const Matrix>(losses, 1, microbatches_));
  }
  return to_report(entries);
}

}  // namespace rrfp
