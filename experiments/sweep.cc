#include "experiments/sweep.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>

#include "experiments/parallel_for.h"
#include "experiments/world_runner.h"

namespace rrfp {

namespace {

// All runs of a sweep are held in memory: 48 bytes each.
constexpr std::int64_t kMostRuns = 50'000'000;
// Tasks of an iteration, over all replicas: some 100 bytes each.
constexpr std::int64_t kMostTasks = 100'000'000;

// Of schedules that are kept for other points: some 12 bytes each.
constexpr std::int64_t kMostCachedTasks = 8 << 20;

struct Piece {
  std::size_t point = 0;
  int iteration = 0;
};

std::vector<Piece> pieces_of(const Sweep& sweep) {
  std::vector<Piece> pieces;
  for (std::size_t point = 0; point < sweep.points.size(); ++point) {
    const std::vector<bool>& done = sweep.points[point].done;
    for (std::size_t iteration = 0; iteration < done.size(); ++iteration) {
      if (!done[iteration]) pieces.push_back({point, static_cast<int>(iteration)});
    }
  }
  return pieces;
}

Result<WorldRunner> runner_of(const Sweep& sweep, std::size_t point, ScheduleCache& schedules) {
  Result<ScenarioResolver> resolver = ScenarioResolver::create(sweep.points[point].scenario);
  if (!resolver.ok()) return resolver.error();
  return WorldRunner::create(*std::move(resolver), schedules,
                             sweep.calibration ? &*sweep.calibration : nullptr);
}

// Before anything runs, so that a mistake in the last point is told at once.
Result<void> check_points(const Sweep& sweep, ScheduleCache& schedules) {
  for (std::size_t point = 0; point < sweep.points.size(); ++point) {
    const Result<WorldRunner> runner = runner_of(sweep, point, schedules);
    if (!runner.ok()) return runner.error();
  }
  return {};
}

// The runners of the points at work. A runner holds the schedules of its point,
// so it is made with the first piece and dropped with the last: memory does not
// grow with the number of points. Thread safety: all calls by any thread.
class RunnersAtWork {
 public:
  RunnersAtWork(const Sweep& sweep, const std::vector<Piece>& pieces, ScheduleCache& schedules)
      : sweep_(sweep), schedules_(schedules), points_(sweep.points.size()) {
    for (const Piece& piece : pieces) ++points_[piece.point].pieces_left;
  }

  Result<std::vector<SweepRun>> run(const Piece& piece) {
    Point& point = points_[piece.point];
    const Result<std::shared_ptr<const WorldRunner>> runner = begin(point, piece.point);
    if (!runner.ok()) return runner.error();
    Result<std::vector<SweepRun>> runs = (*runner)->run(piece.iteration);
    const std::lock_guard lock(point.mutex);
    if (--point.pieces_left == 0) point.runner.reset();
    return runs;
  }

 private:
  struct Point {
    std::mutex mutex;  // guards the other members
    std::size_t pieces_left = 0;
    std::shared_ptr<const WorldRunner> runner;
  };

  // Threads that want another point do not wait while this one's is made.
  Result<std::shared_ptr<const WorldRunner>> begin(Point& point, std::size_t number) {
    const std::lock_guard lock(point.mutex);
    if (point.runner == nullptr) {
      Result<WorldRunner> made = runner_of(sweep_, number, schedules_);
      if (!made.ok()) return made.error();
      point.runner = std::make_shared<const WorldRunner>(*std::move(made));
    }
    return point.runner;
  }

  const Sweep& sweep_;
  ScheduleCache& schedules_;
  std::vector<Point> points_;
};

}  // namespace

bool SweepPoint::complete() const {
  return std::all_of(done.begin(), done.end(), [](bool one) { return one; });
}

int SweepPoint::iterations_done() const {
  return static_cast<int>(std::count(done.begin(), done.end(), true));
}

bool Sweep::complete() const {
  return std::all_of(points.begin(), points.end(),
                     [](const SweepPoint& point) { return point.complete(); });
}

Result<void> check_iteration_size(const Scenario& scenario) {
  const auto stages = static_cast<std::int64_t>(scenario.pipeline.stages.size());
  const std::int64_t microbatches = scenario.pipeline.microbatches;
  const std::int64_t replicas = scenario.data_parallel.replicas;
  const std::int64_t tasks = stages * kSlots * microbatches;
  if (tasks <= kMostTasks / replicas) return {};
  return Error{"an iteration is too large: " + std::to_string(stages) + " stages x " +
               std::to_string(microbatches) + " microbatches x 3 tasks x " +
               std::to_string(replicas) + " replicas; expected at most " +
               std::to_string(kMostTasks) + " tasks, so fewer microbatches or replicas"};
}

Result<Sweep> plan_sweep(const JsonDocument& document, int iterations) {
  Sweep sweep;
  Result<std::vector<GridAxis>> axes = read_grid(document);
  if (!axes.ok()) return axes.error();
  sweep.axes = std::move(axes).value();
  Result<std::vector<GridPoint>> points = expand_grid(document);
  if (!points.ok()) return points.error();
  std::int64_t runs = 0;
  for (GridPoint& grid_point : *points) {
    if (Result<void> size = check_iteration_size(grid_point.scenario); !size.ok()) {
      return Error{document.file + ": " + size.error().message};
    }
    if (iterations > 0) grid_point.scenario.iterations = iterations;
    runs += std::int64_t{grid_point.scenario.iterations} *
            static_cast<std::int64_t>(grid_point.scenario.policies.size());
  }
  if (runs > kMostRuns) {
    return Error{document.file + ": " + std::to_string(runs) +
                 " runs (points x policies x iterations); a sweep has at most " +
                 std::to_string(kMostRuns)};
  }
  for (GridPoint& grid_point : *points) {
    SweepPoint& point = sweep.points.emplace_back();
    point.values = std::move(grid_point.values);
    point.scenario = std::move(grid_point.scenario);
    const auto count = static_cast<std::size_t>(point.scenario.iterations);
    point.done.assign(count, false);
    point.runs.assign(point.scenario.policies.size(), std::vector<SweepRun>(count));
  }
  return sweep;
}

std::size_t pieces_left(const Sweep& sweep) { return pieces_of(sweep).size(); }

Result<void> run_sweep(Sweep& sweep, const SweepControl& control) {
  ScheduleCache schedules(kMostCachedTasks);
  if (Result<void> checked = check_points(sweep, schedules); !checked.ok()) return checked.error();
  const std::vector<Piece> pieces = pieces_of(sweep);
  RunnersAtWork runners(sweep, pieces, schedules);
  std::mutex mutex;  // guards sweep's runs and done, and errors
  std::map<std::size_t, Error> errors;
  parallel_for(pieces.size(), control.threads, [&](std::size_t index) {
    if (control.interrupted && control.interrupted()) return false;
    const Piece piece = pieces[index];
    Result<std::vector<SweepRun>> runs = runners.run(piece);
    const std::lock_guard lock(mutex);
    if (!runs.ok()) {
      errors.emplace(index, runs.error());
      return false;
    }
    SweepPoint& point = sweep.points[piece.point];
    const auto iteration = static_cast<std::size_t>(piece.iteration);
    for (std::size_t policy = 0; policy < runs->size(); ++policy) {
      point.runs[policy][iteration] = (*runs)[policy];
    }
    point.done[iteration] = true;
    if (control.on_piece_done) control.on_piece_done();
    return true;
  });
  if (!errors.empty()) return errors.begin()->second;
  return {};
}

}  // namespace rrfp
