// Goal: threads that look all the time are counted against the cores that this
// process may use, and not against those of the machine.
#include "executor/core_count.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace rrfp {
namespace {

TEST(CoreCount, IsThatOfTheCoresThatTheThreadMayRunOn) {
  int most = 0;
  int pinned = 0;
  std::thread([&] {
    most = core_count();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    pinned = core_count();
  }).join();
  EXPECT_EQ(pinned, 1);
  if (most == 1) GTEST_SKIP() << "there is one core here";
  EXPECT_GT(most, pinned);
}

// As a launcher does that binds each process to a core of its own.
TEST(CoreCount, OfTheLauncherIsThatOfWhoStartedTheProcess) {
  const int of_this = core_count();
  if (of_this == 1) GTEST_SKIP() << "there is one core here";
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) _exit(1);
    if (core_count() != 1) _exit(2);
    _exit(launcher_core_count() == of_this ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "1: cannot be bound, 2: its own, 3: that of the launcher";
}

TEST(CoreCount, AShareOfTimeIsSoManyCores) {
  EXPECT_EQ(cores_of_quota("200000 100000\n"), 2);
  EXPECT_EQ(cores_of_quota("250000 100000"), 2);
  EXPECT_EQ(cores_of_quota("50000 100000"), 1);
  EXPECT_EQ(cores_of_quota("max 100000"), std::nullopt);
  EXPECT_EQ(cores_of_quota(""), std::nullopt);
  EXPECT_EQ(cores_of_quota("100000 0"), std::nullopt);
}

}  // namespace
}  // namespace rrfp
