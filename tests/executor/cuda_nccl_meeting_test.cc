// Goal: two processes that have one GPU are told so before NCCL is asked; GPUs at
// the same address of two hosts are two, also where the hosts have one name.
#include "executor/cuda_nccl_meeting.h"

#include <gtest/gtest.h>

#include <cstring>

#include "executor/agreement.h"

namespace rrfp {
namespace {

CudaGreeting greeting(const char* host, const char* boot, const char* gpu) {
  CudaGreeting of;
  std::strcpy(of.host, host);
  std::strcpy(of.boot, boot);
  std::strcpy(of.gpu, gpu);
  return of;
}

TEST(CudaNcclMeeting, AGpuIsThatOfAHostAndItsBoot) {
  const CudaGreeting first = greeting("node", "b1", "0000:00");
  EXPECT_TRUE(check_gpus({first, greeting("node", "b1", "0001:00")}).ok());
  EXPECT_TRUE(check_gpus({first, greeting("other", "b1", "0000:00")}).ok());
  EXPECT_TRUE(check_gpus({first, greeting("node", "b2", "0000:00")}).ok());
  const Result<void> shared = check_gpus({first, greeting("node", "b2", "0000:00"), first});
  ASSERT_FALSE(shared.ok());
  EXPECT_EQ(
      shared.error().message.rfind("processes 0 and 2 both have GPU 0000:00 of host node, ", 0), 0U)
      << shared.error().message;
}

TEST(CudaNcclMeeting, AHostKnowsItsBoot) {
  const std::string id = boot_id();
  EXPECT_EQ(id.size(), 36U) << id;
  EXPECT_LT(id.size(), sizeof(CudaGreeting::boot));
  EXPECT_EQ(id, boot_id());
}

}  // namespace
}  // namespace rrfp
