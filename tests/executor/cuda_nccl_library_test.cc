// Goal: what is looked up in NCCL is there by that name, which the double cannot
// tell: so the code that does it is tried on the library, where one is installed.
#include <gtest/gtest.h>

#include "executor/cuda_nccl_functions.h"

// The leak sanitizer asks for this. NCCL itself loses the job of a group in which nothing was
// issued.
extern "C" const char* __lsan_default_suppressions() { return "leak:libnccl.so"; }

namespace rrfp {

/// load_cuda_nccl() of the module for real devices, under a name of its own for
/// the double has one as well: see CMakeLists.txt.
Result<CudaNcclFunctions> load_installed_nccl();

namespace {

TEST(CudaNcclLibrary, HasAllThatIsLookedUp) {
  const Result<CudaNcclFunctions> found = load_installed_nccl();
  if (!found.ok() && found.error().message.find("does not load") != std::string::npos) {
    GTEST_SKIP() << found.error().message;
  }
  ASSERT_TRUE(found.ok()) << found.error().message;
  int version = 0;
  ASSERT_EQ(found->version(&version), ncclSuccess);
  EXPECT_GE(version, kOldestNccl);
  EXPECT_STREQ(found->error_string(ncclSuccess), "no error");
  // It works without a device as far as this.
  EXPECT_EQ(found->group_start(), ncclSuccess);
  EXPECT_EQ(found->group_end(), ncclSuccess);
  EXPECT_EQ(found->send(nullptr, 0, ncclInt8, 0, nullptr, nullptr), ncclInvalidArgument);
}

}  // namespace
}  // namespace rrfp
