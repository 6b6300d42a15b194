#include "executor/training_run.h"

#include <algorithm>
#include <cstring>

#include "executor/training_report.h"
#include "scheduler_core/random.h"

namespace rrfp {

namespace {

bool same_bits(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(bytes_of(a))) == 0;
}

}  // namespace

Result<void> TrainingSink::take(const WorkerRecord& worker, std::vector<Real>& losses) {
  const Place place = plan_->grid.place(worker.endpoint);
  const Result<std::vector<NamedMatrix>> entries = from_report(worker.report);
  if (!entries.ok()) return entries.error();
  for (const auto& [name, matrix] : *entries) {
    if (name == kLossName) {
      const std::vector<Real> of_replica(matrix.data(), matrix.data() + matrix.size());
      losses[static_cast<std::size_t>(place.replica)] = sum_of(of_replica);
    } else if (name == kStashName) {
      const auto bytes = static_cast<std::int64_t>(matrix(0, 0));
      most_stash_bytes_ = std::max(most_stash_bytes_, bytes);
      if (place.lane > 0 || bytes <= worker.peak_bytes) continue;
      return Error{"rank " + std::to_string(place.rank) + " held " + std::to_string(bytes) +
                   " bytes of activations at once; its scheduler counted " +
                   std::to_string(worker.peak_bytes)};
    } else {
      const auto [at, fresh] = result_.weights.emplace(name, matrix);
      if (fresh || same_bits(at->second, matrix)) continue;
      return Error{"rank " + std::to_string(place.rank) + ", lane " + std::to_string(place.lane) +
                   " of replica " + std::to_string(place.replica) + ": its copy of \"" + name +
                   "\" differs from that of the others"};
    }
  }
  return {};
}

Result<void> TrainingSink::on_iteration(IterationRecord record) {
  std::vector<Real> losses(static_cast<std::size_t>(plan_->grid.replicas), 0);
  for (WorkerRecord& worker : record.workers) {
    if (Result<void> taken = take(worker, losses); !taken.ok()) return taken;
    worker.report = {};
  }
  const std::int64_t targets =
      training_->data.targets_of_step(record.iteration, plan_->grid.replicas,
                                      plan_->world(record.iteration, 0).program().microbatches());
  result_.loss.push_back(sum_of(losses) / static_cast<Real>(targets));
  if (on_loss_) on_loss_(record.iteration, result_.loss.back());
  return next_ ? next_->on_iteration(std::move(record)) : Result<void>{};
}

DeviceMaker TrainingRun::devices(const ExchangeOf& exchange_of) const {
  return [exchange_of, shared = training](const Place& place) {
    return std::make_unique<CpuDevice>(shared, place, exchange_of(place));
  };
}

Result<TrainingRun> prepare_training(const TrainingSetup& setup, std::string text,
                                     const CaseOf& case_of) {
  const Result<Case> first = case_of(0, 0);
  if (!first.ok()) return first.error();
  TrainingSpec spec = setup.spec;
  spec.model.lanes = first->tensor_parallel.lanes;
  spec.model.longest = spec.data.longest;
  const Result<TrainingCases> cases =
      TrainingCases::create(spec.model, first->program, setup.footprint);
  if (!cases.ok()) return cases.error();
  Result<TrainingData> data = TrainingData::create(std::move(text), spec.data, cases->roots());
  if (!data.ok()) return data.error();

  std::vector<std::vector<Case>> filled;
  for (int step = 0; step < setup.steps; ++step) {
    filled.emplace_back();
    for (int replica = 0; replica < setup.replicas; ++replica) {
      Result<Case> base = case_of(step, replica);
      if (!base.ok()) return base.error();
      std::vector<std::vector<int>> lengths;
      for (int m = 0; m < base->program.microbatches(); ++m) {
        lengths.push_back(data->lengths(step, replica, m));
      }
      filled.back().push_back(cases->fill(std::move(*base), lengths, setup.paced));
    }
  }
  Result<PreparedRun> prepared = prepare_run(std::move(filled));
  if (!prepared.ok()) return prepared.error();
  TrainingRun run;
  run.prepared = std::move(*prepared);
  const RunPlan& plan = run.plan();
  for (int step = 0; step < setup.steps; ++step) {
    run.arrangements.emplace_back();
    for (int replica = 0; replica < setup.replicas; ++replica) {
      run.arrangements.back().push_back(plan.world(step, replica).arrangement());
    }
  }
  run.training = std::make_shared<const CpuTraining>(
      CpuTraining{spec, std::move(*data), plan.grid, setup.steps, setup.paced});
  run.sink = std::make_shared<TrainingSink>(run.prepared.plan, run.training);
  return run;
}

std::uint64_t digest(const std::map<std::string, Matrix>& weights) {
  std::uint64_t digest = 0;
  for (const auto& [name, matrix] : weights) {
    for (const char c : name) digest = mix_bits(digest * 31 + static_cast<unsigned char>(c) + 1);
    for (Eigen::Index i = 0; i < matrix.size(); ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, matrix.data() + i, sizeof(bits));
      digest = mix_bits(digest * 31 + bits + 1);
    }
  }
  return digest;
}

}  // namespace rrfp
