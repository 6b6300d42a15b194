#include "executor/cuda_nccl_communicator.h"

#include <string>
#include <thread>
#include <utility>

#include "executor/clock.h"

namespace rrfp {

Result<ncclUniqueId> make_nccl_id(const CudaNcclFunctions& nccl) {
  ncclUniqueId id;
  const ncclResult_t code = nccl.unique_id(&id);
  if (code == ncclSuccess) return id;
  return Error{std::string("ncclGetUniqueId: ") + nccl.error_string(code)};
}

Error CudaNcclCommunicator::error(const char* call, ncclResult_t code) const {
  std::string text = std::string(call) + ": " + nccl_.error_string(code);
  const char* more = nccl_.last_error(communicator_);
  if (more != nullptr && *more != '\0') text += std::string(" (") + more + ")";
  return Error{text};
}

template <typename Call>
Result<void> CudaNcclCommunicator::issue(const char* name, Call call) {
  if (communicator_ == nullptr) return Error{std::string(name) + ": after an abort"};
  const ncclResult_t code = call(communicator_);
  if (is_accepted(code)) return {};
  failed_ = true;
  return error(name, code);
}

Result<std::unique_ptr<CudaNcclCommunicator>> CudaNcclCommunicator::create(
    const CudaNcclFunctions& nccl, const ncclUniqueId& id, int ranks, int rank, int most_blocks,
    CudaPeerWait& wait) {
  std::unique_ptr<CudaNcclCommunicator> made(new CudaNcclCommunicator(nccl));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  // Its blocks are no cluster. By default four of them are one on devices that have clusters, and
  // then start only where as many SMs of one processing cluster are free; tasks leave SMs free
  // wherever their own blocks end.
  config.cgaClusterSize = 0;
  if (most_blocks != kAnyBlocks) config.maxCTAs = most_blocks;
  const ncclResult_t code = nccl.init(&made->communicator_, ranks, id, rank, &config);
  if (!is_accepted(code)) {
    made->failed_ = true;
    return made->error("ncclCommInitRankConfig", code);
  }
  if (Result<void> ready = made->wait_until_ready(wait); !ready.ok()) return ready.error();
  return made;
}

CudaNcclCommunicator::~CudaNcclCommunicator() {
  if (communicator_ == nullptr) return;
  if (finalized()) {
    nccl_.destroy(communicator_);
  } else {
    static_cast<void>(abort());
  }
}

bool CudaNcclCommunicator::finalized() {
  if (failed_) return false;
  CudaPeerWait wait(kMostFinalizeNs);
  Result<void> begun = issue("ncclCommFinalize", nccl_.finalize);
  return begun.ok() && wait_until_ready(wait).ok();
}

Result<void> CudaNcclCommunicator::abort() {
  if (communicator_ == nullptr) return {};
  const ncclResult_t code = nccl_.abort(std::exchange(communicator_, nullptr));
  if (is_accepted(code)) return {};
  return error("ncclCommAbort", code);
}

Result<void> CudaNcclCommunicator::abort_together(const std::vector<CudaNcclCommunicator*>& all) {
  std::vector<CudaNcclCommunicator*> alive;
  for (CudaNcclCommunicator* const one : all) {
    if (one != nullptr && one->communicator_ != nullptr) alive.push_back(one);
  }
  if (alive.empty()) return {};
  std::vector<Result<void>> results(alive.size());
  const Result<void> grouped = abort_in_group(alive.front()->nccl_, alive);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < alive.size(); ++i) {
    if (alive[i]->communicator_ == nullptr) continue;
    threads.emplace_back([&result = results[i], one = alive[i]] { result = one->abort(); });
  }
  for (std::thread& thread : threads) thread.join();
  if (!grouped.ok()) return grouped;
  for (const Result<void>& result : results) {
    if (!result.ok()) return result;
  }
  return {};
}

