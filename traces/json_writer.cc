#include "traces/json_writer.h"

#include <string_view>

#include "scheduler_core/check.h"

namespace rrfp {

namespace {

constexpr std::size_t kLineWidth = 100;

// The length of the UTF-8 sequence at the front of `text`, 0 where it is none.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

void append_quoted(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const char c = text.front();
    if (length == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (length == 1 && c < ' ') {
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

class Printer {
 public:
  explicit Printer(JsonLayout layout) : readable_(layout == JsonLayout::kReadable) {}

  std::string take() { return std::move(out_); }

  void print(const JsonValue& value, int level) {
    if (const JsonArray* items = value.array()) {
      const bool one_line = !readable_ || fits(value);
      open('[', items->empty(), one_line, level);
      for (std::size_t i = 0; i < items->size(); ++i) {
        if (i > 0) separate(one_line, level);
        print((*items)[i], level + 1);
      }
      close(']', items->empty(), one_line, level);
    } else if (const JsonObject* members = value.object()) {
      const bool one_line = !readable_ || fits(value);
      open('{', members->empty(), one_line, level);
      for (std::size_t i = 0; i < members->size(); ++i) {
        if (i > 0) separate(one_line, level);
        append_quoted(out_, (*members)[i].key);
        out_ += readable_ ? ": " : ":";
        print((*members)[i].value, level + 1);
      }
      close('}', members->empty(), one_line, level);
    } else {
      print_scalar(value);
    }
  }

 private:
  void print_scalar(const JsonValue& value) {
    if (const std::string* text = value.string()) {
      append_quoted(out_, *text);
    } else if (const Decimal* number = value.decimal()) {
      out_ += number->text;
    } else {
      out_ += value.describe();
    }
  }

  // Whether a container stands on one line: numbers always, the rest where
  // the line is not too long.
  static bool fits(const JsonValue& value) {
    if (const JsonArray* items = value.array()) {
      bool scalars = true;
      for (const JsonValue& item : *items) {
        if (item.array() != nullptr || item.object() != nullptr || item.string() != nullptr) {
          scalars = false;
          break;
        }
      }
      if (scalars) return true;
    }
    std::size_t left = kLineWidth;
    return charge(value, left);
  }
  // Takes the width of `value` from `left`; false where it does not suffice.
  static bool charge(const JsonValue& value, std::size_t& left) {
    const auto take = [&left](std::size_t width) {
      if (width > left) return false;
      left -= width;
      return true;
    };
    if (const JsonArray* items = value.array()) {
      for (const JsonValue& item : *items) {
        if (!charge(item, left) || !take(2)) return false;
      }
      return take(2);
    }
    if (const JsonObject* members = value.object()) {
      for (const JsonMember& member : *members) {
        if (!take(member.key.size() + 6) || !charge(member.value, left)) return false;
      }
      return take(2);
    }
    if (const std::string* text = value.string()) return take(text->size() + 2);
    return take(value.describe().size());
  }

  void open(char bracket, bool empty, bool one_line, int level) {
    out_ += bracket;
    if (!empty && !one_line) new_line(level + 1);
  }
  void separate(bool one_line, int level) {
    out_ += ',';
    if (!one_line) {
      new_line(level + 1);
    } else if (readable_) {
      out_ += ' ';
    }
  }
  void close(char bracket, bool empty, bool one_line, int level) {
    if (!empty && !one_line) new_line(level);
    out_ += bracket;
  }
  void new_line(int level) {
    out_ += '\n';
    out_.append(static_cast<std::size_t>(level) * 2, ' ');
  }

  bool readable_;
  std::string out_;
};

}  // namespace

JsonValue json_integers(std::span<const std::int64_t> numbers) {
  JsonArray items;
  items.reserve(numbers.size());
  for (const std::int64_t number : numbers) items.emplace_back(number);
  return JsonValue(std::move(items));
}

std::string to_text(const JsonValue& value, JsonLayout layout) {
  Printer printer(layout);
  printer.print(value, 0);
  return printer.take();
}

}  // namespace rrfp
