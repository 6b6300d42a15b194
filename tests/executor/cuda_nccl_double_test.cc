// Goal: the double of NCCL behaves as NCCL is documented to, where host code can
// see it: what is in progress for how long, what pairs with what, what waits for
// whom, and what an abort ends. What it objects to is in cuda_nccl_misuse_test.cc.
#include <filesystem>
#include <memory>

#include "tests/executor/cuda_nccl_for_tests.h"

namespace rrfp {
namespace {

class CudaNcclDouble : public NcclTest {
 protected:
  // Two members, which have exchanged a message either way and so are connected.
  void connect_two() {
    const ncclUniqueId id = new_nccl_id();
    for (int rank = 0; rank < 2; ++rank) {
      members_.push_back(std::make_unique<NcclMember>(id, rank, 2));
    }
    const NcclBuffer from(kSmall);
    const NcclBuffer to(kSmall);
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(members_[rank]->settle(), ncclSuccess);
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(members_[rank]->send(from, 1 - rank), ncclInProgress);
      EXPECT_EQ(members_[1 - rank]->receive(to, rank), ncclInProgress);
      for (const auto& member : members_) EXPECT_EQ(member->settle(), ncclSuccess);
      for (const auto& member : members_) EXPECT_TRUE(member->ends());
    }
  }
  void TearDown() override {
    members_.clear();
    NcclTest::TearDown();
  }
  NcclMember& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }

  // Issued, and in the stream.
  void send(int rank, const NcclBuffer& from) {
    EXPECT_EQ(member(rank).send(from, 1 - rank), ncclInProgress);
    EXPECT_EQ(member(rank).settle(), ncclSuccess);
  }
  void receive(int rank, const NcclBuffer& to) {
    EXPECT_EQ(member(rank).receive(to, 1 - rank), ncclInProgress);
    EXPECT_EQ(member(rank).settle(), ncclSuccess);
  }

  std::vector<std::unique_ptr<NcclMember>> members_;
};

TEST_F(CudaNcclDouble, ACommunicatorIsInProgressUntilAllHaveAttached) {
  const ncclUniqueId id = new_nccl_id();
  const std::string path = std::string("/dev/shm/") + id.internal;
  EXPECT_FALSE(std::filesystem::exists(path)) << "an id that nobody uses costs nothing";
  NcclMember first(id, 0, 2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(first.ask(), ncclInProgress);
  EXPECT_TRUE(std::filesystem::exists(path));
  NcclMember second(id, 1, 2);
  EXPECT_EQ(first.settle(), ncclSuccess);
  EXPECT_EQ(second.settle(), ncclSuccess);
  EXPECT_FALSE(std::filesystem::exists(path)) << "nothing is left behind";
  expect_none();
}

TEST_F(CudaNcclDouble, WhoeverLeavesLastRemovesWhatWasNeverComplete) {
  const ncclUniqueId id = new_nccl_id();
  { const NcclMember first(id, 0, 2); }
  EXPECT_FALSE(std::filesystem::exists(std::string("/dev/shm/") + id.internal));
}

TEST_F(CudaNcclDouble, RefusesWhatCannotBeACommunicator) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  const ncclUniqueId id = new_nccl_id();
  const auto refused = [&](int members, const ncclUniqueId& of, int rank, const char* why) {
    ncclComm_t comm = nullptr;
    EXPECT_EQ(nccl().init(&comm, members, of, rank, &config), ncclInvalidArgument) << why;
    EXPECT_EQ(comm, nullptr);
    expect_last_error(why);
  };
  refused(2, id, 2, "invalid rank 2 (should be >= 0 and < 2)");
  refused(2, id, -1, "invalid rank -1");
  refused(0, id, 0, "invalid number of ranks 0");
  refused(65, id, 0, "invalid number of ranks 65");
  refused(2, ncclUniqueId{}, 0, "the unique id is none that ncclGetUniqueId gave");
  NcclMember first(id, 0, 2);
  refused(2, id, 0, "rank 0 is there already");
  refused(3, id, 1, "rank 1 says that there are 3 ranks, where another said 2");
  config.blocking = 2;
  refused(2, id, 0, "Invalid config blocking attribute value 2");
  config.magic = 0;
  refused(2, id, 0, "not initialized via NCCL_CONFIG_INITIALIZER");
  expect_none();
}

