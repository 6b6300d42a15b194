// Goal: an unknown word is answered with the known one that was meant, at a
// bounded cost, and quoted so that it cannot garble a terminal.
#include "scheduler_core/nearest.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace rrfp {
namespace {

TEST(Nearest, DistanceCountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("rnaks", "ranks"), 1);  // a swap of neighbours is one edit
  EXPECT_EQ(edit_distance("Dispatch_NS", "dispatch-ns"), 0);
}

TEST(Nearest, FindsWhatWasMeant) {
  constexpr std::array<std::string_view, 4> kKnown = {"gpipe", "1f1b", "eager-1f1b", "zb-h1"};
  EXPECT_EQ(nearest("1F1B", kKnown), "1f1b");
  EXPECT_EQ(nearest("zbh1", kKnown), "zb-h1");
  EXPECT_EQ(nearest("pigpe", kKnown), "gpipe");
  EXPECT_EQ(nearest("eager_1f1", kKnown), "eager-1f1b");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Nearest, AWordThatIsCutShortIsTheBeginningOfWhatWasMeant) {
  constexpr std::array<std::string_view, 4> kKnown = {"1f1b", "bfw", "zb-h2", "zb-h2 ready+wait"};
  EXPECT_EQ(nearest("zb", kKnown), "zb-h2");
  EXPECT_EQ(nearest("ZB_H", kKnown), "zb-h2");
  EXPECT_EQ(nearest("zb-h2 r", kKnown), "zb-h2 ready+wait");
  EXPECT_EQ(nearest("", kKnown), "bfw") << "every word begins with nothing";
}

TEST(Nearest, EqualsKeepTheirOrder) {
  constexpr std::array<std::string_view, 3> kKnown = {"zb-h2", "zb-h1", "abc"};
  EXPECT_EQ(nearest("zb-h3", kKnown), "zb-h2");
  const auto sorted = by_nearness("zb-h3", kKnown);
  EXPECT_EQ(sorted, (std::vector<std::string_view>{"zb-h2", "zb-h1", "abc"}));
  // Also where there are many.
  std::vector<std::string> words;
  for (int i = 0; i < 100; ++i) words.push_back(std::to_string(i + 100));
  const std::vector<std::string_view> known(words.begin(), words.end());
  EXPECT_EQ(by_nearness("abc", known), known);
}

TEST(Nearest, HostileWordsAreCutAndEscaped) {
  const std::string huge(1 << 20, 'a');
  EXPECT_EQ(edit_distance(huge, huge + "b"), 0);
  EXPECT_EQ(in_quotes("a\x1b[31m\n"), "\"a\\x1b[31m\\x0a\"");
  EXPECT_EQ(in_quotes(huge), "\"" + std::string(64, 'a') + "...\"");
}

}  // namespace
}  // namespace rrfp
