// What `rrfp validate` says of the model, for the tests that hold it to a bound.
#pragma once

#include <algorithm>
#include <string>

#include "traces/json_reader.h"

namespace rrfp {

/// Of what `rrfp validate --json` printed to both outputs: notes stand before the JSON.
inline Result<JsonDocument> validation_in(const std::string& text) {
  const std::size_t after_notes = text.find("\n{\n");
  const bool noted = !text.starts_with("{") && after_notes != std::string::npos;
  return parse_json(noted ? text.substr(after_notes + 1) : text, "output");
}

inline double number_of(const JsonValue& policy, const char* name) {
  return std::stod(policy.find(name)->decimal()->text);
}

/// How many of its iterations had no stall.
inline std::size_t kept_iterations(const JsonValue& policy) {
  return policy.find("iterations")->array()->size();
}

/// That of the iterations without a stall. A stall is among a run's own times, so on a busy machine
/// those that have one will do.
inline double model_error_of(const JsonValue& policy) {
  return number_of(policy, kept_iterations(policy) > 0 ? "model_error" : "model_error_of_dropped");
}

}  // namespace rrfp
