// Goal: the checks of NCCL's double bite. Host code that is wrong in one way each
// (the planted bugs), which hardware would punish by a hang or by wrong numbers
// now and then, is told what it did.
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "executor/cuda_compute.h"
#include "executor/cuda_double_loading.h"
#include "executor/cuda_environment.h"
#include "executor/cuda_launchers.h"
#include "executor/cuda_marks.h"
#include "executor/cuda_model_launchers.h"
#include "tests/executor/cuda_nccl_for_tests.h"

namespace rrfp {
namespace {

class CudaNcclMisuse : public NcclTest {
 protected:
  void SetUp() override {
    NcclTest::SetUp();
    for (auto& buffer : {&numbers_, &large_, &into_, &into_other_}) {
      *buffer = std::make_unique<NcclBuffer>(buffer == &numbers_ ? kSmall : 2 * kLarge, 1);
    }
    const ncclUniqueId id = new_nccl_id();
    for (int rank = 0; rank < 2; ++rank) {
      members_[rank] = std::make_unique<NcclMember>(id, rank, 2);
    }
    for (const auto& member : members_) ASSERT_EQ(member->settle(), ncclSuccess);
    // Connected both ways.
    for (int rank = 0; rank < 2; ++rank) {
      nccl().group_start();
      member(rank).send(*large_, 1 - rank);
      member(rank).receive(rank == 0 ? *into_ : *into_other_, 1 - rank);
      nccl().group_end();
    }
    for (const auto& member : members_) ASSERT_EQ(member->settle(), ncclSuccess);
    for (const auto& member : members_) ASSERT_TRUE(member->ends());
  }
  void TearDown() override {
    for (const auto& member : members_) member->abort();
    for (auto& member : members_) member.reset();
    for (auto& buffer : {&numbers_, &large_, &into_, &into_other_}) buffer->reset();
    NcclTest::TearDown();
  }
  NcclMember& member(int rank) { return *members_[rank]; }

