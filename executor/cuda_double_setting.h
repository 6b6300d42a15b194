// How the double is told to be another device than it is by default: words in
// the environment, looked at on every use so that a test may change them.
//
//  RRFP_DOUBLE_DEVICES=8: that many devices, 0 to 64; 1 by default. Device 1 of
//    one process is device 1 of another.
//  RRFP_DOUBLE_WITHOUT, words with commas between them:
//    memops: a driver whose streams do not write to memory.
//  RRFP_DOUBLE_WITH, likewise:
//    green-contexts: a driver that can confine streams to some SMs.
//    late-sends: a send of NCCL of any size waits until it was received.
//    nccl-2.21: an NCCL that cannot abort communicators as a group.
//  RRFP_DOUBLE_FAULT: a call that fails, or in which the process is killed
//    (cuda_double_fault.h).
//  RRFP_DOUBLE_SLOW_COPIES, RRFP_DOUBLE_CONTENTION_PERCENT: a device whose
//    copies, or kernels beside each other, take longer (cuda_double_runtime.cc,
//    cuda_double_launchers.cc).
//
// Thread safety: any, as long as nothing changes the environment meanwhile.
#pragma once

#include <cstdlib>
#include <string>

namespace rrfp {

/// Whether `word` is one of those in the variable.
inline bool double_is_set(const char* variable, const std::string& word) {
  const char* found = std::getenv(variable);
  return found != nullptr &&
         ("," + std::string(found) + ",").find("," + word + ",") != std::string::npos;
}

}  // namespace rrfp
