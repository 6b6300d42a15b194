#include "executor/model_spec.h"

#include <string>

namespace rrfp {

namespace {

Result<void> refuse(const char* field, int value, const std::string& allowed) {
  return Error{std::string("model: ") + field + " is " + std::to_string(value) + "; " + allowed};
}

}  // namespace

Result<void> check(const ModelSpec& spec) {
  const struct {
    const char* name;
    int value;
  } positive[] = {{"width", spec.width},   {"heads", spec.heads},     {"mlp_width", spec.mlp_width},
                  {"blocks", spec.blocks}, {"longest", spec.longest}, {"lanes", spec.lanes}};
  for (const auto& field : positive) {
    if (field.value < 1) return refuse(field.name, field.value, "it must be at least 1");
  }
  if (spec.width % spec.heads != 0) {
    return refuse("heads", spec.heads, "it must divide width, " + std::to_string(spec.width));
  }
  if (spec.heads % spec.lanes != 0) {
    return refuse("lanes", spec.lanes, "it must divide heads, " + std::to_string(spec.heads));
  }
  if (spec.mlp_width % spec.lanes != 0) {
    return refuse("lanes", spec.lanes,
                  "it must divide mlp_width, " + std::to_string(spec.mlp_width));
  }
  return {};
}

}  // namespace rrfp
