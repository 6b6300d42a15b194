// One event of a PyTorch profiler (Kineto) file, from its raw members.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "traces/loose_json.h"

namespace rrfp {

/// By its category, whose words were renamed over the years.
enum class KinetoSort : std::uint8_t {
  kAnnotation,        ///< user_annotation, cpu_op, Operator, python_function
  kDeviceAnnotation,  ///< gpu_user_annotation
  kLaunch,            ///< cuda_runtime, cuda_driver, Runtime, hip_runtime
  kKernel,            ///< kernel, Kernel
  kWhole,             ///< Trace: as long as the profiler recorded
  kOther,             ///< flows, metadata, memory copies, ...
};

struct KinetoEvent {
  KinetoSort sort = KinetoSort::kOther;
  std::string_view name;     ///< with its quotes
  std::string_view process;  ///< without quotes; "" where there is none
  std::string_view thread;   ///< the same
  std::int64_t start_ns = 0;
  std::int64_t length_ns = 0;
  std::optional<std::uint64_t> correlation;
  std::string_view group_name;    ///< of the process group of a collective, without quotes
  std::string_view group_ranks;   ///< a list in JSON, sometimes cut with "..."
  const char* problem = nullptr;  ///< why it cannot be used, or null
};

/// An event that is no complete one ("ph": "X") is kOther.
KinetoEvent read_kineto_event(std::span<const LooseMember> members);

/// A decimal number of microseconds, also in quotes, in ns; rounded half away
/// from 0. Exact, unlike a double, which has 256 ns of grain at today's date.
/// Nothing where it is no number or above 2^61 ns.
std::optional<std::int64_t> microseconds_to_ns(std::string_view value);

/// A whole number, also in quotes, that fits.
std::optional<std::uint64_t> whole_u64(std::string_view value);
std::optional<std::int64_t> whole_i64(std::string_view value);

}  // namespace rrfp
