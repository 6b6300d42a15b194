// All workers of one iteration in one thread and in virtual time, with a post
// between them that a test can tamper with: their loops are the real ones.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "executor/letter_check.h"
#include "tests/executor/runs_for_tests.h"

namespace rrfp {

struct PostedLetter {
  Letter letter;
  Payload payload;
};

/// Of one endpoint; hands everything over at once.
class PostTransport final : public Transport {
 public:
  PostTransport(int endpoint, int endpoints, std::vector<PostedLetter>& post)
      : endpoint_(endpoint), endpoints_(endpoints), post_(post) {}
  int endpoint() const override { return endpoint_; }
  int endpoints() const override { return endpoints_; }
  bool shares_clock() const override { return true; }
  void tell(const Letter& letter) override { post_.push_back({letter, Payload()}); }
  void send(const Letter& letter, Payload payload) override {
    post_.push_back({letter, std::move(payload)});
  }
  bool poll(Delivery&) override { return false; }
  void receive(const Letter&) override {}
  void wait(std::int64_t) override {}
  void wake() override {}
  bool flushed() override { return true; }
  Result<void> status() const override { return {}; }

 private:
  int endpoint_;
  int endpoints_;
  std::vector<PostedLetter>& post_;
};

class VirtualWorkers {
 public:
  using DeviceOf = std::function<std::unique_ptr<Device>(const Place& place)>;

  /// Workers of `run`, which outlives this.
  VirtualWorkers(const TestRun& run, const DeviceOf& device_of) : plan_(*run.plan) {
    for (int endpoint = 0; endpoint < plan_.grid.size(); ++endpoint) {
      Of& of = workers_.emplace_back();
      const Place place = plan_.grid.place(endpoint);
      const PreparedCase& world = plan_.world(0, place.replica);
      of.transport = std::make_unique<PostTransport>(endpoint, plan_.grid.size(), post_);
      of.mail = std::make_unique<Mail>(*of.transport, plan_.run);
      of.machines = std::make_unique<CoreMachines>(world, place, plan_.core);
      of.device = device_of(place);
      EXPECT_TRUE(of.device->begin(world, 0).ok());
      of.loop = make_loop({plan_.grid, place, &world, 0, &plan_.end, of.machines.get(),
                           of.device.get(), of.mail.get()});
    }
  }

  /// Given every letter once, when it is sent; it may change the letter, add
  /// others, or give back false: then it is lost.
  using Tamper = std::function<bool(PostedLetter& letter, std::vector<PostedLetter>& more)>;

  /// Until all have finished, one has an error, or nothing can happen any more.
  Result<void> run(const Tamper& tamper = {}) {
    for (bool moved = true; moved;) {
      moved = false;
      for (Of& of : workers_) {
        const Result<bool> stepped = of.loop->step(now_ns_);
        if (!stepped.ok()) return stepped.error();
        moved = moved || *stepped;
      }
      collect(tamper);
      const Result<bool> delivered = deliver();
      if (!delivered.ok()) return delivered.error();
      moved = moved || *delivered || advance();
    }
    return {};
  }

  /// As if it had come from a peer, now.
  Result<void> give(const Letter& letter, Payload payload = Payload()) {
    if (letter.to < 0 || letter.to >= plan_.grid.size()) return {};
    const Result<void> right = check_letter(letter, plan_, letter.to);
    if (!right.ok() || !is_of_iteration(letter.tag) || letter.iteration != 0) return right;
    Of& to = workers_[static_cast<std::size_t>(letter.to)];
    return to.loop->on_letter(letter, std::move(payload), now_ns_);
  }

  bool finished() const {
    return std::all_of(workers_.begin(), workers_.end(),
                       [](const Of& of) { return of.loop->finished(); });
  }
  IterationLoop& loop(int endpoint) { return *workers_[static_cast<std::size_t>(endpoint)].loop; }
  /// Of what was sent so far.
  const std::vector<Letter>& sent() const { return sent_; }

 private:
  struct Of {
    std::unique_ptr<PostTransport> transport;
    std::unique_ptr<Mail> mail;
    std::unique_ptr<CoreMachines> machines;
    std::unique_ptr<Device> device;
    std::unique_ptr<IterationLoop> loop;
  };

  void collect(const Tamper& tamper) {
    std::vector<PostedLetter> more;
    for (PostedLetter& posted : post_) {
      sent_.push_back(posted.letter);
      if (tamper && !tamper(posted, more)) continue;
      waiting_.push_back(std::move(posted));
    }
    post_.clear();
    for (PostedLetter& posted : more) waiting_.push_back(std::move(posted));
  }

  Result<bool> deliver() {
    std::vector<PostedLetter> due;
    const auto later =
        std::stable_partition(waiting_.begin(), waiting_.end(),
                              [&](const PostedLetter& of) { return of.letter.due_ns <= now_ns_; });
    due.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(later));
    waiting_.erase(waiting_.begin(), later);
    std::stable_sort(due.begin(), due.end(), [](const PostedLetter& a, const PostedLetter& b) {
      return a.letter.due_ns < b.letter.due_ns;
    });
    for (PostedLetter& of : due) {
      Result<void> taken = give(of.letter, std::move(of.payload));
      if (!taken.ok()) return taken.error();
    }
    return !due.empty();
  }

  // To the next instant at which something happens. False: there is none.
  bool advance() {
    std::int64_t next_ns = kNever;
    for (const Of& of : workers_) next_ns = std::min(next_ns, of.loop->next_ns());
    for (const PostedLetter& of : waiting_) next_ns = std::min(next_ns, of.letter.due_ns);
    if (next_ns == kNever || finished()) return false;
    now_ns_ = std::max(now_ns_ + 1, next_ns);
    return true;
  }

  const RunPlan& plan_;
  std::vector<Of> workers_;
  std::vector<PostedLetter> post_;     // sent since the last collection
  std::vector<PostedLetter> waiting_;  // not yet due
  std::vector<Letter> sent_;
  std::int64_t now_ns_ = 0;
};

}  // namespace rrfp
