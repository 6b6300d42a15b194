// Goal: to the double of NCCL it is all the same whether members are threads or
// processes: they connect, pair up, and object to each other; and one that is
// killed leaves the others waiting, which an abort ends.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tests/executor/cuda_nccl_for_tests.h"

namespace rrfp {
namespace {

// A fork of this process, which must have one thread: before streams are made.
class CudaNcclProcesses : public NcclTest {
 protected:
  // `live` says whether all went well.
  void start(const std::function<bool()>& live) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(live() && !HasFailure() ? 0 : 1);
    children_.push_back(child);
  }
  // Its exit status; 128 + number where a signal ended it.
  int wait_for_child() {
    int status = 0;
    waitpid(children_.back(), &status, 0);
    children_.pop_back();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void TearDown() override {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    NcclTest::TearDown();
  }

  std::vector<pid_t> children_;
};

// As a run does: everyone gathers, then messages go round; at the end all is given back.
bool live_as(int rank, int members, const ncclUniqueId& id) {
  NcclMember member(id, rank, members);
  if (member.settle() != ncclSuccess) return false;
  const auto first_of = [](int of) { return 10'000.0F * static_cast<float>(of); };
  constexpr std::size_t kCount = 40'000;
  const NcclBuffer part(kCount, first_of(rank));
  const NcclBuffer all(kCount * static_cast<std::size_t>(members));
  member.all_gather(part, all);
  if (member.settle() != ncclSuccess || !member.ends()) return false;
  for (int of = 0; of < members; ++of) {
    if (!all.counts_from(first_of(of), static_cast<std::size_t>(of) * kCount, kCount)) return false;
  }
  const int before = (rank + members - 1) % members;
  const NcclBuffer to(kCount);
  for (int round = 0; round < 20; ++round) {
    nccl().group_start();
    member.send(part, (rank + 1) % members);
    member.receive(to, before);
    nccl().group_end();
    if (member.settle() != ncclSuccess || !member.ends()) return false;
    if (!to.counts_from(first_of(before))) return false;
  }
  return nccl().finalize(member.comm()) == ncclInProgress && member.settle() == ncclSuccess &&
         nccl().destroy(member.let_go()) == ncclSuccess && DoubleMachine::get().objection().empty();
}

TEST_F(CudaNcclProcesses, GatherAndPassMessagesRound) {
  const ncclUniqueId id = new_nccl_id();
  for (int rank = 1; rank < 3; ++rank) start([&] { return live_as(rank, 3, id); });
  EXPECT_TRUE(live_as(0, 3, id));
  EXPECT_EQ(wait_for_child(), 0);
  EXPECT_EQ(wait_for_child(), 0);
}

// Device 2 of one process is device 2 of another.
TEST_F(CudaNcclProcesses, CannotBeOnOneDevice) {
  const ncclUniqueId id = new_nccl_id();
  const auto is_refused = [&](int rank) {
    NcclMember member(id, rank, 2, 2);
    return member.settle() == ncclInvalidUsage &&
           std::string(nccl().last_error(nullptr)).find("Duplicate GPU detected") == 0;
  };
  start([&] { return is_refused(1); });
  EXPECT_TRUE(is_refused(0));
  EXPECT_EQ(wait_for_child(), 0);
}

TEST_F(CudaNcclProcesses, BothHearOfAnObjection) {
  const ncclUniqueId id = new_nccl_id();
  const auto hears = [&](int rank) {
    NcclMember member(id, rank, 2);
    const NcclBuffer buffer(rank == 0 ? kLarge : kSmall);
    if (member.settle() != ncclSuccess) return false;
    rank == 0 ? member.send(buffer, 1) : member.receive(buffer, 0);
    member.settle();
    return member.ends() &&
           DoubleMachine::get().objection().find("meets the send of 262144") != std::string::npos;
  };
  start([&] { return hears(1); });
  EXPECT_TRUE(hears(0));
  EXPECT_EQ(wait_for_child(), 0);
}

TEST_F(CudaNcclProcesses, OneThatIsKilledLeavesTheOthersWaiting) {
  const ncclUniqueId id = new_nccl_id();
  start([&] {
    NcclMember member(id, 1, 2);
    const NcclBuffer buffer(kLarge);
    if (member.settle() != ncclSuccess) return false;
    member.send(buffer, 0);
    if (member.settle() != ncclSuccess) return false;
    pause();  // the send is half way, for the ring holds no more
    return false;
  });
  {
    NcclMember member(id, 0, 2);
    const NcclBuffer head(kLarge);
    const NcclBuffer more(kLarge);
    EXPECT_EQ(member.settle(), ncclSuccess);
    member.receive(head, 1);
    EXPECT_EQ(member.settle(), ncclSuccess);
    EXPECT_TRUE(member.ends());
    member.receive(more, 1);
    EXPECT_EQ(member.settle(), ncclSuccess);
    kill(children_.back(), SIGKILL);
    EXPECT_EQ(wait_for_child(), 128 + SIGKILL);
    EXPECT_TRUE(member.hangs());
    EXPECT_EQ(member.ask(), ncclSuccess) << "nobody has told it";
    member.abort();
    EXPECT_TRUE(member.ends());
  }
  expect_none();
}

}  // namespace
}  // namespace rrfp
