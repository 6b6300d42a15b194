#include "executor/watched_exchange.h"

#include <utility>

namespace rrfp {

WatchedExchange::WatchedExchange(std::unique_ptr<LaneExchange> all, int process, Tell tell,
                                 std::int64_t slow_ns)
    : all_(std::move(all)), process_(process), tell_(std::move(tell)), slow_ns_(slow_ns) {}

Result<std::vector<Payload>> WatchedExchange::exchange(Payload mine) {
  all_->on_slow(slow_ns_, [&](int process) {
    if (!tell_) return;
    tell_("process " + std::to_string(process_) + " of " + std::to_string(lanes()) +
          " waits for process " + std::to_string(process) + " " + what_ + " (" +
          std::to_string(slow_ns_ / 1'000'000'000) + " s)");
  });
  Result<std::vector<Payload>> all = all_->exchange(std::move(mine));
  all_->on_slow(0, nullptr);
  if (all.ok()) return all;
  return Error{all.error().message + ", " + what_};
}

}  // namespace rrfp
