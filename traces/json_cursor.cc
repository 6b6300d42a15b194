#include "traces/json_cursor.h"

#include <algorithm>

#include "scheduler_core/nearest.h"

namespace rrfp {

namespace {

const JsonValue kNothing;

std::string describe(IntegerRange range) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (range.most == kMost) return "an integer of at least " + std::to_string(range.least);
  return "an integer from " + std::to_string(range.least) + " to " + std::to_string(range.most);
}

bool within(IntegerRange range, std::int64_t number) {
  return number >= range.least && number <= range.most;
}

std::string listed(std::span<const std::string_view> words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += '"';
    text += word;
    text += '"';
  }
  return text;
}

}  // namespace

void JsonErrors::add(const std::string& pointer, const std::string& what) {
  if (!status_.ok()) return;
  status_ = Error{file_ + ": " + (pointer.empty() ? "top level" : pointer) + ": " + what};
}

void JsonCursor::expected(const std::string& what) const {
  fail("found " + value_->describe() + "; expected " + what);
}

void JsonCursor::only_keys(std::span<const std::string_view> keys) const {
  if (!ok()) return;
  const JsonObject* members = value_->object();
  if (members == nullptr) return expected("an object with the keys " + listed(keys));
  for (const JsonMember& member : *members) {
    if (std::find(keys.begin(), keys.end(), member.key) != keys.end()) continue;
    return fail("unknown key " + in_quotes(member.key) + "; did you mean \"" +
                nearest(member.key, keys) + "\"? Known are " + listed(keys));
  }
}

JsonCursor JsonCursor::at(std::string_view key) const {
  const JsonValue* member = value_->find(key);
  if (member == nullptr && ok()) {
    if (value_->object() == nullptr) {
      expected("an object");
    } else {
      fail("the key \"" + std::string(key) + "\" is missing");
    }
  }
  return JsonCursor(*errors_, member == nullptr ? kNothing : *member, json_pointer(pointer_, key));
}

std::optional<JsonCursor> JsonCursor::find(std::string_view key) const {
  const JsonValue* member = ok() ? value_->find(key) : nullptr;
  if (member == nullptr) return std::nullopt;
  return JsonCursor(*errors_, *member, json_pointer(pointer_, key));
}

std::int64_t JsonCursor::integer(IntegerRange range) const {
  if (!ok()) return range.least;
  const std::int64_t* number = value_->integer();
  if (number != nullptr && within(range, *number)) return *number;
  expected(describe(range) +
           (value_->decimal() == nullptr ? "" : ", written without fraction and exponent"));
  return range.least;
}

bool JsonCursor::boolean() const {
  if (!ok()) return false;
  if (const bool* flag = value_->boolean()) return *flag;
  expected("true or false");
  return false;
}

std::string JsonCursor::string() const {
  if (!ok()) return {};
  if (const std::string* text = value_->string()) return *text;
  expected("a text in double quotes");
  return {};
}

std::size_t JsonCursor::word(std::span<const std::string_view> words) const {
  if (!ok()) return 0;
  const std::string* text = value_->string();
  if (text == nullptr) {
    expected("one of " + listed(words));
    return 0;
  }
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  expected("one of " + listed(words) + "; did you mean \"" + nearest(*text, words) + "\"?");
  return 0;
}

JsonCursor JsonCursor::element(std::size_t index) const {
  return JsonCursor(*errors_, (*value_->array())[index],
                    json_pointer(pointer_, std::to_string(index)));
}

std::vector<JsonCursor> JsonCursor::items() const {
  std::vector<JsonCursor> list;
  if (!ok()) return list;
  const JsonArray* array = value_->array();
  if (array == nullptr) {
    expected("an array");
    return list;
  }
  list.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i) list.push_back(element(i));
  return list;
}

const JsonArray* JsonCursor::array(std::size_t count, std::string_view what) const {
  if (!ok()) return nullptr;
  const JsonArray* array = value_->array();
  if (array != nullptr && array->size() == count) return array;
  expected("an array of " + std::to_string(count) + ", one per " + std::string(what));
  return nullptr;
}

std::vector<JsonCursor> JsonCursor::items(std::size_t count, std::string_view what) const {
  return array(count, what) == nullptr ? std::vector<JsonCursor>() : items();
}

void JsonCursor::append_integers(std::vector<std::int64_t>& out, std::size_t count,
                                 std::string_view what, IntegerRange range) const {
  const JsonArray* numbers = array(count, what);
  if (numbers == nullptr) return;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t* number = (*numbers)[i].integer();
    out.push_back(number != nullptr && within(range, *number) ? *number
                                                              : element(i).integer(range));
  }
}

std::vector<std::int64_t> JsonCursor::table(std::size_t rows, std::string_view row,
                                            std::size_t columns, std::string_view column,
                                            IntegerRange range) const {
  std::vector<std::int64_t> numbers;
  const JsonArray* list = array(rows, row);
  if (list == nullptr) return numbers;
  for (std::size_t i = 0; i < rows; ++i) {
    const JsonArray* inner = (*list)[i].array();
    if (inner != nullptr && inner->size() == columns) continue;
    element(i).array(columns, column);
    return numbers;
  }
  numbers.reserve(rows * columns);
  for (std::size_t i = 0; i < rows && ok(); ++i) {
    element(i).append_integers(numbers, columns, column, range);
  }
  return numbers;
}

std::int64_t JsonCursor::integer_or(std::string_view key, std::int64_t otherwise,
                                    IntegerRange range) const {
  const std::optional<JsonCursor> member = find(key);
  return member ? member->integer(range) : otherwise;
}

bool JsonCursor::boolean_or(std::string_view key, bool otherwise) const {
  const std::optional<JsonCursor> member = find(key);
  return member ? member->boolean() : otherwise;
}

std::string JsonCursor::string_or(std::string_view key, std::string_view otherwise) const {
  const std::optional<JsonCursor> member = find(key);
  return member ? member->string() : std::string(otherwise);
}

}  // namespace rrfp
