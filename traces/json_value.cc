#include "traces/json_value.h"

#include "scheduler_core/check.h"
#include "scheduler_core/nearest.h"

namespace rrfp {

static_assert(sizeof(JsonValue) == 16);

JsonValue::JsonValue(JsonArray items) : state_(std::make_unique<JsonArray>(std::move(items))) {}

JsonValue::JsonValue(JsonObject members)
    : state_(std::make_unique<JsonObject>(std::move(members))) {}

JsonValue::JsonValue(const JsonValue& other) { *this = other; }

JsonValue& JsonValue::operator=(const JsonValue& other) {
  if (this == &other) return *this;
  if (const bool* flag = other.boolean()) {
    state_ = *flag;
  } else if (const std::int64_t* number = other.integer()) {
    state_ = *number;
  } else if (const Decimal* decimal = other.decimal()) {
    state_ = std::make_unique<Decimal>(*decimal);
  } else if (const std::string* text = other.string()) {
    state_ = std::make_unique<std::string>(*text);
  } else if (const JsonArray* items = other.array()) {
    state_ = std::make_unique<JsonArray>(*items);
  } else if (const JsonObject* members = other.object()) {
    state_ = std::make_unique<JsonObject>(*members);
  } else {
    state_ = std::monostate();
  }
  return *this;
}

const JsonValue* JsonValue::find(std::string_view key) const {
  const JsonObject* members = object();
  if (members == nullptr) return nullptr;
  for (const JsonMember& member : *members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

void JsonValue::add(std::string_view key, JsonValue value) {
  JsonObject* members = object();
  RRFP_CHECK(members != nullptr);
  members->push_back({std::string(key), std::move(value)});
}

std::string JsonValue::describe() const {
  if (const bool* flag = boolean()) return *flag ? "true" : "false";
  if (const std::int64_t* number = integer()) return std::to_string(*number);
  if (const Decimal* number = decimal()) return number->text.substr(0, 64);
  if (const std::string* text = string()) return in_quotes(*text);
  if (const JsonArray* items = array()) return "an array of " + std::to_string(items->size());
  return object() != nullptr ? "an object" : "null";
}

bool operator==(const JsonValue& a, const JsonValue& b) {
  if (a.state_.index() != b.state_.index()) return false;
  if (a.decimal() != nullptr) return *a.decimal() == *b.decimal();
  if (a.string() != nullptr) return *a.string() == *b.string();
  if (a.array() != nullptr) return *a.array() == *b.array();
  if (a.object() != nullptr) return *a.object() == *b.object();
  return a.state_ == b.state_;
}

}  // namespace rrfp
