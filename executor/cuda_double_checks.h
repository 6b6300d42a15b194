// What the double of a device knows of memory and order, and what it objects
// to. On a real device these mistakes give wrong numbers now and then, or a
// hang; here each is an error at once, and in words.
//
//  1. A use of memory that is not allocated, or that was cut into blocks and is
//     not out to anybody.
//  2. A use that another stream's use of the same bytes may come before or
//     after: one of them writes, and the earlier was not seen to end before the
//     later was enqueued.
//  3. A block that is returned, or memory that is freed, while it is in use.
//  4. Members of a group that do not enqueue the same work in the same order.
//  5. A stream in which work piles up.
//  6. A green context that is destroyed before its streams.
//  7. Memory that is allocated or freed while a kernel of NCCL is on the device:
//     the driver may wait for it, and it waits for a peer that may do the same.
//  8. NCCL: a call on a communicator that is still busy with the one before, was
//     given back, or is given back too early; an abort that waits for a kernel of
//     another communicator; a receive that meets a send of
//     another size or type; members whose collectives differ. A communicator
//     that is never given back is counted.
//
// The first objection is kept; from then on every call of the runtime fails
// with its text, so that the host code under test reports it by its own means.
//
// Not thread safe: the double's one lock is held around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rrfp {

/// Bytes that a piece of work reads or writes.
struct DoubleAccess {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writes = false;

  const std::byte* end() const { return begin + bytes; }
  bool conflicts_with(const DoubleAccess& other) const {
    return (writes || other.writes) && begin < other.end() && other.begin < end();
  }
};

/// Work that is in a stream and has not been done.
struct DoubleWork {
  std::string name;
  std::vector<DoubleAccess> accesses;
};

class DoubleChecks {
 public:
  /// More than this many pieces of work in one stream are piling up: a device
  /// holds about as many, and then a launch waits. A pass of a large stage of
  /// the training model has some hundred.
  static constexpr std::size_t kMostQueued = 1024;

  void on_allocated(const void* memory, std::size_t bytes);
  void on_freed(const void* memory);
  std::size_t bytes_of(const void* memory) const;
  void on_block_taken(const void* block, std::size_t bytes);
  void on_block_returned(const void* block);
  void on_group_work(int group, int member, std::uint64_t work);
  void on_context_lost();
  void on_communicator_made() { ++communicators_out_; }
  void on_communicator_given_back();
  /// What others find out by themselves.
  void object(const std::string& text);

  void on_enqueued(int stream, const DoubleWork& work);
  /// The oldest work of the stream has been done.
  void on_done(int stream);

  std::size_t blocks_out() const { return blocks_.size(); }
  /// Neither destroyed nor aborted.
  std::size_t communicators_out() const { return communicators_out_; }
  /// Empty: none.
  const std::string& objection() const { return objection_; }

 private:
  struct Range {
    std::size_t bytes = 0;
    bool cut = false;  // into blocks; then only those that are out may be used
  };
  struct Group {
    std::vector<std::uint64_t> order;        // as the first member to get there had it
    std::map<int, std::size_t> enqueued_by;  // members: how much
  };

  void check_memory(const DoubleWork& work, const DoubleAccess& access);
  void check_unused(const void* memory, std::size_t bytes, const std::string& what);

  std::map<const std::byte*, Range> allocations_;
  std::map<const std::byte*, std::size_t> blocks_;  // that are out
  std::map<int, std::vector<DoubleWork>> streams_;  // what each still holds
  std::map<int, Group> groups_;
  std::size_t communicators_out_ = 0;
  std::string objection_;
};

}  // namespace rrfp
