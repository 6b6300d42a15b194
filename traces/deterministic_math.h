// exp, log, sine and the normal quantile, the same on every machine. The C library
// promises no last digit, so two machines would draw two worlds; these use only
// IEEE additions, multiplications, divisions and square roots, which are exact
// to the last bit everywhere. (The room is compiled without contraction of
// a * b + c, which would round differently where the machine has such an
// instruction.)
//
// Thread safety: pure functions.
#pragma once

namespace rrfp {

/// e^x with a relative error below 1e-15 for |x| <= 100; 0 and infinity beyond
/// the range of double.
double deterministic_exp(double x);

/// The natural logarithm with a relative error below 1e-15, or an absolute one
/// below 1e-16 near 1. REQUIRES: x is positive, finite and normal.
double deterministic_log(double x);

/// The z below which a standard normal falls with probability `p`: algorithm
/// AS 241, PPND16 (Wichura, Applied Statistics 37, 1988), relative error about
/// 1e-15. REQUIRES: 0 < p < 1.
double normal_quantile(double p);

/// sin(2 pi turns) with an absolute error below 1e-15 for 0 <= turns <= 2^20.
double sine_of_turns(double turns);

}  // namespace rrfp
