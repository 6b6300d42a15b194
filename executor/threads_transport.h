// Workers as threads of one process: a bounded lock-free queue for each ordered
// pair that talks, a bitmap of who has sent something, and a doorbell.
//
// A full queue makes the sender keep letters in a list of its own until there
// is room; it never waits. Payloads change owner and are not copied.
//
// Invariant: letters of a pair come in the order of sending.
//
// Thread safety: endpoint i belongs to one thread, see Transport.
#pragma once

#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "executor/doorbell.h"
#include "executor/transport.h"

namespace rrfp {

struct ThreadsTuning {
  /// How long a waiting thread looks before it sleeps, and how long before a
  /// deadline it looks again. 0: sleep at once (more threads than cores).
  std::int64_t spin_ns = 0;
  std::size_t queue_capacity = 256;  ///< letters per ordered pair
};

class ThreadsTransport;

class ThreadsNetwork {
 public:
  /// `pairs`: who talks to whom, (from, to), no repeats.
  ThreadsNetwork(int endpoints, std::span<const std::pair<int, int>> pairs,
                 const ThreadsTuning& tuning);
  ~ThreadsNetwork();
  ThreadsNetwork(const ThreadsNetwork&) = delete;
  ThreadsNetwork& operator=(const ThreadsNetwork&) = delete;

  Transport& transport(int endpoint);

 private:
  friend class ThreadsTransport;
  // What is in a queue: plain data, the payload's bytes by an owning pointer.
  struct Parcel {
    Letter letter;
    std::byte* data = nullptr;
  };
  struct Channel {
    Channel(int from_endpoint, int to_endpoint, std::size_t capacity)
        : from(from_endpoint), to(to_endpoint), queue(capacity) {}
    int from;
    int to;
    boost::lockfree::spsc_queue<Parcel> queue;
    std::deque<Parcel> overflow;  // the sender's
  };

  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<std::unique_ptr<ThreadsTransport>> transports_;
};

class ThreadsTransport final : public Transport {
 public:
  ThreadsTransport(ThreadsNetwork& network, int endpoint, const ThreadsTuning& tuning)
      : network_(&network), endpoint_(endpoint), tuning_(tuning) {}

  int endpoint() const override { return endpoint_; }
  int endpoints() const override { return static_cast<int>(network_->transports_.size()); }
  bool shares_clock() const override { return true; }
  void tell(const Letter& letter) override;
  void send(const Letter& letter, Payload payload) override;
  bool poll(Delivery& delivery) override;
  void receive(const Letter& announced) override;
  void wait(std::int64_t until_ns) override;
  void wake() override { watched_.bell.ring(); }
  bool flushed() override;
  Result<void> status() const override { return {}; }

 private:
  friend class ThreadsNetwork;
  using Channel = ThreadsNetwork::Channel;
  using Parcel = ThreadsNetwork::Parcel;
  static constexpr int kWordBits = 64;

  // What senders write and the receiver watches, on a cache line of its own: a
  // message costs the receiver one line for these and no more.
  struct alignas(64) Watched {
    std::atomic<std::uint64_t> marks{0};  // the first word
    Doorbell bell;
  };

  void push(const Parcel& parcel);
  bool retry_overflow();
  void mark(std::size_t channel);
  std::atomic<std::uint64_t>& marks(std::size_t word) {
    return word == 0 ? watched_.marks : more_marks_[word - 1];
  }

  ThreadsNetwork* network_;
  int endpoint_;
  ThreadsTuning tuning_;
  std::vector<Channel*> outgoing_;          // by endpoint; null: never talks to it
  std::vector<std::size_t> outgoing_slot_;  // its index among the receiver's incoming_
  std::vector<Channel*> incoming_;
  // Of incoming_ with something in it: watched_.marks, then these.
  std::unique_ptr<std::atomic<std::uint64_t>[]> more_marks_;
  std::size_t mark_words_ = 0;
  std::vector<std::uint64_t> taken_;  // marks taken, to be drained
  std::deque<Parcel> offered_;        // announced, receive() not yet called, in order
  std::deque<Delivery> received_;     // receive() called
  bool overflowed_ = false;
  std::uint32_t seen_ = 0;
  Watched watched_;
};

}  // namespace rrfp
