// Goal: a user's pattern finds what it should, in time that does not depend on how it is written,
// and one that is refused says which and why.
#include "traces/profile_names.h"

#include <gtest/gtest.h>

#include <chrono>

namespace rrfp {
namespace {

using What = ProfileAction::What;

ProfileNames names_of(const std::string& forward) {
  ProfilePatterns patterns;
  patterns.forward = forward;
  Result<ProfileNames> names = ProfileNames::create(patterns);
  EXPECT_TRUE(names.ok()) << names.error().message;
  return std::move(names).value();
}

std::string error_of(const std::string& pattern) {
  ProfilePatterns patterns;
  patterns.weight_gradient = pattern;
  const Result<ProfileNames> names = ProfileNames::create(patterns);
  return names.ok() ? "" : names.error().message;
}

TEST(ProfileNames, GroupsAreMicrobatchAndStage) {
  ProfileNames names = names_of(R"(fwd(?: mb(\d+))?(?: of (\d+))?)");
  ProfileAction action = names.classify("my fwd mb3 of 2, and more");
  EXPECT_EQ(action.what, What::kTask);
  EXPECT_EQ(action.microbatch, 3);
  EXPECT_EQ(action.stage, 2);
  action = names.classify("fwd of 2");
  EXPECT_EQ(action.microbatch, ProfileAction::kUnknown);  // takes no part in the match
  EXPECT_EQ(action.stage, 2);
  EXPECT_EQ(names.classify("backward").what, What::kNone);
  // A third group says nothing; one that took part and is empty is no number.
  EXPECT_EQ(names_of(R"((\d)(\d)(x))").classify("12x").stage, 2);
  EXPECT_EQ(names_of(R"(f(\d*))").classify("f").what, What::kRefused);
}

TEST(ProfileNames, BytesThatAreNoUtf8AreNoHindrance) {
  ProfileNames names = names_of(R"(fwd é(\d+))");
  EXPECT_EQ(names.classify("\xff\xfe fwd é7 \xc3").microbatch, 7);
  EXPECT_EQ(names.classify(std::string_view("\0 fwd é7\0", 11)).microbatch, 7);
}

/// Backtracking takes time exponential in the name on the first three, and a frame of the stack for
/// each byte on all.
TEST(ProfileNames, NoPatternTakesLongOnALongName) {
  const std::string name = std::string(100'000, 'a') + "! 7";
  const auto start = std::chrono::steady_clock::now();
  for (const char* pattern :
       {R"((?:a+)+$)", R"((?:a|aa)+b)", R"((?:a?){500}(?:a){500}$)", R"((?:.*)*(?:.*)*x)"}) {
    EXPECT_EQ(names_of(pattern).classify(name).what, What::kNone) << pattern;
  }
  // A long name is looked at to its end.
  EXPECT_EQ(names_of(R"((?:a+)+! (\d))").classify(name).microbatch, 7);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(ProfileNames, ARefusedPatternSaysWhy) {
  const std::string syntax = " (RE2's syntax, which has no lookarounds and no back references)";
  EXPECT_EQ(
      error_of("fwd (?=x)"),
      "--weight-gradient: \"fwd (?=x)\" is no regular expression: invalid perl operator: (?=" +
          syntax);
  EXPECT_EQ(error_of(R"((a)\1)"),
            "--weight-gradient: \"(a)\\1\" is no regular expression: invalid escape sequence: \\1" +
                syntax);
  EXPECT_NE(error_of("(?:x{1000}){1000}").find("no regular expression: "), std::string::npos);
  EXPECT_NE(error_of("\xff").find("invalid UTF-8"), std::string::npos);
  // What is said stays short.
  const std::string error = error_of(std::string(100'000, '('));
  EXPECT_NE(error.find("((((...\" is no regular expression: missing ): (((("), std::string::npos);
  EXPECT_LT(error.size(), 400U);
}

TEST(ProfileNames, ADeepPatternCostsNoStack) {
  const std::string deep = std::string(50'000, '(') + R"(\d)" + std::string(50'000, ')');
  EXPECT_EQ(names_of(deep).classify("fwd 7").stage, 7);
}

}  // namespace
}  // namespace rrfp
