#include "experiments/run_progress.h"

#include <algorithm>
#include <ostream>

#include "experiments/display_units.h"

namespace rrfp {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBetweenDrawingsNs = kSecond / 10;
constexpr std::int64_t kBetweenLinesNs = 10 * kSecond;

// Where `done` of `all` took so long.
std::string time_left(std::int64_t took_ns, int done, int all) {
  const double left_ns = static_cast<double>(took_ns) * (all - done) / done;
  return ", about " + fixed(left_ns / kSecond, 0) + " s left";
}

}  // namespace

RunProgress::RunProgress(std::string what, const RunPlan& plan, std::shared_ptr<IterationSink> next,
                         std::ostream& err, bool terminal, NowNs now_ns)
    : what_(std::move(what)),
      grid_(plan.grid),
      iterations_(plan.iterations()),
      next_(std::move(next)),
      err_(err),
      terminal_(terminal),
      now_ns_(now_ns),
      start_ns_(now_ns()),
      iterating_since_ns_(start_ns_) {}

Result<void> RunProgress::on_iteration(IterationRecord record) {
  ++done_;
  ready_since_ns_ = -1;
  const std::int64_t took_ns = now_ns_() - iterating_since_ns_;
  if (done_ < iterations_) {
    tell(std::to_string(done_) + " of " + std::to_string(iterations_) + " iterations" +
             time_left(took_ns, done_, iterations_),
         terminal_ ? kSecond : kBetweenLinesNs);
  }
  return next_->on_iteration(std::move(record));
}

void RunProgress::on_getting_ready(const GettingReady& progress) {
  const std::int64_t now_ns = now_ns_();
  if (done_ == 0) iterating_since_ns_ = now_ns;
  if (ready_since_ns_ < 0) ready_since_ns_ = now_ns;
  std::string text = "warming up: " + std::to_string(progress.parts_done) + " of " +
                     std::to_string(progress.parts) + " parts of " +
                     worker_name(grid_, progress.endpoint);
  if (progress.parts_done > 0) {
    text += time_left(now_ns - ready_since_ns_, progress.parts_done, progress.parts);
  }
  tell(text, terminal_ ? kSecond : 2 * kSecond);
}

void RunProgress::tell(const std::string& text, std::int64_t first_ns) {
  const std::int64_t now_ns = now_ns_();
  const std::int64_t passed_ns = now_ns - start_ns_;
  if (passed_ns < first_ns) return;
  const std::int64_t between_ns =
      terminal_ ? kBetweenDrawingsNs : std::max(kBetweenLinesNs, passed_ns / 10);
  if (told_ns_ >= 0 && now_ns - told_ns_ < between_ns) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (finished_) return;
  told_ns_ = now_ns;
  const std::string line = what_ + ": " + text;
  err_ << (terminal_ ? "\r\x1b[K" + line : line + "\n") << std::flush;
}

void RunProgress::finish() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (terminal_ && told_ns_ >= 0 && !finished_) err_ << "\r\x1b[K" << std::flush;
  finished_ = true;
}

Result<RunOutcome> run_with_progress(Job& job, PreparedRun& prepared, const Equipment& equipment,
                                     std::shared_ptr<IterationSink> sink, const std::string& what,
                                     Terminal& terminal, bool advise) {
  if (advise && job.speaks() && !equipment.advice.empty()) {
    terminal.err << what + ": note: " + equipment.advice + "\n" << std::flush;
  }
  auto progress =
      std::make_shared<RunProgress>(what, *prepared.plan, std::move(sink), terminal.err);
  Result<RunOutcome> outcome = job.run(prepared, equipment.device, progress, equipment.transport);
  progress->finish();
  return outcome;
}

}  // namespace rrfp
