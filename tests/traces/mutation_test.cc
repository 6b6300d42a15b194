// Goal: damaged files never crash a reader, never hang it, and never slip through as something that
// cannot be written and read again. Bytes of valid files are changed, cut, doubled and mixed; so
// are whole JSON values, which gets past the grammar more often. Every seed is fixed.
//
// To run one seed alone: RRFP_SEED=<n> rrfp_traces_tests --gtest_filter='Mutation.*'
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "scheduler_core/random.h"
#include "tests/traces/files_for_tests.h"
#include "traces/case_file.h"
#include "traces/result_file.h"

namespace rrfp {
namespace {

using nlohmann::json;

constexpr std::uint64_t kSeeds = 3000;

std::vector<std::string> valid_texts(std::size_t at_most) {
  std::vector<std::string> paths = case_paths(own_cases());
  const std::vector<std::string> shared = case_paths(shared_cases());
  paths.insert(paths.end(), shared.begin(), shared.end());
  for (const std::string& path : expected_paths(own_cases())) paths.push_back(path);
  for (const std::string& path : expected_paths(shared_cases())) paths.push_back(path);
  std::vector<std::string> texts;
  for (const std::string& path : paths) {
    std::string text = *read_text_file(path);
    // Large files would spend the time of many small ones.
    if (text.size() < 4000 && texts.size() < at_most) texts.push_back(std::move(text));
  }
  return texts;
}

std::string mutate_bytes(std::string text, const std::string& other, RandomStream& random) {
  constexpr std::string_view kSpice = "{}[]\",:0123456789-+.eEnulltruefalse\\\0\x80\xff/*";
  const std::uint64_t changes = 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = random.below(text.size());
    const std::size_t length = std::min<std::size_t>(random.below(20), text.size() - at);
    switch (random.below(6)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text[at] = kSpice[random.below(kSpice.size())];
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(at, length));
        break;
      case 4:
        text.insert(at, other.substr(random.below(other.size()), length));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

void collect(json& value, std::vector<json*>& all) {
  all.push_back(&value);
  if (value.is_structured()) {
    for (json& child : value) collect(child, all);
  }
}

std::string mutate_values(const std::string& text, RandomStream& random) {
  json file = json::parse(text);
  const std::vector<json> spice = {0,
                                   1,
                                   -1,
                                   2,
                                   1000,
                                   INT64_MAX,
                                   INT64_MAX / 2,
                                   1.5,
                                   "",
                                   "F",
                                   "0F0",
                                   json::array(),
                                   json::object(),
                                   nullptr,
                                   true,
                                   "eager",
                                   {0},
                                   {{0, 0}, {0, 0}}};
  for (std::uint64_t i = 1 + random.below(3); i > 0; --i) {
    std::vector<json*> all;
    collect(file, all);
    json& target = *all[random.below(all.size())];
    switch (random.below(4)) {
      case 0:
        target = spice[random.below(spice.size())];
        break;
      case 1:
        target = json(*all[random.below(all.size())]);
        break;
      case 2:
        if (target.is_array() && !target.empty()) target.erase(random.below(target.size()));
        break;
      default:
        if (target.is_array() && !target.empty()) target.push_back(json(target.back()));
    }
  }
  return file.dump();
}

// Reads `text` as everything it might be; what is accepted must survive a round trip.
void check(const std::string& text) {
  const Result<JsonDocument> document = parse_json(text, "f.json");
  if (!document.ok()) {
    ASSERT_FALSE(document.error().message.empty());
    return;
  }
  const Result<SimulationResult> result = read_result(*document);
  if (!result.ok()) {
    ASSERT_EQ(result.error().message.rfind("f.json: ", 0), 0U);
  }
  const Result<Case> first = read_case(*document);
  if (!first.ok()) {
    ASSERT_EQ(first.error().message.rfind("f.json: ", 0), 0U) << first.error().message;
    ASSERT_LT(first.error().message.size(), 2000U);
    return;
  }
  const std::string written = to_text(case_to_json(*first), JsonLayout::kCompact);
  const Result<JsonDocument> again = parse_json(written, "g.json");
  ASSERT_TRUE(again.ok()) << again.error().message;
  const Result<Case> second = read_case(*again);
  ASSERT_TRUE(second.ok()) << second.error().message;
  ASSERT_EQ(to_text(case_to_json(*second), JsonLayout::kCompact), written);
}

TEST(Mutation, DamagedFilesGiveErrorsOrCases) {
  const std::vector<std::string> texts = valid_texts(60);
  ASSERT_FALSE(texts.empty());
  const char* only = std::getenv("RRFP_SEED");
  const std::uint64_t first = only == nullptr ? 0 : std::strtoull(only, nullptr, 10);
  const std::uint64_t last = only == nullptr ? kSeeds : first + 1;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE("RRFP_SEED=" + std::to_string(seed));
    RandomStream random({.seed = seed});
    const std::string& text = texts[random.below(texts.size())];
    const std::string& other = texts[random.below(texts.size())];
    check(random.below(2) == 0 ? mutate_bytes(text, other, random) : mutate_values(text, random));
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace rrfp
