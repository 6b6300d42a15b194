#include "traces/json_reader.h"

#include <algorithm>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "scheduler_core/nearest.h"

namespace rrfp {

namespace {

// Bytes of a message that did not come from this library: printable, not long.
std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 300;
  std::string out;
  for (const char c : text.substr(0, kLongest)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > kLongest) out += "...";
  return out;
}

// Builds a JsonValue from the events of nlohmann's parser.
//
// `open_` holds the containers that have not ended, outermost first. They are
// values, not pointers into each other, so that growing one moves no other.
class Builder {
 public:
  explicit Builder(const std::string& file) : file_(file) {}

  bool null() { return put(JsonValue()); }
  bool boolean(bool value) { return put(JsonValue(value)); }
  bool number_integer(std::int64_t value) { return put(JsonValue(value)); }
  bool number_unsigned(std::uint64_t value) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
    if (value > kMost) return too_large(std::to_string(value));
    return put(JsonValue(static_cast<std::int64_t>(value)));
  }
  bool number_float(double, const std::string& text) {
    // The parser turns an integer that fits no 64 bits into a float.
    if (text.find_first_of(".eE") == std::string::npos) return too_large(text);
    return put(JsonValue(Decimal{text}));
  }
  bool string(std::string& text) { return put(JsonValue(std::move(text))); }
  bool binary(const std::vector<std::uint8_t>&) { return fail("binary values do not exist here"); }

  bool start_array(std::size_t) { return open(JsonValue(JsonArray())); }
  bool start_object(std::size_t) { return open(JsonValue(JsonObject())); }
  bool key(std::string& text) {
    open_.back().key = std::move(text);
    return true;
  }
  bool end_array() { return close(); }
  bool end_object() {
    const JsonObject& members = *open_.back().value.object();
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const JsonMember& member : members) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) {
      error_ = {file_ + ": " + pointer(open_.size()) + ": the key " + in_quotes(*twice) +
                " stands there twice; each key may be given once"};
      return false;
    }
    return close();
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& cause) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    std::string_view what = cause.what();
    if (what.find("number overflow") != std::string_view::npos) {
      return fail("a number is too large for a double" +
                  printable(what.substr(std::min(what.size(), what.rfind(" '")))));
    }
    const std::size_t bracket = what.find("] ");
    if (bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
    error_ = {file_ + ": " + printable(what)};
    return false;
  }

  const Error& error() const { return error_; }
  JsonValue take_root() { return std::move(root_); }

 private:
  struct Open {
    JsonValue value;
    std::string key;  ///< the member being read, in an object
  };

  // The pointer to what is being read in the first `levels` open containers.
  std::string pointer(std::size_t levels) const {
    std::string path;
    for (std::size_t i = 0; i + 1 < levels; ++i) path = json_pointer(path, token(open_[i]));
    return path.empty() ? "top level" : path;
  }
  static std::string token(const Open& open) {
    const JsonArray* items = open.value.array();
    return items == nullptr ? open.key : std::to_string(items->size());
  }

  bool fail(const std::string& what) {
    error_ = {file_ + ": " + pointer(open_.size() + 1) + ": " + what};
    return false;
  }
  bool too_large(const std::string& text) {
    return fail("found " + printable(text.substr(0, 64)) +
                "; an integer may be at most 9223372036854775807 in size");
  }

  bool open(JsonValue container) {
    if (open_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
      return fail("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
    }
    open_.push_back({std::move(container), {}});
    return true;
  }
  bool close() {
    JsonValue done = std::move(open_.back().value);
    open_.pop_back();
    return put(std::move(done));
  }
  bool put(JsonValue value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (JsonArray* items = open_.back().value.array()) {
      items->push_back(std::move(value));
    } else {
      open_.back().value.add(open_.back().key, std::move(value));
    }
    return true;
  }

  const std::string& file_;
  std::vector<Open> open_;
  JsonValue root_;
  Error error_;
};

}  // namespace

std::string json_pointer(const std::string& pointer, std::string_view token) {
  std::string out = pointer + '/';
  const std::string shown = in_quotes(token);
  for (const char c : std::string_view(shown).substr(1, shown.size() - 2)) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

Result<JsonDocument> read_json_file(const std::string& path, const JsonOptions& options) {
  Result<std::string> text = read_text_file(path, options.limit_bytes);
  if (!text.ok()) return text.error();
  return parse_json(*text, path, options);
}

Result<JsonDocument> parse_json(std::string_view text, std::string file,
                                const JsonOptions& options) {
  if (text.size() > options.limit_bytes) return file_too_big(file, options.limit_bytes);
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return Error{file + ": is empty; a JSON object is needed"};
  }
  Builder builder(file);
  try {
    if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder,
                                   nlohmann::json::input_format_t::json, true, options.comments)) {
      return builder.error();
    }
  } catch (const std::bad_alloc&) {
    return Error{file + ": not enough memory to read it"};
  }
  return JsonDocument{std::move(file), builder.take_root()};
}

}  // namespace rrfp