// Whoever wants few blocks has tasks beside them.
TEST_F(CudaNcclDouble, FewBlocksAreNoCluster) {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.cgaClusterSize = -1;
  ncclComm_t comm = nullptr;
  EXPECT_EQ(nccl().init(&comm, 1, new_nccl_id(), 0, &config), ncclInvalidArgument);
  expect_last_error("Invalid config cgaClusterSize attribute value -1");
  config.maxCTAs = 4;
  config.cgaClusterSize = 0;
  EXPECT_EQ(nccl().init(&comm, 1, new_nccl_id(), 0, &config), ncclInProgress);
  EXPECT_EQ(nccl().abort(comm), ncclSuccess);
  expect_none();
  config.cgaClusterSize = NCCL_CONFIG_UNDEF_INT;
  EXPECT_EQ(nccl().init(&comm, 1, new_nccl_id(), 0, &config), ncclInvalidUsage);
  EXPECT_EQ(comm, nullptr);
  expect_objection("with maxCTAs, clusters of blocks");
}

TEST_F(CudaNcclDouble, TwoMembersOnOneDeviceAreRefused) {
  const ncclUniqueId id = new_nccl_id();
  NcclMember first(id, 0, 3, 5);
  NcclMember second(id, 1, 3, 4);
  NcclMember third(id, 2, 3, 5);
  for (NcclMember* member : {&first, &second, &third}) {
    EXPECT_EQ(member->settle(), ncclInvalidUsage);
    expect_last_error("Duplicate GPU detected : rank 0 and rank 2 both on CUDA device 5");
  }
  const NcclBuffer buffer(kSmall);
  EXPECT_EQ(first.send(buffer, 1), ncclInvalidUsage) << "it stays of no use";
  expect_none();
}

// Host code that takes issued work for enqueued work goes wrong here as it does, now and then,
// there.
TEST_F(CudaNcclDouble, IssuedWorkEntersItsStreamOnlyWhenAskedAgain) {
  connect_two();
  const NcclBuffer to(kSmall, 0);
  const NcclBuffer from(kSmall, 7);
  EXPECT_EQ(member(1).receive(to, 0), ncclInProgress);
  EXPECT_TRUE(member(1).idle());
  EXPECT_EQ(member(1).ask(), ncclInProgress);
  EXPECT_TRUE(member(1).idle());
  EXPECT_EQ(member(1).ask(), ncclSuccess);
  EXPECT_FALSE(member(1).idle()) << "a receive blocks its stream until there is data";
  EXPECT_TRUE(member(1).hangs());
  send(0, from);
  EXPECT_TRUE(member(1).ends());
  EXPECT_TRUE(to.counts_from(7));
  expect_none();
}

TEST_F(CudaNcclDouble, MembersAreConnectedOnceBothHaveIssuedTheirFirst) {
  const ncclUniqueId id = new_nccl_id();
  NcclMember first(id, 0, 2);
  NcclMember second(id, 1, 2);
  EXPECT_EQ(first.settle(), ncclSuccess);
  EXPECT_EQ(second.settle(), ncclSuccess);
  const NcclBuffer from(kSmall, 3);
  const NcclBuffer to(kSmall);
  EXPECT_EQ(first.send(from, 1), ncclInProgress);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(first.ask(), ncclInProgress);
  EXPECT_EQ(second.receive(to, 0), ncclInProgress);
  EXPECT_EQ(first.settle(), ncclSuccess);
  EXPECT_EQ(second.settle(), ncclSuccess);
  EXPECT_TRUE(second.ends());
  EXPECT_TRUE(to.counts_from(3));
  expect_none();
}

