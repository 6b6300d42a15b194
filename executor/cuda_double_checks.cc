#include "executor/cuda_double_checks.h"

namespace rrfp {

namespace {

const std::byte* to_bytes(const void* memory) { return static_cast<const std::byte*>(memory); }

// The entry of an ordered map of ranges that `address` lies in, by its begin.
template <typename Map>
auto range_of(Map& map, const std::byte* address) {
  auto after = map.upper_bound(address);
  return after == map.begin() ? map.end() : std::prev(after);
}

std::string in_stream(int stream) { return " in stream " + std::to_string(stream); }

}  // namespace

void DoubleChecks::object(const std::string& text) {
  if (objection_.empty()) objection_ = "the double objects: " + text;
}

void DoubleChecks::on_allocated(const void* memory, std::size_t bytes) {
  allocations_[to_bytes(memory)] = {bytes, false};
}

void DoubleChecks::on_freed(const void* memory) {
  const auto found = allocations_.find(to_bytes(memory));
  if (found == allocations_.end()) return object("memory is freed that is not allocated");
  check_unused(memory, found->second.bytes, "memory is freed");
  blocks_.erase(blocks_.lower_bound(found->first),
                blocks_.lower_bound(found->first + found->second.bytes));
  allocations_.erase(found);
}

std::size_t DoubleChecks::bytes_of(const void* memory) const {
  const auto found = allocations_.find(to_bytes(memory));
  return found == allocations_.end() ? 0 : found->second.bytes;
}

void DoubleChecks::on_block_taken(const void* block, std::size_t bytes) {
  const auto memory = range_of(allocations_, to_bytes(block));
  if (memory == allocations_.end() ||
      to_bytes(block) + bytes > memory->first + memory->second.bytes) {
    return object("a block is taken that is not in allocated memory");
  }
  memory->second.cut = true;
  if (!blocks_.emplace(to_bytes(block), bytes).second) object("a block is taken twice");
}

void DoubleChecks::on_block_returned(const void* block) {
  const auto found = blocks_.find(to_bytes(block));
  if (found == blocks_.end()) return object("a block is returned that is not out");
  check_unused(block, found->second, "a block is returned");
  blocks_.erase(found);
}

void DoubleChecks::on_group_work(int group, int member, std::uint64_t work) {
  Group& of = groups_[group];
  std::size_t& count = of.enqueued_by[member];
  if (count == of.order.size()) of.order.push_back(work);
  if (of.order[count] != work) {
    object("member " + std::to_string(member) + " of group " + std::to_string(group) +
           " enqueues work " + std::to_string(work) + " as number " + std::to_string(count) +
           ", where another member has enqueued work " + std::to_string(of.order[count]));
  }
  ++count;
}

void DoubleChecks::on_context_lost() { object("a green context is destroyed before its streams"); }

// One that is given back after a reset is no longer counted.
void DoubleChecks::on_communicator_given_back() {
  if (communicators_out_ > 0) --communicators_out_;
}

void DoubleChecks::check_unused(const void* memory, std::size_t bytes, const std::string& what) {
  const DoubleAccess all{to_bytes(memory), bytes, true};
  for (const auto& [stream, held] : streams_) {
    for (const DoubleWork& work : held) {
      for (const DoubleAccess& access : work.accesses) {
        if (access.conflicts_with(all)) {
          return object(what + " that " + work.name + in_stream(stream) +
                        " has yet to finish with");
        }
      }
    }
  }
}

void DoubleChecks::check_memory(const DoubleWork& work, const DoubleAccess& access) {
  const auto memory = range_of(allocations_, access.begin);
  if (memory == allocations_.end() || access.end() > memory->first + memory->second.bytes) {
    return object(work.name + " uses memory that is not allocated");
  }
  if (!memory->second.cut) return;
  const auto block = range_of(blocks_, access.begin);
  if (block == blocks_.end() || access.end() > block->first + block->second) {
    object(work.name + " uses a block after it was returned");
  }
}

void DoubleChecks::on_enqueued(int stream, const DoubleWork& work) {
  for (const DoubleAccess& access : work.accesses) {
    check_memory(work, access);
    for (const auto& [other, held] : streams_) {
      if (other == stream) continue;
      for (const DoubleWork& earlier : held) {
        for (const DoubleAccess& theirs : earlier.accesses) {
          if (!access.conflicts_with(theirs)) continue;
          object(work.name + in_stream(stream) + " uses what " + earlier.name + in_stream(other) +
                 " has yet to finish with");
        }
      }
    }
  }
  std::vector<DoubleWork>& held = streams_[stream];
  held.push_back(work);
  if (held.size() > kMostQueued) {
    object("work piles up" + in_stream(stream) + ": " + std::to_string(held.size()) +
           " pieces wait, the last of them " + work.name);
  }
}

void DoubleChecks::on_done(int stream) {
  std::vector<DoubleWork>& held = streams_[stream];
  held.erase(held.begin());
}

}  // namespace rrfp
