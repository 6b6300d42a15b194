// What one member of a communicator of the double has sent to another and the
// other has yet to take: bytes in memory that both have mapped, for they may be
// threads or processes.
//
//  1. Transfers follow each other in the order in which the sender issued them,
//     each as a head and then its bytes.
//  2. A transfer of up to kEagerBytes ends early at the sender, if the ring was
//     empty; of a longer one the rest waits until the receiver takes.
//  3. Nobody holds a lock, so a process that is killed leaves none behind.
//
// Thread safety: one thread puts, one takes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rrfp {

struct DoubleNcclHead {
  enum class Kind : std::uint32_t { kMessage = 1, kAllGather };

  Kind kind = Kind::kMessage;
  std::uint32_t datatype = 0;
  std::uint64_t bytes = 0;
  std::uint64_t number = 0;  ///< of the collective in its communicator

  bool operator==(const DoubleNcclHead& other) const {
    return kind == other.kind && datatype == other.datatype && bytes == other.bytes &&
           number == other.number;
  }
  /// "64 bytes of float32".
  std::string describe_size() const;
};

class DoubleNcclRing {
 public:
  static constexpr std::size_t kEagerBytes = std::size_t{64} << 10;

  std::size_t filled() const {
    return static_cast<std::size_t>(put_.load(std::memory_order_acquire) -
                                    taken_.load(std::memory_order_acquire));
  }
  std::size_t room() const { return kBytes - filled(); }
  /// As many bytes as there is room for; how many that were.
  std::size_t put(const void* from, std::size_t most);
  std::size_t take(void* to, std::size_t most);

  /// An end has been used for the first time. NCCL connects two members only
  /// then, and waits for both.
  void use_end(bool sender) {
    std::atomic<std::uint32_t>& end = sender ? sender_used_ : receiver_used_;
    end.store(1, std::memory_order_release);
  }
  bool connected() const {
    return sender_used_.load(std::memory_order_acquire) != 0 &&
           receiver_used_.load(std::memory_order_acquire) != 0;
  }

 private:
  static constexpr std::size_t kBytes = kEagerBytes + sizeof(DoubleNcclHead);
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  // All zero is empty, as fresh memory is.
  alignas(64) std::atomic<std::uint64_t> put_;
  alignas(64) std::atomic<std::uint64_t> taken_;
  std::atomic<std::uint32_t> sender_used_;
  std::atomic<std::uint32_t> receiver_used_;
  std::byte bytes_[kBytes];
};

}  // namespace rrfp
