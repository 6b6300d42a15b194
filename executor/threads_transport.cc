#include "executor/threads_transport.h"

#include <algorithm>
#include <bit>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr int kLooksPerClock = 4;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

ThreadsNetwork::ThreadsNetwork(int endpoints, std::span<const std::pair<int, int>> pairs,
                               const ThreadsTuning& tuning) {
  for (int i = 0; i < endpoints; ++i) {
    transports_.push_back(std::make_unique<ThreadsTransport>(*this, i, tuning));
    transports_.back()->outgoing_.resize(static_cast<std::size_t>(endpoints));
    transports_.back()->outgoing_slot_.resize(static_cast<std::size_t>(endpoints));
  }
  for (const auto& [from, to] : pairs) {
    channels_.push_back(std::make_unique<Channel>(from, to, tuning.queue_capacity));
    ThreadsTransport& sender = *transports_[static_cast<std::size_t>(from)];
    ThreadsTransport& receiver = *transports_[static_cast<std::size_t>(to)];
    Channel*& entry = sender.outgoing_[static_cast<std::size_t>(to)];
    RRFP_CHECK(entry == nullptr && from != to);
    entry = channels_.back().get();
    sender.outgoing_slot_[static_cast<std::size_t>(to)] = receiver.incoming_.size();
    receiver.incoming_.push_back(channels_.back().get());
  }
  for (const auto& transport : transports_) {
    transport->mark_words_ = transport->incoming_.size() / ThreadsTransport::kWordBits + 1;
    transport->more_marks_ =
        std::make_unique<std::atomic<std::uint64_t>[]>(transport->mark_words_ - 1);
    transport->taken_.resize(transport->mark_words_);
  }
}

ThreadsNetwork::~ThreadsNetwork() {
  for (const auto& channel : channels_) {
    Parcel parcel;
    while (channel->queue.pop(parcel)) delete[] parcel.data;
    for (const Parcel& kept : channel->overflow) delete[] kept.data;
  }
  for (const auto& transport : transports_) {
    for (const Parcel& offered : transport->offered_) delete[] offered.data;
  }
}

Transport& ThreadsNetwork::transport(int endpoint) {
  return *transports_[static_cast<std::size_t>(endpoint)];
}

void ThreadsTransport::tell(const Letter& letter) { push({letter, nullptr}); }

void ThreadsTransport::send(const Letter& letter, Payload payload) {
  push({letter, payload.release()});
}

void ThreadsTransport::push(const Parcel& parcel) {
  const auto to = static_cast<std::size_t>(parcel.letter.to);
  Channel* channel = outgoing_[to];
  RRFP_CHECK(channel != nullptr);
  if (!channel->overflow.empty() || !channel->queue.push(parcel)) {
    channel->overflow.push_back(parcel);
    overflowed_ = true;
    return;
  }
  network_->transports_[to]->mark(outgoing_slot_[to]);
}

void ThreadsTransport::mark(std::size_t channel) {
  marks(channel / kWordBits).fetch_or(std::uint64_t{1} << (channel % kWordBits));
  watched_.bell.ring();
}

bool ThreadsTransport::retry_overflow() {
  bool left = false;
  for (std::size_t to = 0; to < outgoing_.size(); ++to) {
    Channel* channel = outgoing_[to];
    if (channel == nullptr || channel->overflow.empty()) continue;
    while (!channel->overflow.empty() && channel->queue.push(channel->overflow.front())) {
      channel->overflow.pop_front();
    }
    network_->transports_[to]->mark(outgoing_slot_[to]);
    left = left || !channel->overflow.empty();
  }
  overflowed_ = left;
  return !left;
}

bool ThreadsTransport::flushed() { return !overflowed_ || retry_overflow(); }

bool ThreadsTransport::poll(Delivery& delivery) {
  if (overflowed_) retry_overflow();
  if (!received_.empty()) {
    delivery = std::move(received_.front());
    received_.pop_front();
    return true;
  }
  seen_ = watched_.bell.token();
  for (std::size_t word = 0; word < mark_words_; ++word) {
    std::atomic<std::uint64_t>& marked = marks(word);
    if (marked.load(std::memory_order_relaxed) != 0) taken_[word] |= marked.exchange(0);
    while (taken_[word] != 0) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(taken_[word]));
      Parcel parcel;
      if (!incoming_[word * kWordBits + bit]->queue.pop(parcel)) {
        taken_[word] &= taken_[word] - 1;
        continue;
      }
      delivery.letter = parcel.letter;
      delivery.payload = Payload();
      delivery.event = Delivery::Event::kLetter;
      if (parcel.data != nullptr) {
        delivery.event = Delivery::Event::kAnnounced;
        offered_.push_back(parcel);
      }
      return true;
    }
  }
  return false;
}

void ThreadsTransport::receive(const Letter& announced) {
  const auto found = std::find_if(offered_.begin(), offered_.end(), [&](const Parcel& parcel) {
    return parcel.letter.from == announced.from && parcel.letter.tag == announced.tag &&
           parcel.letter.task == announced.task && parcel.letter.edge == announced.edge &&
           parcel.letter.stage == announced.stage;
  });
  RRFP_CHECK(found != offered_.end());
  Delivery delivery;
  delivery.event = Delivery::Event::kReceived;
  delivery.letter = found->letter;
  delivery.payload = Payload(std::unique_ptr<std::byte[]>(found->data),
                             static_cast<std::size_t>(found->letter.bytes));
  received_.push_back(std::move(delivery));
  offered_.erase(found);
}

void ThreadsTransport::wait(std::int64_t until_ns) {
  // A full queue at a peer: look again soon, nobody rings for room.
  if (overflowed_) until_ns = std::min(until_ns, MonotonicClock::read_ns() + 50'000);
  if (tuning_.spin_ns > 0) {
    const std::int64_t look_until_ns = MonotonicClock::read_ns() + tuning_.spin_ns;
    while (watched_.bell.token() == seen_) {
      const std::int64_t now_ns = MonotonicClock::read_ns();
      if (now_ns >= until_ns) return;
      if (now_ns >= look_until_ns) break;
      // Reading the clock takes longer than looking.
      for (int look = 0; look < kLooksPerClock && watched_.bell.token() == seen_; ++look) {
        pause_briefly();
      }
    }
  }
  if (watched_.bell.token() != seen_) return;
  const std::int64_t sleep_until_ns = until_ns == kNever ? kNever : until_ns - tuning_.spin_ns;
  if (sleep_until_ns > MonotonicClock::read_ns()) watched_.bell.wait(seen_, sleep_until_ns);
  while (watched_.bell.token() == seen_ && MonotonicClock::read_ns() < until_ns) pause_briefly();
}

}  // namespace rrfp
