// Before processes do something together: can each of them, and do all mean the
// same? One that found that it cannot, and left, would let the others wait for
// it; one that was started with other options would compute something else.
//
// All processes call each of these functions at the same point.
//
// Thread safety: one thread per process.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/lane_exchange.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// Something that all processes of a job must have alike: "--seed", "7".
struct Term {
  std::string name;
  std::optional<std::string> value;  ///< none: is not given; empty: a flag that is

  friend bool operator==(const Term&, const Term&) = default;
};

/// In an order that depends on no value but those of the first terms: where
/// these are alike, the names of the others are.
using Terms = std::vector<Term>;

/// Stands for a text in a term: its size and a fingerprint.
std::string describe_content(std::string_view text);

/// Why not all of them can go on: the first that cannot and its reason, in the
/// same words for all. Empty: all can. The error is that they could not ask.
Result<std::string> shared_reason(LaneExchange& everyone, const Result<void>& mine);

/// The first term that is not alike, and in which process, in the same words
/// for all. Empty: all are. The error is that they could not ask.
Result<std::string> shared_difference(LaneExchange& everyone, const Terms& mine);

/// That all can go on; the error is either of those of shared_reason().
Result<void> agree(LaneExchange& everyone, const Result<void>& mine);

/// What the kernel of this host calls its present boot: hosts that have one name
/// differ in it, containers of one host do not. Empty where it cannot be read.
std::string boot_id();

/// A process among those of its host.
struct HostShare {
  int processes = 1;  ///< there, itself included
  int before = 0;     ///< with a lower number than its own
};

/// Of `process`, which is this one.
Result<HostShare> share_of_host(LaneExchange& everyone, int process);

}  // namespace rrfp