TEST_F(CudaNcclDouble, MessagesPairUpInTheOrderOfTheirIssue) {
  connect_two();
  const NcclBuffer from[] = {NcclBuffer(kSmall, 100), NcclBuffer(kSmall, 200)};
  const NcclBuffer to[] = {NcclBuffer(kSmall), NcclBuffer(kSmall)};
  for (const NcclBuffer& buffer : from) send(0, buffer);
  for (const NcclBuffer& buffer : to) receive(1, buffer);
  EXPECT_TRUE(member(1).ends());
  EXPECT_TRUE(to[0].counts_from(100));
  EXPECT_TRUE(to[1].counts_from(200));
  // Each direction has an order of its own.
  receive(0, to[0]);
  send(0, from[0]);
  send(1, from[1]);
  receive(1, to[1]);
  EXPECT_TRUE(member(0).ends());
  EXPECT_TRUE(member(1).ends());
  EXPECT_TRUE(to[0].counts_from(200));
  EXPECT_TRUE(to[1].counts_from(100));
  expect_none();
}

// A communicator's operations keep their order whatever their streams.
TEST_F(CudaNcclDouble, StreamsOfOneCommunicatorWaitForEachOther) {
  connect_two();
  cudaStream_t other = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, 0), cudaSuccess);
  const NcclBuffer to[] = {NcclBuffer(kSmall), NcclBuffer(kSmall)};
  receive(1, to[0]);
  EXPECT_EQ(nccl().receive(to[1].data(), kSmall, ncclFloat32, 0, member(1).comm(), other),
            ncclInProgress);
  EXPECT_EQ(member(1).settle(), ncclSuccess);
  const NcclBuffer from[] = {NcclBuffer(kSmall, 100), NcclBuffer(kSmall, 200)};
  for (const NcclBuffer& buffer : from) send(0, buffer);
  EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
  EXPECT_TRUE(to[0].counts_from(100));
  EXPECT_TRUE(to[1].counts_from(200));
  EXPECT_EQ(cudaStreamDestroy(other), cudaSuccess);
  expect_none();
}

TEST_F(CudaNcclDouble, OnlyASmallSendEndsBeforeItsReceive) {
  connect_two();
  const NcclBuffer small(kSmall, 1);
  const NcclBuffer large(kLarge, 2);
  const NcclBuffer to_small(kSmall);
  const NcclBuffer to_large(kLarge);
  send(0, small);
  EXPECT_TRUE(member(0).ends());
  send(0, large);
  EXPECT_TRUE(member(0).hangs());
  receive(1, to_small);
  receive(1, to_large);
  EXPECT_TRUE(member(0).ends());
  EXPECT_TRUE(member(1).ends());
  EXPECT_TRUE(to_small.counts_from(1));
  EXPECT_TRUE(to_large.counts_from(2));
  // Nor must that be relied on.
  setenv("RRFP_DOUBLE_WITH", "green-contexts,late-sends", 1);
  send(0, small);
  EXPECT_TRUE(member(0).hangs());
  receive(1, to_small);
  EXPECT_TRUE(member(0).ends());
  expect_none();
}

TEST_F(CudaNcclDouble, AMessageMayBeEmpty) {
  connect_two();
  for (const bool sends : {true, false}) {
    EXPECT_EQ(sends ? nccl().send(nullptr, 0, ncclInt8, 1, member(0).comm(), member(0).stream())
                    : nccl().receive(nullptr, 0, ncclInt8, 0, member(1).comm(), member(1).stream()),
              ncclInProgress);
    EXPECT_EQ(member(sends ? 0 : 1).settle(), ncclSuccess);
  }
  EXPECT_TRUE(member(1).ends());
  expect_none();
}

