// Distributions in scenario files: an object of one member such as
// {"uniform": [1, 1.2]}, or a number for what is always the same.
//
// Invariants
//  1. What is read again after it was written is the same, to the last bit.
//
// Thread safety: pure functions.
#pragma once

#include <span>
#include <string_view>

#include "traces/distribution.h"
#include "traces/json_cursor.h"

namespace rrfp {

/// The members that a distribution can be.
std::span<const std::string_view> distribution_keys();

/// Numbers up to `most`, times `scale`.
Distribution read_distribution(const JsonCursor& in, double most, double scale = 1);

/// The same where the one member may stand among others of the object `in`.
/// The error lists the members that it can be.
Distribution read_distribution_member(const JsonCursor& in, double most, double scale = 1);

/// Whether `in` has such a member.
bool has_distribution_member(const JsonCursor& in);

/// An object of one member.
JsonValue distribution_to_json(const Distribution& distribution);

}  // namespace rrfp
