// A JSON value in memory: what the reader yields and the writer prints.
//
// Invariants
//  1. An integer is written without fraction and exponent and fits int64. Any
//     other number is a Decimal: its text as written, so that nothing is lost
//     before somebody asks for it in a unit.
//  2. Members of an object keep the order of the file.
//  3. A value takes 16 bytes, so that arrays of numbers stay small.
//
// Thread safety: as a container; const access may be shared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rrfp {

class JsonValue;

using JsonArray = std::vector<JsonValue>;

/// A number with a fraction or an exponent, e.g. "18.522" or "1e3".
struct Decimal {
  std::string text;

  friend bool operator==(const Decimal&, const Decimal&) = default;
};

/// One key and its value. Keys of one object differ where the reader made it.
struct JsonMember;
using JsonObject = std::vector<JsonMember>;

class JsonValue {
 public:
  JsonValue() = default;  ///< null
  explicit JsonValue(bool value) : state_(value) {}
  explicit JsonValue(std::int64_t value) : state_(value) {}
  explicit JsonValue(int value) : state_(std::int64_t{value}) {}
  explicit JsonValue(Decimal value) : state_(std::make_unique<Decimal>(std::move(value))) {}
  explicit JsonValue(std::string value) : state_(std::make_unique<std::string>(std::move(value))) {}
  explicit JsonValue(std::string_view value) : JsonValue(std::string(value)) {}
  explicit JsonValue(const char* value) : JsonValue(std::string(value)) {}
  explicit JsonValue(JsonArray items);
  explicit JsonValue(JsonObject members);

  JsonValue(const JsonValue& other);
  JsonValue& operator=(const JsonValue& other);
  JsonValue(JsonValue&&) noexcept = default;
  JsonValue& operator=(JsonValue&&) noexcept = default;
  ~JsonValue() = default;

  bool is_null() const { return std::holds_alternative<std::monostate>(state_); }

  // Null where the value is of another kind.
  const bool* boolean() const { return std::get_if<bool>(&state_); }
  const std::int64_t* integer() const { return std::get_if<std::int64_t>(&state_); }
  const Decimal* decimal() const { return pointee<Decimal>(); }
  const std::string* string() const { return pointee<std::string>(); }
  const JsonArray* array() const { return pointee<JsonArray>(); }
  const JsonObject* object() const { return pointee<JsonObject>(); }
  JsonArray* array() { return const_cast<JsonArray*>(std::as_const(*this).array()); }
  JsonObject* object() { return const_cast<JsonObject*>(std::as_const(*this).object()); }

  /// The member of that name; null where there is none or this is no object.
  const JsonValue* find(std::string_view key) const;
  JsonValue* find(std::string_view key) {
    return const_cast<JsonValue*>(std::as_const(*this).find(key));
  }
  /// Adds a member at the end. REQUIRES: an object without `key`.
  void add(std::string_view key, JsonValue value);

  /// For messages: "null", "true", "17", "\"text\"", "an array of 3", "an object".
  std::string describe() const;

  friend bool operator==(const JsonValue& a, const JsonValue& b);

 private:
  template <typename T>
  const T* pointee() const {
    const std::unique_ptr<T>* held = std::get_if<std::unique_ptr<T>>(&state_);
    return held == nullptr ? nullptr : held->get();
  }

  std::variant<std::monostate, bool, std::int64_t, std::unique_ptr<Decimal>,
               std::unique_ptr<std::string>, std::unique_ptr<JsonArray>,
               std::unique_ptr<JsonObject>>
      state_;
};

struct JsonMember {
  std::string key;
  JsonValue value;

  friend bool operator==(const JsonMember&, const JsonMember&) = default;
};

}  // namespace rrfp
