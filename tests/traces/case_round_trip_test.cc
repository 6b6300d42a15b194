// Goal: every case and result file reads, nothing that it says is lost, and writing what was read
// and reading it again gives the same. "Nothing is lost" is checked against nlohmann's own view of
// the file, not against our reader.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/traces/files_for_tests.h"
#include "traces/case_file.h"
#include "traces/result_file.h"

namespace rrfp {
namespace {

using nlohmann::json;

json parse_file(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

// Whether everything that `part` says stands in `whole` as well.
void expect_within(const json& part, const json& whole, const std::string& where) {
  if (part.is_object()) {
    ASSERT_TRUE(whole.is_object()) << where;
    for (const auto& [key, value] : part.items()) {
      ASSERT_TRUE(whole.contains(key)) << where << "/" << key;
      expect_within(value, whole[key], where + "/" + key);
    }
  } else if (part.is_array()) {
    ASSERT_EQ(part.size(), whole.size()) << where;
    for (std::size_t i = 0; i < part.size(); ++i) {
      expect_within(part[i], whole[i], where + "/" + std::to_string(i));
    }
  } else {
    EXPECT_EQ(part, whole) << where;
  }
}

// The freedoms of the format, taken away: what may be written in two ways is written in one, and
// defaults that are spelled out are left out.
json normalized(json file) {
  const std::size_t lanes = file.value("/tensor_parallel/lanes"_json_pointer, std::size_t{1});
  for (const char* key : {"latency_ns", "expected_latency_ns"}) {
    if (!file["network"].contains(key)) continue;
    json& list = file["network"][key];
    for (json& entry : list) {
      json& ns = entry["ns"];
      if (ns[0].is_array() && ns.size() == 1) ns = json(ns[0]);
      if (!ns[0].is_array() && lanes > 1 && std::string(key) == "latency_ns") {
        ns = json(std::vector<json>(lanes, ns));
      }
    }
    std::sort(list.begin(), list.end());
    if (list.empty()) file["network"].erase(key);
  }
  const json defaults = {
      {"dispatch_ns", 0},
      {"queue_depth", 1},
      {"name", ""},
      {"tensor_parallel",
       {{"lanes", 1}, {"coordination", "vote"}, {"vote_ns", 0}, {"announce_ns", 0}}}};
  for (const auto& [key, value] : defaults.items()) {
    if (file.contains(key) && file[key] == value) file.erase(key);
  }
  for (const char* key : {"bytes_per_second", "notice_ns", "message_ns"}) {
    if (file["network"].value(key, 1) == 0) file["network"].erase(key);
  }
  for (json& stage : file["pipeline"]["stages"]) {
    if (stage.value("backward", "") == "full") stage.erase("backward");
  }
  if (file["policy"].value("arrange", "") == "given") file["policy"].erase("arrange");
  return file;
}

void expect_round_trip(const std::string& path) {
  SCOPED_TRACE(path);
  const Result<Case> first = read_case_file(path);
  ASSERT_TRUE(first.ok()) << first.error().message;
  const std::string text = to_text(case_to_json(*first), JsonLayout::kReadable);
  expect_within(normalized(parse_file(path)), normalized(json::parse(text)), "");

  const Result<JsonDocument> again = parse_json(text, "again.json");
  ASSERT_TRUE(again.ok()) << again.error().message;
  const Result<Case> second = read_case(*again);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_EQ(to_text(case_to_json(*second), JsonLayout::kReadable), text);
  EXPECT_EQ(first->duration_ns, second->duration_ns);
  EXPECT_EQ(first->expected_ns, second->expected_ns);
  EXPECT_EQ(first->network, second->network);
  EXPECT_EQ(first->memory, second->memory);
  EXPECT_EQ(first->tensor_parallel, second->tensor_parallel);
  EXPECT_EQ(first->input_ready_ns, second->input_ready_ns);
  EXPECT_EQ(first->policy.hint.order, second->policy.hint.order);
}

TEST(CaseRoundTrip, SharedCases) {
  const std::vector<std::string> paths = case_paths(shared_cases());
  if (paths.empty()) GTEST_SKIP() << "no shared cases in " << shared_cases();
  for (const std::string& path : paths) expect_round_trip(path);
}

TEST(CaseRoundTrip, OwnCases) {
  const std::vector<std::string> paths = case_paths(own_cases());
  ASSERT_FALSE(paths.empty());
  for (const std::string& path : paths) expect_round_trip(path);
}

TEST(ResultRoundTrip, SharedResults) {
  const std::vector<std::string> paths = expected_paths(shared_cases());
  if (paths.empty()) GTEST_SKIP() << "no shared results in " << shared_cases();
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const Result<SimulationResult> result = read_result_file(path);
    ASSERT_TRUE(result.ok()) << result.error().message;
    const std::string text = to_text(result_to_json(*result), JsonLayout::kCompact);
    expect_within(parse_file(path), json::parse(text), "");
  }
}

}  // namespace
}  // namespace rrfp
