// What workers tell each other: letters of a fixed size, some of which
// announce a payload (a tensor).
//
// Thread safety: plain data; one owner at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "scheduler_core/program.h"

namespace rrfp {

enum class Tag : std::uint8_t {
  // Of the iteration: what the machines of the core are fed with, and tensors.
  kMessage,    ///< an activation or gradient along `edge`, for `task`
  kNotice,     ///< an input of `task` from stage `stage` is expected at `time_ns`
  kVote,       ///< lane `lane` has the message (edge, microbatch)
  kStart,      ///< the leader announces `task` as number `sequence`
  kLaneStart,  ///< lane `lane` has started `task` at `time_ns`
  kCredit,     ///< a buffer of `edge` is free again
  kPost,       ///< rendezvous: the receive of (edge, microbatch) is posted
  kGradient,   ///< the gradient of stage `stage` of one replica
  kReduced,    ///< the sum over all replicas
  // Of the run.
  kPrepare,  ///< get ready for `iteration`
  kReady,
  kPing,  ///< what does your clock say?
  kPong,
  kGo,    ///< the iteration starts at `time_ns`; your clock is `sent_ns` behind
  kDone,  ///< my part is done; the payload is what I recorded
  kBeat,  ///< I am alive; getting ready: `stage` parts of that are left, `edge` done
  kEnd,   ///< the run ends; `stage` is why (see RunEnd)
};
inline constexpr bool is_of_iteration(Tag tag) { return tag <= Tag::kReduced; }

/// Trivially copyable: what travels is these bytes.
struct Letter {
  Tag tag = Tag::kBeat;
  std::uint8_t flag = 0;
  std::int32_t from = 0;  ///< endpoint
  std::int32_t to = 0;    ///< endpoint
  std::int32_t run = 0;   ///< of this job; letters of an earlier one are stale
  std::int32_t iteration = 0;
  TaskId task = kNoTask;
  std::int32_t edge = -1;
  std::int32_t stage = -1;
  std::int32_t lane = 0;
  std::int64_t sequence = 0;
  std::int64_t time_ns = 0;  ///< of what the letter tells
  std::int64_t sent_ns = 0;  ///< messages: their transmission starts
  std::int64_t due_ns = 0;   ///< not to be looked at before
  std::int64_t bytes = 0;    ///< of the payload; 0: none
  /// Of a tensor that travels from device to device, not with the letter.
  std::int64_t device_bytes = 0;
};
static_assert(std::is_trivially_copyable_v<Letter>);

/// The bytes of a tensor, owned.
class Payload {
 public:
  Payload() = default;
  explicit Payload(std::size_t size)
      : data_(size == 0 ? nullptr : new std::byte[size]), size_(size) {}
  Payload(std::unique_ptr<std::byte[]> data, std::size_t size)
      : data_(std::move(data)), size_(size) {}

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  Payload copy() const {
    Payload other(size_);
    if (size_ > 0) std::memcpy(other.data(), data(), size_);
    return other;
  }
  /// Gives up the bytes, to hand them through a queue of plain pointers.
  std::byte* release() {
    size_ = 0;
    return data_.release();
  }

 private:
  std::unique_ptr<std::byte[]> data_;
  std::size_t size_ = 0;
};

}  // namespace rrfp
