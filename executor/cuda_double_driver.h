// The driver functions of the double, by name, as a program looks them up.
//
// RRFP_DOUBLE_WITHOUT=memops: a driver whose streams do not write to memory.
// RRFP_DOUBLE_WITH=green-contexts: one that can confine streams to some SMs.
// RRFP_DOUBLE_SLOW_COPIES, RRFP_DOUBLE_CONTENTION_PERCENT: a device whose
// copies, or kernels beside each other, take longer (cuda_double_runtime.cc,
// cuda_double_launchers.cc).
//
// Thread safety: any.
#pragma once

#include <string>

namespace rrfp {

inline constexpr int kDoubleSms = 132;

class DoubleStream;

/// Null where the double has none of that name.
void* double_driver_function(const std::string& name);

/// It is about to be destroyed; its green context, if any, may go now.
void forget_double_stream(const DoubleStream* stream);

/// What has been objected to. Stays until the thread asks again.
const char* double_objection_text();

}  // namespace rrfp