TEST_F(CudaNcclDouble, AllGatherBringsAllPartsToAll) {
  const ncclUniqueId id = new_nccl_id();
  for (int rank = 0; rank < 3; ++rank) {
    members_.push_back(std::make_unique<NcclMember>(id, rank, 3));
  }
  for (const std::size_t count : {kSmall, kLarge}) {
    std::vector<std::unique_ptr<NcclBuffer>> all;
    std::vector<std::unique_ptr<NcclBuffer>> parts;
    for (int rank = 0; rank < 3; ++rank) {
      all.push_back(std::make_unique<NcclBuffer>(3 * count));
      parts.push_back(std::make_unique<NcclBuffer>(count, 1000.0F * static_cast<float>(rank)));
      EXPECT_EQ(member(rank).settle(), ncclSuccess);
      EXPECT_EQ(member(rank).all_gather(*parts.back(), *all.back()), ncclInProgress);
    }
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(member(rank).settle(), ncclSuccess);
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE(member(rank).ends());
      for (std::size_t part = 0; part < 3; ++part) {
        EXPECT_TRUE(all[rank]->counts_from(1000.0F * static_cast<float>(part), part * count, count))
            << "part " << part << " at rank " << rank;
      }
    }
  }
  expect_none();
}

TEST_F(CudaNcclDouble, AllGatherMayBeInPlace) {
  connect_two();
  const NcclBuffer all[] = {NcclBuffer(2 * kSmall, 0), NcclBuffer(2 * kSmall, 5000)};
  for (int rank = 0; rank < 2; ++rank) {
    float* const part = all[rank].data() + static_cast<std::size_t>(rank) * kSmall;
    EXPECT_EQ(nccl().all_gather(part, all[rank].data(), kSmall, ncclFloat32, member(rank).comm(),
                                member(rank).stream()),
              ncclInProgress);
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(member(rank).settle(), ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(member(rank).ends());
    EXPECT_TRUE(all[rank].counts_from(0, 0, kSmall));
    EXPECT_TRUE(all[rank].counts_from(5000 + kSmall, kSmall, kSmall));
  }
  expect_none();
}

TEST_F(CudaNcclDouble, OneMemberMaySendToItselfInAGroup) {
  NcclMember only(new_nccl_id(), 0, 1);
  EXPECT_EQ(only.settle(), ncclSuccess);
  const NcclBuffer from(kLarge, 11);
  const NcclBuffer to(kLarge);
  EXPECT_EQ(nccl().group_start(), ncclSuccess);
  EXPECT_EQ(only.send(from, 0), ncclSuccess) << "nothing happens before the group ends";
  EXPECT_EQ(only.receive(to, 0), ncclSuccess);
  EXPECT_EQ(nccl().group_end(), ncclInProgress);
  EXPECT_EQ(only.settle(), ncclSuccess);
  EXPECT_TRUE(only.ends());
  EXPECT_TRUE(to.counts_from(11));
  EXPECT_EQ(only.send(from, 0), ncclInvalidUsage);
  expect_last_error("Trying to send to self without a matching recv");
  EXPECT_EQ(only.all_gather(from, to), ncclInProgress);
  EXPECT_EQ(only.settle(), ncclSuccess);
  EXPECT_TRUE(only.ends());
  expect_none();
}

TEST_F(CudaNcclDouble, AnExchangeOfLargeMessagesNeedsAGroup) {
  connect_two();
  const NcclBuffer from[] = {NcclBuffer(kLarge, 100), NcclBuffer(kLarge, 200)};
  const NcclBuffer to[] = {NcclBuffer(kLarge), NcclBuffer(kLarge)};
  for (int rank = 0; rank < 2; ++rank) {
    nccl().group_start();
    EXPECT_EQ(member(rank).send(from[rank], 1 - rank), ncclSuccess);
    EXPECT_EQ(member(rank).receive(to[rank], 1 - rank), ncclSuccess);
    EXPECT_EQ(nccl().group_end(), ncclInProgress);
    EXPECT_EQ(member(rank).settle(), ncclSuccess);
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(member(rank).ends());
  EXPECT_TRUE(to[0].counts_from(200));
  EXPECT_TRUE(to[1].counts_from(100));
  for (int rank = 0; rank < 2; ++rank) send(rank, from[rank]);
  for (int rank = 0; rank < 2; ++rank) receive(rank, to[rank]);
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(member(rank).hangs());
  for (int rank = 0; rank < 2; ++rank) member(rank).abort();
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(member(rank).ends());
  expect_none();
}

TEST_F(CudaNcclDouble, AGroupMayHaveSeveralCommunicators) {
  connect_two();
  const NcclBuffer from(kSmall, 9);
  const NcclBuffer to(kSmall);
  nccl().group_start();
  EXPECT_EQ(nccl().group_start(), ncclSuccess);
  EXPECT_EQ(member(1).receive(to, 0), ncclSuccess);
  EXPECT_EQ(nccl().group_end(), ncclSuccess) << "it is not the last";
  EXPECT_EQ(member(0).send(from, 1), ncclSuccess);
  EXPECT_EQ(nccl().group_end(), ncclInProgress);
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(member(rank).settle(), ncclSuccess);
  EXPECT_TRUE(member(1).ends());
  EXPECT_TRUE(to.counts_from(9));
  EXPECT_EQ(nccl().group_end(), ncclInvalidUsage);
  expect_last_error("not in a group");
  expect_none();
}

// One stream each; two communicators, whose all-gathers are in different orders.
TEST_F(CudaNcclDouble, CollectivesInDifferentOrdersHangUntilTheyAreAborted) {
  const ncclUniqueId ids[] = {new_nccl_id(), new_nccl_id()};
  // By communicator, then rank: 0.0, 0.1, 1.0, 1.1.
  for (const ncclUniqueId& id : ids) {
    for (int rank = 0; rank < 2; ++rank) {
      members_.push_back(std::make_unique<NcclMember>(id, rank, 2));
    }
  }
  const NcclBuffer part(kSmall);
  std::vector<std::unique_ptr<NcclBuffer>> all;
  const auto gather = [&](int communicator, int rank) {
    all.push_back(std::make_unique<NcclBuffer>(2 * kSmall));
    EXPECT_EQ(nccl().all_gather(part.data(), all.back()->data(), kSmall, ncclFloat32,
                                member(2 * communicator + rank).comm(), member(rank).stream()),
              ncclInProgress);
  };
  const auto settle_all = [&] {
    for (const auto& member : members_) EXPECT_EQ(member->settle(), ncclSuccess);
  };
  settle_all();
  for (const bool same : {true, false}) {
    for (int place = 0; place < 2; ++place) {
      gather(place, 0);
      gather(same ? place : 1 - place, 1);
      settle_all();
      EXPECT_TRUE(!same || (member(0).ends() && member(1).ends()));
    }
  }
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(member(rank).hangs());
  for (const auto& member : members_) member->abort();
  for (int rank = 0; rank < 2; ++rank) EXPECT_TRUE(member(rank).ends());
  expect_none();
}

TEST_F(CudaNcclDouble, AnAbortEndsOnlyWhatIsOfItsMember) {
  connect_two();
  const NcclBuffer to[] = {NcclBuffer(kSmall, 1), NcclBuffer(kSmall, 1)};
  for (int rank = 0; rank < 2; ++rank) receive(rank, to[rank]);
  member(0).abort();
  EXPECT_TRUE(member(0).ends());
  EXPECT_TRUE(to[0].counts_from(1)) << "it ended without data";
  EXPECT_TRUE(member(1).hangs());
  EXPECT_EQ(member(1).ask(), ncclSuccess) << "it has not heard of it";
  member(1).abort();
  EXPECT_TRUE(member(1).ends());
  expect_none();
}

TEST_F(CudaNcclDouble, FinalizingIsInProgressUntilTheStreamsAreDone) {
  connect_two();
  const NcclBuffer from(kSmall);
  const NcclBuffer to(kSmall);
  receive(1, to);
  EXPECT_EQ(nccl().finalize(member(1).comm()), ncclInProgress);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(member(1).ask(), ncclInProgress);
  send(0, from);
  EXPECT_EQ(member(1).settle(), ncclSuccess);
  EXPECT_EQ(nccl().finalize(member(0).comm()), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(nccl().destroy(member(rank).let_go()), ncclSuccess);
  }
  DoubleMachine::get().check(
      [](DoubleChecks& checks) { EXPECT_EQ(checks.communicators_out(), 0U); });
  expect_none();
}

TEST_F(CudaNcclDouble, BlockingCommunicatorsWaitInTheirCalls) {
  const ncclUniqueId id = new_nccl_id();
  const NcclBuffer from(kSmall, 4);
  const NcclBuffer to(kSmall);
  const auto live = [&](int rank) {
    EXPECT_EQ(cudaSetDevice(rank), cudaSuccess);
    cudaStream_t stream = nullptr;
    EXPECT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, 0), cudaSuccess);
    ncclComm_t comm = nullptr;
    EXPECT_EQ(nccl().init(&comm, 2, id, rank, nullptr), ncclSuccess);
    EXPECT_EQ(rank == 0 ? nccl().send(from.data(), kSmall, ncclFloat32, 1, comm, stream)
                        : nccl().receive(to.data(), kSmall, ncclFloat32, 0, comm, stream),
              ncclSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(nccl().finalize(comm), ncclSuccess);
    EXPECT_EQ(nccl().destroy(comm), ncclSuccess);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  };
  std::thread peer(live, 1);
  live(0);
  peer.join();
  EXPECT_TRUE(to.counts_from(4));
  expect_none();
}

TEST_F(CudaNcclDouble, RefusesOperationsThatCannotBe) {
  connect_two();
  const NcclBuffer buffer(kSmall);
  ncclComm_t comm = member(0).comm();
  cudaStream_t stream = member(0).stream();
  EXPECT_EQ(member(0).send(buffer, 2), ncclInvalidArgument);
  expect_last_error("ncclSend : invalid peer 2 (should be >= 0 and < 2)");
  EXPECT_EQ(nccl().receive(nullptr, 1, ncclFloat32, 1, comm, stream), ncclInvalidArgument);
  expect_last_error("ncclRecv : a buffer is null");
  EXPECT_EQ(nccl().all_gather(buffer.data(), buffer.data(), 1, ncclNumTypes, comm, stream),
            ncclInvalidArgument);
  expect_last_error("ncclAllGather : invalid type");
  EXPECT_EQ(nccl().send(buffer.data(), 1, ncclFloat32, 1, nullptr, stream), ncclInvalidArgument);
  expect_last_error("comm argument is NULL");
  EXPECT_STREQ(nccl().error_string(ncclInProgress), "NCCL operation in progress");
  expect_none();
}

// As many as the environment says, and each by a name of its own.
TEST_F(CudaNcclDouble, DevicesAreAsManyAsWanted) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 8);
  EXPECT_EQ(cudaSetDevice(8), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(7), cudaSuccess);
  std::thread([] {
    int device = -1;
    EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
    EXPECT_EQ(device, 0) << "each thread has its own";
  }).join();
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 7);
  char text[2][32] = {};
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cudaDeviceGetPCIBusId(text[i], sizeof(text[i]), i), cudaSuccess);
  }
  EXPECT_STRNE(text[0], text[1]);
  setenv("RRFP_DOUBLE_DEVICES", "0", 1);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  for (const char* wrong : {"many", "65", "-1", "2x"}) {
    setenv("RRFP_DOUBLE_DEVICES", wrong, 1);
    EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorInvalidConfiguration) << wrong;
  }
  unsetenv("RRFP_DOUBLE_DEVICES");
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

}  // namespace
}  // namespace rrfp
