// The exchange of all processes of a job, in words for people: whom it waits
// for, and for what, before it has waited long, and in its error.
//
// Thread safety: one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "executor/lane_exchange.h"

namespace rrfp {

class WatchedExchange final : public LaneExchange {
 public:
  using Tell = std::function<void(const std::string& who_waits)>;
  static constexpr std::string_view kToTakePart = "to take part in an exchange of all";
  static constexpr std::int64_t kSlowNs = 5'000'000'000;

  /// `all`: lane N is process N of the job; this one is `process`. `tell` may be
  /// empty.
  WatchedExchange(std::unique_ptr<LaneExchange> all, int process, Tell tell,
                  std::int64_t slow_ns = kSlowNs);

  /// What others are waited for from now on: "to agree on what it runs".
  void waits_for_others(std::string_view what = kToTakePart) { what_ = what; }

  int lanes() const override { return all_->lanes(); }
  Result<std::vector<Payload>> exchange(Payload mine) override;
  void leave() override { all_->leave(); }
  void next_waits_at_most(std::int64_t ns) override { all_->next_waits_at_most(ns); }
  Result<void> look() override { return all_->look(); }
  void warn(const std::string& why) override { all_->warn(why); }

 private:
  const std::unique_ptr<LaneExchange> all_;
  const int process_;
  const Tell tell_;
  const std::int64_t slow_ns_;
  std::string what_{kToTakePart};
};

}  // namespace rrfp
