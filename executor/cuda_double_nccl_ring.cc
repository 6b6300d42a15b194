#include "executor/cuda_double_nccl_ring.h"

#include <algorithm>
#include <cstring>

namespace rrfp {

namespace {

// By the numbers of ncclDataType_t.
constexpr const char* kTypeNames[] = {"int8",    "uint8",    "int32",      "uint32",
                                      "int64",   "uint64",   "float16",    "float32",
                                      "float64", "bfloat16", "float8e4m3", "float8e5m2"};

}  // namespace

std::string DoubleNcclHead::describe_size() const {
  const bool known = datatype < std::size(kTypeNames);
  return std::to_string(bytes) + " bytes of " + (known ? kTypeNames[datatype] : "no known type");
}

std::size_t DoubleNcclRing::put(const void* from, std::size_t most) {
  const std::size_t count = std::min(most, room());
  const std::uint64_t begin = put_.load(std::memory_order_relaxed);
  const std::size_t at = static_cast<std::size_t>(begin % kBytes);
  const std::size_t straight = std::min(count, kBytes - at);
  std::memcpy(bytes_ + at, from, straight);
  std::memcpy(bytes_, static_cast<const std::byte*>(from) + straight, count - straight);
  put_.store(begin + count, std::memory_order_release);
  return count;
}

std::size_t DoubleNcclRing::take(void* to, std::size_t most) {
  const std::size_t count = std::min(most, filled());
  const std::uint64_t begin = taken_.load(std::memory_order_relaxed);
  const std::size_t at = static_cast<std::size_t>(begin % kBytes);
  const std::size_t straight = std::min(count, kBytes - at);
  std::memcpy(to, bytes_ + at, straight);
  std::memcpy(static_cast<std::byte*>(to) + straight, bytes_, count - straight);
  taken_.store(begin + count, std::memory_order_release);
  return count;
}

}  // namespace rrfp
