// Reads a JsonValue field by field with errors a person can act on.
//
// The first thing that is wrong is kept by the JsonErrors that all cursors of
// one document share; from then on every cursor yields harmless defaults. So a
// reader asks for its fields in a row and looks at the error once, before it
// uses what it read for anything that must make sense.
//
// Invariants
//  1. Only the first error is kept.
//  2. After an error numbers are the least allowed, texts and arrays empty.
//  3. A message is `file: pointer: found ...; expected ...`.
//
// Thread safety: one document, one thread. The document must outlive both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler_core/check.h"
#include "scheduler_core/result.h"
#include "traces/json_reader.h"
#include "traces/json_value.h"

namespace rrfp {

/// The first error met in one document.
class JsonErrors {
 public:
  explicit JsonErrors(std::string file) : file_(std::move(file)) {}

  bool ok() const { return status_.ok(); }
  const Result<void>& status() const { return status_; }
  /// Kept where it is the first.
  void add(const std::string& pointer, const std::string& what);

 private:
  std::string file_;
  Result<void> status_;
};

/// Both ends are allowed.
struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

/// A word of a file and what it stands for.
template <typename T>
struct Choice {
  std::string_view word;
  T value;
};

/// The word for `value`, to write it. REQUIRES: it is one of the choices.
template <typename T, std::size_t kCount>
std::string_view to_word(const Choice<T> (&choices)[kCount], T value) {
  for (const Choice<T>& choice : choices) {
    if (choice.value == value) return choice.word;
  }
  RRFP_CHECK(false);
}

class JsonCursor {
 public:
  JsonCursor(JsonErrors& errors, const JsonValue& value, std::string pointer = {})
      : errors_(&errors), value_(&value), pointer_(std::move(pointer)) {}

  bool ok() const { return errors_->ok(); }
  const JsonValue& value() const { return *value_; }
  const std::string& pointer() const { return pointer_; }
  void fail(const std::string& what) const { errors_->add(pointer_, what); }
  /// "found <this>; expected <what>".
  void expected(const std::string& what) const;

  /// Says that this is an object with no other keys than these.
  void only_keys(std::initializer_list<std::string_view> keys) const {
    only_keys(std::span(keys.begin(), keys.size()));
  }
  void only_keys(std::span<const std::string_view> keys) const;
  /// A member that must be there.
  JsonCursor at(std::string_view key) const;
  /// A member that may be absent; also absent after an error.
  std::optional<JsonCursor> find(std::string_view key) const;

  std::int64_t integer(IntegerRange range = {}) const;
  int small_integer(int least, int most) const { return static_cast<int>(integer({least, most})); }
  bool boolean() const;
  std::string string() const;
  /// One of a few words; the error lists them, and names the nearest.
  template <typename T, std::size_t kCount>
  T choice(const Choice<T> (&choices)[kCount]) const {
    std::array<std::string_view, kCount> words;
    for (std::size_t i = 0; i < kCount; ++i) words[i] = choices[i].word;
    return choices[word(words)].value;
  }

  /// The elements of an array; empty where it is none.
  std::vector<JsonCursor> items() const;
  /// The same where there must be `count`, one per `what`.
  std::vector<JsonCursor> items(std::size_t count, std::string_view what) const;
  /// Appends an array of integers that must have `count`, one per `what`.
  void append_integers(std::vector<std::int64_t>& out, std::size_t count, std::string_view what,
                       IntegerRange range = {}) const;
  /// [rows][columns], flattened; nothing is allocated before the shape is
  /// known to be right.
  std::vector<std::int64_t> table(std::size_t rows, std::string_view row, std::size_t columns,
                                  std::string_view column, IntegerRange range = {}) const;

  // What an optional member says, or what holds in its absence.
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise,
                          IntegerRange range = {}) const;
  bool boolean_or(std::string_view key, bool otherwise) const;
  std::string string_or(std::string_view key, std::string_view otherwise) const;

 private:
  JsonCursor element(std::size_t index) const;
  const JsonArray* array(std::size_t count, std::string_view what) const;
  /// The index of this text in `words`; 0 after an error.
  std::size_t word(std::span<const std::string_view> words) const;

  JsonErrors* errors_;
  const JsonValue* value_;
  std::string pointer_;
};

}  // namespace rrfp
