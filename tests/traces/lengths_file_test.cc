// Goal: a file of lengths gives its quantiles however a spreadsheet wrote it, and what cannot be
// lengths is refused.
#include "traces/lengths_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace rrfp {
namespace {

Result<Quantiles> read(const std::string& text, const std::string& column = "") {
  const std::string path = testing::TempDir() + std::to_string(getpid()) + "_rrfp_lengths.csv";
  std::ofstream(path, std::ios::binary) << text;
  Result<Quantiles> lengths = read_lengths(path, column);
  std::error_code gone;
  std::filesystem::remove(path, gone);
  return lengths;
}

TEST(LengthsFile, TakesAByteOrderMarkForNoText) {
  const Result<Quantiles> plain = read(
      "\xef\xbb\xbf"
      "5\r\n7\n9\n");
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  EXPECT_EQ(plain->values, (std::vector<double>{5, 7, 9}));
  const Result<Quantiles> named = read("\xef\xbb\xbftokens,more\n1,2\n3,4\n", "tokens");
  ASSERT_TRUE(named.ok()) << named.error().message;
  EXPECT_EQ(named->values, (std::vector<double>{1, 3}));
}

TEST(LengthsFile, RefusesWhatFillsNoMicrobatch) {
  const Result<Quantiles> zeros = read("0\n0\n0\n");
  ASSERT_FALSE(zeros.ok());
  EXPECT_NE(zeros.error().message.find("rrfp_lengths.csv: all lengths are 0"), std::string::npos)
      << zeros.error().message;
  EXPECT_TRUE(read("0\n0\n8\n").ok());
}

}  // namespace
}  // namespace rrfp
