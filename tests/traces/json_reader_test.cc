// Goal: whatever bytes come in, the reader answers with a value or with an error that tells a
// person where to look. Each hostile input stands here by example, with what its message must say.
#include "traces/json_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "traces/json_writer.h"

namespace rrfp {
namespace {

std::string error_of(std::string_view text, const JsonOptions& options = {}) {
  const Result<JsonDocument> document = parse_json(text, "f.json", options);
  return document.ok() ? "no error" : document.error().message;
}

std::string nested(int levels) {
  return std::string(static_cast<std::size_t>(levels), '[') +
         std::string(static_cast<std::size_t>(levels), ']');
}

struct Hostile {
  std::string name;
  std::string text;
  std::string message;  ///< part of it
};

class HostileJson : public testing::TestWithParam<Hostile> {};

TEST_P(HostileJson, IsAnErrorThatSaysWhere) {
  EXPECT_NE(error_of(GetParam().text).find(GetParam().message), std::string::npos)
      << error_of(GetParam().text);
  EXPECT_EQ(error_of(GetParam().text).rfind("f.json: ", 0), 0U);
}

using namespace std::string_literals;  // NOLINT: texts with a zero byte

INSTANTIATE_TEST_SUITE_P(
    All, HostileJson,
    testing::Values(
        Hostile{"Empty", "", "is empty"}, Hostile{"Blank", " \n\t ", "is empty"},
        Hostile{"Truncated", "{\"a\": [1, 2", "line 1, column 12"},
        Hostile{"TruncatedText", "{\"a", "missing closing quote"},
        Hostile{"SecondLine", "{\n\"a\": ]}", "line 2, column 6"},
        Hostile{"Nan", "{\"a\": NaN}", "invalid literal"},
        Hostile{"Infinity", "[-Infinity]", "line 1"},
        Hostile{"TrailingComma", "[1,]", "line 1, column 4"},
        Hostile{"TwoValues", "{} {}", "line 1, column 4"}, Hostile{"Comment", "{} // no", "line 1"},
        Hostile{"ZeroByte", "[\"a\0b\"]"s, "control character"},
        Hostile{"InvalidUtf8", "[\"\xff\xfe\"]", "UTF-8"},
        Hostile{"InvalidUtf8Key", "{\"\xc3(\": 1}", "UTF-8"},
        Hostile{"LoneSurrogate", "[\"\\ud800\"]", "surrogate"},
        Hostile{"TwiceAtTop", "{\"a\": 1, \"b\": 2, \"a\": 3}", "top level: the key \"a\" stands"},
        Hostile{"TwiceInside", "{\"x\": [0, {\"k\": 1, \"k\": 2}]}", "/x/1: the key \"k\""},
        Hostile{"TooDeep", nested(65), "nested deeper than 64 levels"},
        Hostile{"FarTooDeep", std::string(1'000'000, '['), "nested deeper than 64 levels"},
        Hostile{"BeyondInt64", "{\"a\": [9223372036854775808]}",
                "/a/0: found 9223372036854775808; an integer may be at most"},
        Hostile{"BeyondUint64", "[1, 99999999999999999999]", "/1: found 99999999999999999999"},
        Hostile{"BelowInt64", "[-9223372036854775809]", "/0: found -9223372036854775809"},
        Hostile{"LongInteger", "[" + std::string(100'000, '9') + "]", "too large for a double"},
        Hostile{"InfiniteFloat", "{\"a\": 1e999}", "/a: a number is too large for a double"},
        Hostile{"LeadingZero", "[01]", "line 1"}, Hostile{"Plus", "[+1]", "line 1"},
        Hostile{"Hex", "[0x10]", "line 1"}),
    [](const auto& test) { return test.param.name; });

TEST(JsonReader, MessagesStayShortAndPrintable) {
  const std::string message = error_of("[\"" + std::string(100'000, '\x80'));
  EXPECT_LT(message.size(), 500U);
  for (const char c : message) EXPECT_TRUE(c >= ' ' && c <= '~');
}

TEST(JsonReader, TakesTheDeepestAllowed) { EXPECT_EQ(error_of(nested(64)), "no error"); }

TEST(JsonReader, TakesCommentsOnlyWhereAsked) {
  const std::string text = "{ // a\n \"a\": /* b */ 1 }";
  EXPECT_EQ(error_of(text, {.comments = true}), "no error");
  EXPECT_NE(error_of(text), "no error");
}

TEST(JsonReader, KeepsIntegersAndTheTextOfOtherNumbers) {
  const Result<JsonDocument> document =
      parse_json("[9223372036854775807, -9223372036854775808, 1.0, 1e3, 18.5220, -0]", "f.json");
  ASSERT_TRUE(document.ok());
  const JsonArray& items = *document->root.array();
  EXPECT_EQ(*items[0].integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(*items[1].integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(items[2].decimal()->text, "1.0");
  EXPECT_EQ(items[3].decimal()->text, "1e3");
  EXPECT_EQ(items[4].decimal()->text, "18.5220");
  EXPECT_EQ(*items[5].integer(), 0);
}

TEST(JsonReader, ManyKeysAndLongArraysTakeTimeInProportion) {
  std::string text = "{\"list\": [";
  for (int i = 0; i < 1'000'000; ++i) text += "1,";
  text += "1]";
  for (int i = 0; i < 100'000; ++i) text += ", \"key" + std::to_string(i) + "\": 0";
  EXPECT_EQ(error_of(text + "}"), "no error");
  EXPECT_NE(error_of(text + ", \"key7\": 1}").find("the key \"key7\""), std::string::npos);
}

TEST(JsonWriter, WritesWhatReadsBackEqual) {
  const std::string text =
      R"({"a":[1,-2,1.50,true,false,null],"b":{"":"q\"\\\n\u0001é€😀"},"c":[],"d":{},"e":[[1,2],[3]]})";
  const Result<JsonDocument> document = parse_json(text, "f.json");
  ASSERT_TRUE(document.ok()) << document.error().message;
  for (const JsonLayout layout : {JsonLayout::kCompact, JsonLayout::kReadable}) {
    const Result<JsonDocument> again = parse_json(to_text(document->root, layout), "g.json");
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(document->root, again->root);
  }
  EXPECT_EQ(to_text(document->root, JsonLayout::kCompact).find(' '), std::string::npos);
}

TEST(JsonWriter, WritesValidUtf8WhateverTheText) {
  for (const char* bad :
       {"\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80z"}) {
    const std::string text = to_text(JsonValue(bad), JsonLayout::kCompact);
    EXPECT_TRUE(parse_json(text, "f.json").ok()) << text;
  }
}

class TextFile : public testing::Test {
 protected:
  TextFile() {
    folder_ =
        std::filesystem::temp_directory_path() / ("rrfp-text-file-" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~TextFile() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(TextFile, SaysWhyAFileCannotBeRead) {
  const std::string absent = (folder_ / "absent.json").string();
  EXPECT_EQ(read_json_file(absent).error().message,
            absent + ": cannot read: No such file or directory");
  EXPECT_EQ(read_json_file(folder_.string()).error().message,
            folder_.string() + ": is a directory; a file is needed");
}

TEST_F(TextFile, RefusesWhatIsLargerThanTheLimit) {
  const std::string path = (folder_ / "large.json").string();
  std::ofstream(path) << "[1, 2, 3]";
  EXPECT_TRUE(read_json_file(path, {.limit_bytes = 9}).ok());
  EXPECT_EQ(read_json_file(path, {.limit_bytes = 8}).error().message,
            path + ": larger than the limit of 8 bytes; raise the limit to read it");
  // Its size is not known beforehand, and it does not end.
  EXPECT_NE(read_text_file("/dev/zero", 1 << 20).error().message.find("larger than the limit"),
            std::string::npos);
}

}  // namespace
}  // namespace rrfp