// An abort that is accepted has told its kernels to end. Once all of a group are, the communicators
// are NCCL's whatever the group ends in, and must not be touched again. Where one is refused the
// group does nothing at its end but fail.
Result<void> CudaNcclCommunicator::abort_in_group(const CudaNcclFunctions& nccl,
                                                  const std::vector<CudaNcclCommunicator*>& alive) {
  int version = 0;
  nccl.version(&version);
  if (version < kOldestWithGroupedAbort) return {};
  const auto failed = [&](const char* call, ncclResult_t code) {
    return Error{std::string(call) + ": " + nccl.error_string(code)};
  };
  if (const ncclResult_t begun = nccl.group_start(); begun != ncclSuccess) {
    return failed("ncclGroupStart", begun);
  }
  Result<void> result;
  std::size_t accepted = 0;
  while (result.ok() && accepted < alive.size()) {
    const ncclResult_t code = nccl.abort(alive[accepted]->communicator_);
    if (is_accepted(code)) {
      ++accepted;
    } else {
      result = failed("ncclCommAbort in a group", code);
    }
  }
  const ncclResult_t ended = nccl.group_end();
  if (ended != ncclSuccess && accepted < alive.size()) accepted = 0;
  for (std::size_t i = 0; i < accepted; ++i) alive[i]->communicator_ = nullptr;
  if (!result.ok() || is_accepted(ended)) return result;
  return failed("ncclGroupEnd of aborts", ended);
}

Result<void> CudaNcclCommunicator::send(const void* from, std::size_t bytes, int peer,
                                        cudaStream_t stream) {
  return issue("ncclSend", [&](ncclComm_t communicator) {
    return nccl_.send(from, bytes, ncclInt8, peer, communicator, stream);
  });
}

Result<void> CudaNcclCommunicator::receive(void* to, std::size_t bytes, int peer,
                                           cudaStream_t stream) {
  return issue("ncclRecv", [&](ncclComm_t communicator) {
    return nccl_.receive(to, bytes, ncclInt8, peer, communicator, stream);
  });
}

Result<void> CudaNcclCommunicator::all_gather(const void* part, void* all, std::size_t bytes,
                                              cudaStream_t stream) {
  return issue("ncclAllGather", [&](ncclComm_t communicator) {
    return nccl_.all_gather(part, all, bytes, ncclInt8, communicator, stream);
  });
}

Result<bool> CudaNcclCommunicator::ready() {
  ncclResult_t state = ncclSuccess;
  Result<void> asked = issue("ncclCommGetAsyncError", [&](ncclComm_t communicator) {
    return nccl_.async_error(communicator, &state);
  });
  if (!asked.ok()) return asked.error();
  if (state == ncclSuccess) return true;
  if (state == ncclInProgress) return false;
  failed_ = true;
  return error("NCCL reports", state);
}

Result<void> CudaNcclCommunicator::wait_until_ready(CudaPeerWait& wait) {
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  // A launch takes microseconds; making a communicator, seconds.
  constexpr std::int64_t kSpinNs = 100'000;
  while (true) {
    const Result<bool> done = ready();
    if (!done.ok()) return done.error();
    if (*done) return {};
    if (const Result<void> on = wait.go_on("NCCL was still in progress"); !on.ok()) {
      return failed(on.error());
    }
    if (MonotonicClock::read_ns() - begin_ns > kSpinNs) sleep_for_ns(kBetweenNcclLooksNs);
  }
}

Result<void> CudaNcclCommunicator::wait_until_done(CudaMarks& marks, CudaPeerWait& wait) {
  if (Result<void> in_stream = wait_until_ready(wait); !in_stream.ok()) return in_stream;
  const Result<std::int64_t> mark = marks.leave();
  if (!mark.ok()) return failed(mark.error());
  while (true) {
    const Result<std::int64_t> reached = marks.reached();
    if (!reached.ok()) return failed(reached.error());
    if (*reached >= *mark) return {};
    // An error of a peer's shows up here; one that is gone does not.
    if (const Result<bool> well = ready(); !well.ok()) return well.error();
    if (const Result<void> on = wait.go_on("the other end had not come"); !on.ok()) {
      return failed(on.error());
    }
    sleep_for_ns(kBetweenNcclLooksNs);
  }
}

}  // namespace rrfp
