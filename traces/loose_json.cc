#include "traces/loose_json.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

namespace rrfp {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == '\0';
}

/// What may follow a number or a word.
bool ends_scalar(char c) { return is_blank(c) || c == '}' || c == ']' || c == '"' || c == ':'; }

/// A place in a text that may be cut: `at` is null once it ran off the end.
struct Scan {
  const char* at;
  const char* end;

  bool lost() const { return at == nullptr; }
  char here() const { return *at; }

  void lose() { at = nullptr; }

  void blanks() {
    while (at != end && is_blank(*at)) ++at;
    if (at == end) lose();
  }
  /// REQUIRES: at a quote. Ends behind the closing one.
  void string() {
    for (++at; at != end; ++at) {
      if (*at == '"') {
        ++at;
        return;
      }
      if (*at == '\\' && ++at == end) break;
    }
    lose();
  }
  /// REQUIRES: at a bracket. Ends behind the one that closes it. The two sorts
  /// are not told apart: nothing that is read depends on it.
  void nest() {
    int depth = 0;
    while (at != end) {
      const char c = *at;
      if (c == '"') {
        string();
        if (lost()) return;
        continue;
      }
      ++at;
      if (c == '{' || c == '[') ++depth;
      if ((c == '}' || c == ']') && --depth == 0) return;
    }
    lose();
  }
  void value() {
    if (*at == '"') return string();
    if (*at == '{' || *at == '[') return nest();
    while (at != end && !ends_scalar(*at)) ++at;
    if (at == end) lose();
  }
};

enum class Split : std::uint8_t { kWhole, kIncomplete, kWrong };

/// REQUIRES: scan->at is at '{'. Ends behind the closing brace, or where the
/// text is wrong.
Split split(Scan* scan, std::vector<LooseMember>* members, bool nested) {
  ++scan->at;
  while (true) {
    scan->blanks();
    if (scan->lost()) return Split::kIncomplete;
    if (scan->here() == '}') {
      ++scan->at;
      return Split::kWhole;
    }
    if (scan->here() != '"') return Split::kWrong;
    const char* const key = scan->at + 1;
    scan->string();
    if (scan->lost()) return Split::kIncomplete;
    const std::string_view name(key, static_cast<std::size_t>(scan->at - key - 1));
    scan->blanks();
    if (scan->lost()) return Split::kIncomplete;
    if (scan->here() != ':') return Split::kWrong;
    ++scan->at;
    scan->blanks();
    if (scan->lost()) return Split::kIncomplete;
    const char* const value = scan->at;
    const std::size_t own = members->size();
    members->push_back({name, {}, nested});
    if (!nested && scan->here() == '{') {
      const Split inner = split(scan, members, true);
      if (inner != Split::kWhole) return inner;
    } else {
      scan->value();
      if (scan->lost()) return Split::kIncomplete;
      if (scan->at == value) return Split::kWrong;
    }
    (*members)[own].value = std::string_view(value, static_cast<std::size_t>(scan->at - value));
  }
}

}  // namespace

bool split_object(std::string_view text, std::vector<LooseMember>* members) {
  members->clear();
  if (!text.starts_with('{')) return false;
  Scan scan{text.data(), text.data() + text.size()};
  return split(&scan, members, false) == Split::kWhole;
}

std::string_view unquoted(std::string_view value) {
  if (value.size() < 2 || value.front() != '"' || value.back() != '"') return value;
  return value.substr(1, value.size() - 2);
}

std::string unescaped(std::string_view value) {
  const std::string_view inner = unquoted(value);
  if (inner.find('\\') == std::string_view::npos) return std::string(inner);
  const auto parsed = nlohmann::json::parse(value, nullptr, /*allow_exceptions=*/false);
  return parsed.is_string() ? parsed.get<std::string>() : std::string(inner);
}

LooseJsonFile::LooseJsonFile(std::string path, ByteSource source)
    : path_(std::move(path)), source_(std::move(source)), buffer_(kChunkBytes, '\0') {}

Result<LooseJsonFile> LooseJsonFile::open(const std::string& path, ReadProgress progress) {
  Result<ByteSource> source = ByteSource::open(path, std::move(progress));
  if (!source.ok()) return source.error();
  return LooseJsonFile(path, *std::move(source));
}

std::string LooseJsonFile::place() const { return "byte " + std::to_string(item_); }

Error LooseJsonFile::wrong(const std::string& expected) const {
  const char c = buffer_[at_];
  const std::string found = c >= ' ' && c <= '~'
                                ? "'" + std::string(1, c) + "'"
                                : "a byte " + std::to_string(static_cast<unsigned char>(c));
  return Error{path_ + ": byte " + std::to_string(bytes()) + ": found " + found + "; expected " +
               expected};
}

