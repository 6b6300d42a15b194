#include "executor/cuda_peer_wait.h"

#include <algorithm>
#include <utility>

#include "executor/agreement.h"
#include "executor/clock.h"

namespace rrfp {

namespace {

// To look costs a call of the system, and what is waited for often takes microseconds.
constexpr std::int64_t kBetweenLooksNs = 10'000'000;

std::string milliseconds(std::int64_t ns) { return std::to_string(ns / 1'000'000); }

}  // namespace

CudaPeerWait::CudaPeerWait(std::int64_t patience_ns)
    : patience_ns_(patience_ns), begin_ns_(MonotonicClock::read_ns()) {}

CudaPeerWait::CudaPeerWait(std::int64_t patience_ns, LaneExchange& everyone, std::string what,
                           Tell tell, std::int64_t slow_ns)
    : patience_ns_(patience_ns),
      begin_ns_(MonotonicClock::read_ns()),
      everyone_(&everyone),
      what_(std::move(what)),
      tell_(std::move(tell)),
      tell_after_ns_(slow_ns) {}

Result<void> CudaPeerWait::go_on(const char* late) {
  const std::int64_t now_ns = MonotonicClock::read_ns();
  if (Result<void> well = look(now_ns); !well.ok()) return well;
  if (now_ns - begin_ns_ > patience_ns_) {
    late_ = true;
    return Error{std::string(late) + " after " + milliseconds(now_ns - begin_ns_) + " ms; " +
                 (everyone_ == nullptr ? "a --patience-ms" : "an --agree-ms") + " above " +
                 milliseconds(patience_ns_) + " waits longer"};
  }
  tell_if_slow(now_ns);
  return {};
}

Result<void> CudaPeerWait::look(std::int64_t now_ns) {
  if (trouble_) return *trouble_;
  if (everyone_ == nullptr || now_ns < next_look_ns_) return {};
  next_look_ns_ = now_ns + kBetweenLooksNs;
  const Result<void> well = everyone_->look();
  if (!well.ok()) trouble_ = well.error();
  return well;
}

// More and more seldom.
void CudaPeerWait::tell_if_slow(std::int64_t now_ns) {
  if (!tell_ || now_ns - begin_ns_ < tell_after_ns_) return;
  tell_after_ns_ *= 2;
  tell_(what_ + " has taken " + std::to_string((now_ns - begin_ns_) / 1'000'000'000) +
        " s, now at " + step_ + "; given up after " + std::to_string(patience_ns_ / 1'000'000'000) +
        " s");
}

void CudaPeerWait::give_up(const Error& why) {
  if (everyone_ != nullptr && !trouble_ && !late_) everyone_->warn(why.message);
}

// One that only waited in vain for others leaves it to them to say what the matter is.
Result<void> CudaPeerWait::agree(const Result<void>& mine) {
  if (everyone_ == nullptr) return mine;
  const bool waited = !mine.ok() && (late_ || trouble_);
  Result<std::string> reason = ask_all(waited ? Result<void>() : mine);
  if (reason.ok() && reason->empty()) reason = ask_all(mine);
  if (reason.ok()) return reason->empty() ? Result<void>() : Error{*reason};
  if (mine.ok()) return not_all(reason.error());
  // Whoever did not come to say so is the one that was waited for.
  return late_ ? Error{not_all(reason.error()).message + "; " + mine.error().message} : mine;
}

// All have begun at about the same time, so they give up at about the same time, too.
Result<std::string> CudaPeerWait::ask_all(const Result<void>& mine) {
  const std::int64_t left_ns = begin_ns_ + patience_ns_ - MonotonicClock::read_ns();
  everyone_->next_waits_at_most(std::max<std::int64_t>(left_ns, 0) + kBrieflyNs);
  return shared_reason(*everyone_, mine);
}

// Who is lost, and how that was noticed, says more than who was waited for.
Error CudaPeerWait::not_all(const Error& error) const {
  const Result<void> looked = everyone_->look();
  return Error{what_ + ": " + (looked.ok() ? error : looked.error()).message};
}

}  // namespace rrfp
