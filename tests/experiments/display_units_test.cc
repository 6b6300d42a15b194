// Goal: times and sizes are shown in one unit that fits, in decimal units as
// scenarios and vendors have them, rounded half up.
#include "experiments/display_units.h"

#include <gtest/gtest.h>

namespace rrfp {
namespace {

TEST(DisplayUnits, SizesAreDecimal) {
  EXPECT_EQ(bytes_with_unit(0), "0 B");
  EXPECT_EQ(bytes_with_unit(9'999), "9999 B");
  EXPECT_EQ(bytes_with_unit(10'000), "10.000 kB");
  EXPECT_EQ(bytes_with_unit(64 << 20), "67.109 MB");
  EXPECT_EQ(bytes_with_unit(80'000'000'000), "80.000 GB");
}

TEST(DisplayUnits, OfAColumnTheLargestChooses) {
  const DisplayUnit unit = time_unit(12'345'678);
  EXPECT_EQ(with_unit(12'345'678, unit), "12.346 ms");
  EXPECT_EQ(with_unit(499, unit), "0.000 ms");
  EXPECT_EQ(time_with_unit(499), "499 ns");
}

}  // namespace
}  // namespace rrfp
