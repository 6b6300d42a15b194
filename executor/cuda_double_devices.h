// The devices of the double, as many as RRFP_DOUBLE_DEVICES says. They differ in
// nothing but their numbers: memory and streams are of the one DoubleMachine.
//
// Thread safety: any.
#pragma once

namespace rrfp {

inline constexpr int kDoubleSms = 132;

/// What the calling thread has set; 0 at first, as on hardware.
int current_double_device();

}  // namespace rrfp