  std::unique_ptr<NcclMember> members_[2];
  std::unique_ptr<NcclBuffer> numbers_;  // few; the others are many
  std::unique_ptr<NcclBuffer> large_;
  std::unique_ptr<NcclBuffer> into_;
  std::unique_ptr<NcclBuffer> into_other_;
};

// The mark is in the stream before the send is.
TEST_F(CudaNcclMisuse, ABlockIsGivenBackByAMarkThatWasLeftWhileTheSendWasInProgress) {
  Result<std::unique_ptr<CudaMarks>> marks = CudaMarks::create(member(0).stream());
  ASSERT_TRUE(marks.ok());
  note_block_taken(large_->data(), large_->count() * sizeof(float));
  EXPECT_EQ(member(0).send(*large_, 1), ncclInProgress);
  const Result<std::int64_t> mark = (*marks)->leave();
  ASSERT_TRUE(mark.ok());
  ASSERT_EQ(cudaStreamSynchronize(member(0).stream()), cudaSuccess);
  EXPECT_EQ(*(*marks)->reached(), *mark);
  note_block_returned(large_->data());
  expect_none();
  EXPECT_EQ(member(0).ask(), ncclInProgress);
  EXPECT_EQ(member(0).ask(), ncclUnhandledCudaError);
  expect_objection("an NCCL send to rank 1 uses a block after it was returned");
  expect_last_error("uses a block after it was returned");
  EXPECT_NE(std::string(nccl().error_string(ncclUnhandledCudaError)).find("after it was returned"),
            std::string::npos);
}

TEST_F(CudaNcclMisuse, ABlockIsGivenBackBeforeItsSendHasEnded) {
  note_block_taken(large_->data(), large_->count() * sizeof(float));
  EXPECT_EQ(member(0).send(*large_, 1), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  EXPECT_TRUE(member(0).hangs());
  expect_none();
  note_block_returned(large_->data());
  expect_objection("a block is returned that an NCCL send to rank 1 in stream");
}

// On the device of the member that waits; on another one it is no harm.
class CudaNcclMisuseOfMemory : public CudaNcclMisuse {
 protected:
  // What `call` is told, with a receive in the stream of device 0.
  void expect_to_wait(const std::string& name, const std::function<cudaError_t()>& call) {
    ASSERT_EQ(member(0).receive(*into_, 1), ncclInProgress);
    ASSERT_EQ(member(0).settle(), ncclSuccess);
    {
      const OnIdleDevice idle;
      EXPECT_EQ(call(), cudaSuccess);
    }
    expect_none();
    cudaSetDevice(0);
    EXPECT_EQ(call(), cudaErrorAssert);
    expect_objection(name + " waits for device 0, on which a kernel of NCCL waits for its peer");
  }
};

TEST_F(CudaNcclMisuseOfMemory, IsAllocatedWhileATransferWaits) {
  void* memory = nullptr;
  expect_to_wait("cudaMalloc", [&] {
    std::free(std::exchange(memory, nullptr));
    return cudaMalloc(&memory, 64);
  });
  std::free(memory);
}

TEST_F(CudaNcclMisuseOfMemory, IsFreedWhileATransferWaits) {
  void* memory[2] = {};
  for (void*& one : memory) ASSERT_EQ(cudaMalloc(&one, 64), cudaSuccess);
  int next = 0;
  expect_to_wait("cudaFree", [&] { return cudaFree(memory[next++]); });
}

TEST_F(CudaNcclMisuseOfMemory, OfTheHostIsAllocatedWhileATransferWaits) {
  void* memory = nullptr;
  expect_to_wait("cudaHostAlloc", [&] {
    std::free(std::exchange(memory, nullptr));
    return cudaHostAlloc(&memory, 64, cudaHostAllocMapped);
  });
  std::free(memory);
}

TEST_F(CudaNcclMisuseOfMemory, OfTheHostIsFreedWhileATransferWaits) {
  void* memory[2] = {};
  for (void*& one : memory) {
    ASSERT_EQ(cudaHostAlloc(&one, 64, cudaHostAllocMapped), cudaSuccess);
  }
  int next = 0;
  expect_to_wait("cudaFreeHost", [&] { return cudaFreeHost(memory[next++]); });
}

// A name of its own in every run of the test, for what was used once is loaded.
TEST_F(CudaNcclMisuse, AKernelIsFirstUsedWhileATransferWaits) {
  static int run = 0;
  const std::string kernel = "kernel " + std::to_string(++run);
  ASSERT_EQ(member(0).receive(*into_, 1), ncclInProgress);
  ASSERT_EQ(member(0).settle(), ncclSuccess);
  cudaSetDevice(1);
  load_kernel(kernel);
  cudaSetDevice(0);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  load_kernel(kernel);
  unsetenv("CUDA_MODULE_LOADING");
  expect_none();
  load_kernel(kernel);
  expect_objection("the first use of " + kernel + " loads it, which waits for device 0");
}

TEST_F(CudaNcclMisuse, ALibraryChoosesAnotherKernelWhileATransferWaits) {
  static int rows = 1'000;
  ++rows;
  Result<std::unique_ptr<CudaCompute>> compute = CudaCompute::create(member(1).stream(), false);
  ASSERT_TRUE(compute.ok());
  const CudaMatrix square = CudaMatrix::dense(numbers_->data(), 2, 2);
  const auto multiply = [&](int count) {
    (*compute)->product(CudaMatrix::dense(large_->data(), count, 2), square,
                        CudaMatrix::dense(into_other_->data(), count, 2));
  };
  cudaSetDevice(0);
  multiply(rows - 1);
  ASSERT_EQ(member(0).receive(*into_, 1), ncclInProgress);
  ASSERT_EQ(member(0).settle(), ncclSuccess);
  multiply(rows - 1);
  EXPECT_FALSE((*compute)->failure());
  multiply(rows);
  expect_objection("the first use of a product of matrices, 2 x 2 by 2 x " + std::to_string(rows));
  member(0).abort();
}

TEST(CudaEnvironment, IsSetForConnectedProcessesUnlessAUserHasSetIt) {
  const char* const names[] = {"CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_MODULE_LOADING",
                               "NCCL_RUNTIME_CONNECT"};
  for (const char* name : names) unsetenv(name);
  set_cuda_environment(false);
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
  EXPECT_EQ(std::getenv("CUDA_MODULE_LOADING"), nullptr);
  EXPECT_EQ(std::getenv("NCCL_RUNTIME_CONNECT"), nullptr);
  set_cuda_environment(true);
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
  EXPECT_STREQ(std::getenv("NCCL_RUNTIME_CONNECT"), "0");
  for (const char* name : names) setenv(name, "LAZY", 1);
  set_cuda_environment(true);
  for (const char* name : names) EXPECT_STREQ(std::getenv(name), "LAZY");
  for (const char* name : names) unsetenv(name);
}

TEST_F(CudaNcclMisuse, MemoryIsFreedBeforeItsReceiveHasEnded) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMalloc(&memory, 64), cudaSuccess);
  EXPECT_EQ(nccl().receive(memory, 64, ncclInt8, 1, member(0).comm(), member(0).stream()),
            ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  expect_none();
  const OnIdleDevice idle;  // what waits is not the point here
  EXPECT_EQ(cudaFree(memory), cudaErrorAssert);
  expect_objection("memory is freed that an NCCL receive from rank 1 in stream");
}

TEST_F(CudaNcclMisuse, MemoryIsReceivedIntoThatIsNotAllocated) {
  std::vector<float> on_the_host(kSmall);
  EXPECT_EQ(nccl().receive(on_the_host.data(), kSmall, ncclFloat32, 1, member(0).comm(),
                           member(0).stream()),
            ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclUnhandledCudaError);
  expect_objection("an NCCL receive from rank 1 uses memory that is not allocated");
}

TEST_F(CudaNcclMisuse, AKernelReadsWhatIsBeingReceived) {
  EXPECT_EQ(member(0).receive(*numbers_, 1), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  expect_none();
  EXPECT_EQ(launch_check_pattern(numbers_->data(), 64, 0, {}, member(1).stream()), cudaErrorAssert);
  expect_objection("uses what an NCCL receive from rank 1 in stream");
}

TEST_F(CudaNcclMisuse, AKernelWritesWhatIsBeingSentButMayReadIt) {
  EXPECT_EQ(member(0).send(*large_, 1), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  EXPECT_EQ(launch_add(1, into_->data(), large_->data(), member(1).stream()), cudaErrorAssert);
  expect_objection("uses what an NCCL send to rank 1 in stream");
}

TEST_F(CudaNcclMisuse, AReceiveMeetsASendOfAnotherSize) {
  const NcclBuffer shorter(10);
  EXPECT_EQ(member(0).send(*numbers_, 1), ncclInProgress);
  EXPECT_EQ(member(1).receive(shorter, 0), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  member(1).settle();
  EXPECT_TRUE(member(1).ends());
  expect_objection(
      "the receive of 40 bytes of float32 by rank 1 meets the send of 4000 bytes of "
      "float32 by rank 0");
  EXPECT_TRUE(shorter.counts_from(0)) << "nothing was written";
}

TEST_F(CudaNcclMisuse, AReceiveMeetsASendOfAnotherType) {
  EXPECT_EQ(
      nccl().send(numbers_->data(), 4 * kSmall, ncclInt8, 1, member(0).comm(), member(0).stream()),
      ncclInProgress);
  EXPECT_EQ(
      nccl().receive(into_->data(), kSmall, ncclFloat32, 0, member(1).comm(), member(1).stream()),
      ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  member(1).settle();
  EXPECT_TRUE(member(1).ends());
  expect_objection("4000 bytes of float32 by rank 1 meets the send of 4000 bytes of int8");
}

// The sizes of the second: both have done the first.
TEST_F(CudaNcclMisuse, MembersIssueCollectivesOfDifferentSizes) {
  for (const std::size_t less : {0, 1}) {
    for (int rank = 0; rank < 2; ++rank) {
      const NcclBuffer& all = rank == 0 ? *into_ : *into_other_;
      EXPECT_EQ(nccl().all_gather(numbers_->data(), all.data(), kSmall - (rank == 1 ? less : 0),
                                  ncclFloat32, member(rank).comm(), member(rank).stream()),
                ncclInProgress);
    }
    for (const auto& member : members_) member->settle();
    for (const auto& member : members_) EXPECT_TRUE(member->ends());
    if (less == 0) expect_none();
  }
  expect_objection("all-gather 1 of rank ");
  expect_objection(" with 4000 bytes of float32 a member");
  expect_objection(" with 3996 bytes of float32 a member");
}

TEST_F(CudaNcclMisuse, ACollectiveMeetsAMessage) {
  EXPECT_EQ(member(0).send(*numbers_, 1), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  EXPECT_EQ(member(1).all_gather(*numbers_, *into_), ncclInProgress);
  member(1).settle();
  EXPECT_TRUE(member(1).ends());
  expect_objection(
      "all-gather 0 of rank 1 with 4000 bytes of float32 a member meets the send of "
      "4000 bytes of float32 by rank 0");
}

TEST_F(CudaNcclMisuse, ACallIsMadeWhileACommunicatorIsInProgress) {
  EXPECT_EQ(member(0).send(*numbers_, 1), ncclInProgress);
  EXPECT_EQ(member(0).send(*numbers_, 1), ncclInvalidUsage);
  expect_objection("ncclSend is called on a communicator that is in progress");
  expect_last_error("ncclCommGetAsyncError has yet to give ncclSuccess");
}

TEST_F(CudaNcclMisuse, ACommunicatorIsUsedBeforeAllHaveAttached) {
  NcclMember early(new_nccl_id(), 0, 2);
  EXPECT_EQ(early.all_gather(*numbers_, *into_), ncclInvalidUsage);
  expect_objection("ncclAllGather is called on a communicator that is in progress");
}

TEST_F(CudaNcclMisuse, ACommunicatorIsFinalizedWhileItIsInProgress) {
  EXPECT_EQ(member(0).receive(*into_, 1), ncclInProgress);
  EXPECT_EQ(nccl().finalize(member(0).comm()), ncclInvalidUsage);
  expect_objection("ncclCommFinalize is called on a communicator that is in progress");
}

TEST_F(CudaNcclMisuse, ACommunicatorIsUsedAfterItWasFinalized) {
  EXPECT_EQ(nccl().finalize(member(0).comm()), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  EXPECT_EQ(member(0).send(*numbers_, 1), ncclInvalidUsage);
  expect_objection("ncclSend is called on a communicator that was finalized");
}

TEST_F(CudaNcclMisuse, ACommunicatorIsDestroyedBeforeItIsFinalized) {
  EXPECT_EQ(nccl().finalize(member(0).comm()), ncclInProgress);
  EXPECT_EQ(nccl().destroy(member(0).let_go()), ncclInvalidUsage);
  expect_objection("ncclCommDestroy is called on a communicator that is in progress");
}

TEST_F(CudaNcclMisuse, ACommunicatorIsDestroyedWhoseWorkIsInAStream) {
  EXPECT_EQ(member(0).receive(*into_, 1), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  EXPECT_EQ(nccl().destroy(member(0).let_go()), ncclInvalidUsage);
  expect_objection("ncclCommDestroy is called on a communicator whose work is still in a stream");
  EXPECT_TRUE(member(0).ends());
}

TEST_F(CudaNcclMisuse, ACommunicatorIsUsedAfterItWasAborted) {
  ncclComm_t const comm = member(0).let_go();
  EXPECT_EQ(nccl().abort(comm), ncclSuccess);
  expect_none();
  EXPECT_EQ(nccl().send(numbers_->data(), 1, ncclFloat32, 1, comm, member(0).stream()),
            ncclInvalidUsage);
  expect_objection("ncclSend is called on a communicator after ncclCommAbort");
}

// NCCL frees what a communicator has, which waits for the kernels of the other one.
TEST_F(CudaNcclMisuse, CommunicatorsOfOneDeviceAreAbortedOneAfterTheOther) {
  const ncclUniqueId id = new_nccl_id();
  NcclMember other(id, 0, 2);
  NcclMember its_peer(id, 1, 2);
  for (NcclMember* const of : {&other, &its_peer}) ASSERT_EQ(of->settle(), ncclSuccess);
  const NcclBuffer to(kSmall);
  EXPECT_EQ(other.send(*numbers_, 1), ncclInProgress);  // connects them, and ends
  EXPECT_EQ(its_peer.receive(to, 0), ncclInProgress);
  for (NcclMember* const of : {&other, &its_peer}) EXPECT_EQ(of->settle(), ncclSuccess);
  EXPECT_TRUE(its_peer.ends());
  EXPECT_EQ(other.send(*large_, 1), ncclInProgress);
  EXPECT_EQ(member(0).receive(*into_, 1), ncclInProgress);
  for (NcclMember* const of : {&member(0), &other}) EXPECT_EQ(of->settle(), ncclSuccess);
  expect_none();
  EXPECT_EQ(nccl().abort(member(0).let_go()), ncclInvalidUsage);
  expect_objection("ncclCommAbort waits for device 0, on which another communicator's kernel");
  for (NcclMember* const of : {&member(0), &other}) EXPECT_TRUE(of->ends()) << "no test hangs";
}

TEST_F(CudaNcclMisuse, CommunicatorsAreAbortedInAGroupByAnNcclThatDoesThemOneAfterTheOther) {
  setenv("RRFP_DOUBLE_WITH", "nccl-2.21", 1);
  EXPECT_EQ(member(0).receive(*into_, 1), ncclInProgress);
  EXPECT_EQ(member(0).settle(), ncclSuccess);
  NcclMember idle(new_nccl_id(), 0, 1);
  ASSERT_EQ(idle.settle(), ncclSuccess);
  nccl().group_start();
  EXPECT_EQ(nccl().abort(idle.let_go()), ncclInvalidUsage);
  expect_objection("ncclCommAbort waits for device 0");
  nccl().abort(member(0).let_go());
  nccl().group_end();
}

TEST_F(CudaNcclMisuse, ACommunicatorIsDestroyedTwice) {
  ncclComm_t const comm = member(0).let_go();
  EXPECT_EQ(nccl().destroy(comm), ncclSuccess);
  expect_none();
  EXPECT_EQ(nccl().destroy(comm), ncclInvalidUsage);
  expect_objection("ncclCommDestroy is called on a communicator after ncclCommDestroy");
}

TEST_F(CudaNcclMisuse, ACommunicatorIsNeverGivenBack) {
  const auto out = [] {
    std::size_t count = 0;
    DoubleMachine::get().check([&](DoubleChecks& checks) { count = checks.communicators_out(); });
    return count;
  };
  EXPECT_EQ(out(), 2U);
  member(0).abort();
  EXPECT_EQ(nccl().destroy(member(1).let_go()), ncclSuccess);
  EXPECT_EQ(out(), 0U);
}

TEST_F(CudaNcclMisuse, AGroupHasOneCommunicatorInTwoStreams) {
  nccl().group_start();
  EXPECT_EQ(member(0).send(*numbers_, 1), ncclSuccess);
  EXPECT_EQ(
      nccl().receive(into_->data(), kSmall, ncclFloat32, 1, member(0).comm(), member(1).stream()),
      ncclSuccess);
  EXPECT_EQ(nccl().group_end(), ncclInvalidUsage);
  expect_objection("operations of one communicator in two streams");
}

}  // namespace
}  // namespace rrfp
