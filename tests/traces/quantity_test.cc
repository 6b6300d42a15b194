// Goal: a number with a unit becomes exactly the ns or bytes that a person would compute by hand,
// and anything that is not such a number is refused with what is allowed.
#include "traces/quantity.h"

#include <gtest/gtest.h>

namespace rrfp {
namespace {

struct Conversion {
  const char* text;
  std::int64_t scale;
  std::int64_t result;  ///< -1: refused
};

TEST(Quantity, ScalesExactlyAndRoundsHalfUp) {
  const Conversion conversions[] = {
      {"18.522", 1'000'000, 18'522'000},
      {"0.601", 1'000'000, 601'000},
      {"1.1", 1'000'000'000, 1'100'000'000},
      {"2.675", 100, 268},  // in binary this is below the half
      {"0.0000005", 1'000'000, 1},
      {"0.00000049999", 1'000'000, 0},
      {"1e3", 1, 1000},
      {"1E+3", 1, 1000},
      {"1.5e-3", 1'000'000, 1500},
      {"-0", 1, -1},
      {"-1", 1, -1},
      {"0.0", 7, 0},
      {"0e999999999999", 1, 0},
      {"1e-999999999999", 1'000'000'000, 0},
      {"1e999999999999", 1, -1},
      {"2305843009213693952", 1, -1},  // 2^61, but of 19 digits
      {"1e18", 1, 1'000'000'000'000'000'000},
      {"3e18", 1, -1},
      {"1.00000000000000000000000000000", 1, 1},
      {"1.0000000000000000001", 1, -1},
      {"80", std::int64_t{1} << 30, 85'899'345'920},
  };
  for (const Conversion& conversion : conversions) {
    const Result<std::int64_t> result = scaled(conversion.text, conversion.scale);
    EXPECT_EQ(result.ok() ? *result : -1, conversion.result) << conversion.text;
  }
}

std::string error_of(const std::string& text) {
  const Result<JsonDocument> document = parse_json(text, "f.json");
  JsonErrors errors(document->file);
  const JsonCursor in(errors, document->root);
  KnownKeys({"mode"}).with("latency", time_units()).check(in);
  need_quantity(in, "latency", time_units()).table(2, 3);
  return errors.ok() ? "no error" : errors.status().error().message;
}

TEST(Quantity, SaysWhatIsAllowed) {
  EXPECT_EQ(error_of(R"({"latency_us": 1.5})"), "no error");
  EXPECT_EQ(error_of(R"({"latency_us": [1, 2]})"), "no error");
  EXPECT_EQ(error_of(R"({"latency_us": [[1, 2, 3], [4, 5, 6]]})"), "no error");
  EXPECT_EQ(error_of(R"({"latency_us": -1})"),
            "f.json: /latency_us: found -1; expected a number from 0 to 2305843009213693 with at "
            "most 18 significant digits");
  EXPECT_EQ(error_of(R"({"latency_us": "1"})"),
            "f.json: /latency_us: found \"1\"; expected a number");
  EXPECT_EQ(error_of(R"({"latency_us": [1]})"),
            "f.json: /latency_us: found an array of 1; expected an array of 2, one per stage");
  EXPECT_EQ(error_of(R"({"latency_us": [[1, 2, 3], [4, 5]]})"),
            "f.json: /latency_us/1: found an array of 2; expected an array of 3, one per "
            "microbatch");
  EXPECT_EQ(error_of(R"({"latency_us": 1, "latency_ms": 2})"),
            "f.json: /latency_ms: \"latency\" is given in two units; give it in one");
  EXPECT_EQ(error_of(R"({"latency": 1})"),
            "f.json: top level: unknown key \"latency\"; did you mean \"latency_s\"? Known are "
            "\"mode\", \"latency_ns\", \"latency_us\", \"latency_ms\", \"latency_s\"");
  EXPECT_EQ(error_of("{}"),
            "f.json: top level: one of the keys \"latency_ns\", \"latency_us\", \"latency_ms\", "
            "\"latency_s\" is needed");
}

}  // namespace
}  // namespace rrfp