bool LooseJsonFile::refill() {
  if (!damage_.empty()) return false;
  if (at_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
    base_ += static_cast<std::int64_t>(at_);
    end_ -= at_;
    at_ = 0;
  }
  if (end_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  const Result<std::size_t> count = source_.read(buffer_.data() + end_, buffer_.size() - end_);
  if (!count.ok()) {
    damage_ = count.error().message;
    return false;
  }
  end_ += *count;
  return *count > 0;
}

bool LooseJsonFile::skip_blanks() {
  while (true) {
    while (at_ < end_ && is_blank(buffer_[at_])) ++at_;
    if (at_ < end_) return true;
    if (!refill()) return false;
  }
}

LooseJsonFile::Step LooseJsonFile::cut_here(const std::string& inside) {
  cut_ = "ends at byte " + std::to_string(base_ + static_cast<std::int64_t>(end_)) + " inside " +
         inside + (damage_.empty() ? "" : ": " + damage_);
  at_ = end_;
  state_ = State::kEnd;
  return Item::kEnd;
}

Result<LooseJsonFile::Item> LooseJsonFile::next() {
  members_.clear();
  while (true) {
    const Result<Step> step = state_ == State::kStart     ? start()
                              : state_ == State::kMembers ? next_member()
                              : state_ == State::kEvents  ? next_event()
                                                          : Result<Step>(Item::kEnd);
    if (!step.ok()) return step.error();
    if (step->has_value()) return **step;
  }
}

Result<LooseJsonFile::Step> LooseJsonFile::start() {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  while (end_ < kByteOrderMark.size() && refill()) continue;
  if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark)) {
    at_ = kByteOrderMark.size();
  }
  if (!skip_blanks()) {
    return Error{path_ + (damage_.empty() ? ": is empty; expected a trace in JSON"
                                          : ": byte " + std::to_string(bytes()) + ": " + damage_)};
  }
  const char c = buffer_[at_];
  if (c != '{' && c != '[') return wrong("'{' or '[', the start of a trace in JSON");
  ++at_;
  bare_ = c == '[';
  has_events_ = bare_;
  state_ = bare_ ? State::kEvents : State::kMembers;
  return Step();
}

LooseJsonFile::Found LooseJsonFile::read_event() {
  members_.clear();
  Scan scan{buffer_.data() + at_, buffer_.data() + end_};
  switch (split(&scan, &members_, false)) {
    case Split::kWhole:
      at_ = static_cast<std::size_t>(scan.at - buffer_.data());
      return Found::kWhole;
    case Split::kIncomplete:
      return Found::kIncomplete;
    case Split::kWrong:
      at_ = static_cast<std::size_t>(scan.at - buffer_.data());
      return Found::kWrong;
  }
  return Found::kWrong;
}

Result<LooseJsonFile::Step> LooseJsonFile::next_event() {
  while (true) {
    if (!skip_blanks()) return cut_here("the array of events");
    item_ = bytes();
    const char c = buffer_[at_];
    if (c == ']') {
      ++at_;
      state_ = bare_ ? State::kEnd : State::kMembers;
      return Step();
    }
    if (c == '{') {
      Found found = read_event();
      while (found == Found::kIncomplete) {
        if (end_ - at_ >= kMostEventBytes) {
          return wrong("an event of less than " + std::to_string(kMostEventBytes) + " bytes");
        }
        if (!refill()) return cut_here("the event at " + place());
        found = read_event();
      }
      if (found == Found::kWrong) return wrong("a member of the event at " + place());
      return Step(Item::kEvent);
    }
    if (c == '}' || c == ':') return wrong("an event or the end of the array");
    if (!skip_value(false)) return cut_here("the array of events");
    ++other_elements_;
  }
}

LooseJsonFile::Found LooseJsonFile::read_key() {
  Scan scan{buffer_.data() + at_, buffer_.data() + end_};
  const char* const key = scan.at + 1;
  scan.string();
  if (scan.lost()) return Found::kIncomplete;
  key_.assign(key, static_cast<std::size_t>(scan.at - key - 1));
  at_ = static_cast<std::size_t>(scan.at - buffer_.data());
  return Found::kWhole;
}

Result<LooseJsonFile::Step> LooseJsonFile::next_member() {
  if (!skip_blanks()) return cut_here("the outer object");
  item_ = bytes();
  if (buffer_[at_] == '}') {
    ++at_;
    state_ = State::kEnd;
    return Step(Item::kEnd);
  }
  if (buffer_[at_] != '"') return wrong("a key or the end of the outer object");
  while (read_key() == Found::kIncomplete) {
    if (end_ - at_ >= kMostEventBytes) {
      return wrong("a key of less than " + std::to_string(kMostEventBytes) + " bytes");
    }
    if (!refill()) return cut_here("a key of the outer object");
  }
  if (!skip_blanks()) return cut_here("the outer object");
  if (buffer_[at_] != ':') return wrong("':' after key \"" + key_.substr(0, 64) + "\"");
  ++at_;
  if (!skip_blanks()) return cut_here("the outer object");
  if (key_ == "traceEvents" && buffer_[at_] == '[') {
    ++at_;
    has_events_ = true;
    state_ = State::kEvents;
    return Step();
  }
  const std::size_t before = at_;
  if (!skip_value(true)) return cut_here("the value of \"" + key_.substr(0, 64) + "\"");
  if (value_.empty() && at_ == before) return wrong("a value of \"" + key_.substr(0, 64) + "\"");
  return Step(Item::kMember);
}

/// The same as Scan::value, over any number of refills.
bool LooseJsonFile::skip_value(bool keep) {
  value_.clear();
  const bool quoted = buffer_[at_] == '"';
  const bool nests = buffer_[at_] == '{' || buffer_[at_] == '[';
  int depth = 0;
  bool in_string = false;
  bool escaped = false;
  bool too_long = false;
  while (true) {
    for (; at_ < end_; ++at_) {
      const char c = buffer_[at_];
      if (!quoted && !nests && ends_scalar(c)) return true;
      if (keep && !too_long) value_ += c;
      if (value_.size() > kMostEventBytes) {
        too_long = true;
        value_.clear();
      }
      if (escaped) {
        escaped = false;
      } else if (in_string && c == '\\') {
        escaped = true;
      } else if (c == '"') {
        in_string = !in_string;
      } else if (!in_string && (c == '{' || c == '[')) {
        ++depth;
      } else if (!in_string && (c == '}' || c == ']')) {
        --depth;
      }
      if ((quoted || nests) && !in_string && depth == 0) {
        ++at_;
        return true;
      }
    }
    if (!refill()) return false;
  }
}

}  // namespace rrfp
