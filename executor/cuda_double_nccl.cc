// The functions of NCCL that are used, over the double's streams.
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "executor/clock.h"
#include "executor/cuda_double_devices.h"
#include "executor/cuda_double_fault.h"
#include "executor/cuda_double_nccl_communicator.h"
#include "executor/cuda_double_nccl_errors.h"
#include "executor/cuda_double_setting.h"
#include "executor/cuda_nccl_functions.h"

/// What the host code holds. It stays when the communicator is given back, so
/// that a use of it after that is seen for what it is.
struct ncclComm {
  std::shared_ptr<rrfp::DoubleNcclCommunicator> communicator;  // null: given back
  const char* given_back_by = nullptr;
};

namespace rrfp {

namespace {

using Communicator = std::shared_ptr<DoubleNcclCommunicator>;
using Operation = DoubleNcclOperation;

constexpr std::int64_t kMostAbortNs = 2'000'000'000;

static_assert(NCCL_UNIQUE_ID_BYTES == DoubleNcclBoard::kNameBytes);

// All that there ever were.
struct Handles {
  std::mutex mutex;
  std::set<ncclComm_t> all;
};

Handles& handles() {
  static Handles* const made = new Handles;
  return *made;
}

ncclComm_t add_handle(Communicator communicator) {
  const std::lock_guard<std::mutex> lock(handles().mutex);
  ncclComm_t const made = new ncclComm{std::move(communicator), nullptr};
  handles().all.insert(made);
  DoubleMachine::get().check([](DoubleChecks& checks) { checks.on_communicator_made(); });
  return made;
}

// Null where it is no communicator that is still out, which `why` then says.
// REQUIRES: the lock of the handles is held.
Communicator look_up_locked(ncclComm_t handle, const std::string& call, ncclResult_t& why) {
  if (handle == nullptr) {
    why = nccl_failure(ncclInvalidArgument, call + " : comm argument is NULL");
  } else if (handles().all.count(handle) == 0) {
    why = nccl_objection(call + " is called on what is no communicator");
  } else if (handle->given_back_by != nullptr) {
    why = nccl_objection(call + " is called on a communicator after " + handle->given_back_by);
  }
  return why == ncclSuccess ? handle->communicator : nullptr;
}

Communicator look_up(ncclComm_t handle, const std::string& call, ncclResult_t& why) {
  const std::lock_guard<std::mutex> lock(handles().mutex);
  return look_up_locked(handle, call, why);
}

Communicator give_back(ncclComm_t handle, const char* call, ncclResult_t& why) {
  const std::lock_guard<std::mutex> lock(handles().mutex);
  Communicator found = look_up_locked(handle, call, why);
  if (found == nullptr) return nullptr;
  handle->communicator = nullptr;
  handle->given_back_by = call;
  DoubleMachine::get().check([](DoubleChecks& checks) { checks.on_communicator_given_back(); });
  return found;
}

// It is out again: the group in which it was aborted does nothing.
void take_back(ncclComm_t handle, const Communicator& communicator) {
  const std::lock_guard<std::mutex> lock(handles().mutex);
  handle->communicator = communicator;
  handle->given_back_by = nullptr;
  DoubleMachine::get().check([](DoubleChecks& checks) { checks.on_communicator_made(); });
}

ncclResult_t refuse(const std::string& call) {
  return nccl_failure(ncclSystemError, call + " : the double was told to fail here");
}

/// What the calling thread has in groups that it has yet to end.
struct Group {
  int depth = 0;
  std::vector<std::pair<Communicator, std::vector<Operation>>> issued;  // by communicator
  std::vector<Communicator> attaching;                                  // that block
  std::vector<std::pair<ncclComm_t, Communicator>> aborted;
  bool refused = false;  // a call, for which the whole group does nothing

  void add(const Communicator& communicator, const Operation& operation) {
    for (auto& [of, operations] : issued) {
      if (of == communicator) return operations.push_back(operation);
    }
    issued.push_back({communicator, {operation}});
  }
};

Group& group() {
  thread_local Group of_thread;
  return of_thread;
}

// Of several results: a failure before what is in progress, and that before success.
void merge(ncclResult_t& all, ncclResult_t one) {
  if (all == ncclSuccess || (all == ncclInProgress && one != ncclSuccess)) all = one;
}

// What an abort frees is freed once the device is idle, and other communicators' kernels keep it
// busy as much as its own do; on hardware for good, if their abort comes after.
ncclResult_t wait_for_device(int device) {
  const std::int64_t give_up_ns = MonotonicClock::read_ns() + kMostAbortNs;
  while (spinning_kernels(device) > 0 && MonotonicClock::read_ns() < give_up_ns) pause_for_nccl();
  if (spinning_kernels(device) == 0) return ncclSuccess;
  const ncclResult_t objected = nccl_objection(
      "ncclCommAbort waits for device " + std::to_string(device) +
      ", on which another communicator's kernel waits for its peer: abort all in one group");
  const std::lock_guard<std::mutex> lock(handles().mutex);
  for (ncclComm_t const handle : handles().all) {
    if (handle->communicator != nullptr && handle->communicator->device() == device) {
      handle->communicator->abort();
    }
  }
  return objected;
}

// All is issued before anything is waited for: a thread may be several members.
ncclResult_t end(Group ended) {
  if (ended.refused) {
    for (const auto& [comm, communicator] : ended.aborted) take_back(comm, communicator);
    return nccl_failure(ncclInternalError, "a call of the group has failed");
  }
  for (const auto& [comm, communicator] : ended.aborted) wait_for_device(communicator->device());
  ncclResult_t result = nccl_verdict();
  std::vector<Communicator> waited_for = std::move(ended.attaching);
  for (const auto& [communicator, operations] : ended.issued) {
    if (result != ncclSuccess && result != ncclInProgress) return result;
    const ncclResult_t issued = communicator->issue(operations);
    const bool waits = issued == ncclInProgress && communicator->blocking();
    if (waits) waited_for.push_back(communicator);
    if (!waits) merge(result, issued);
  }
  for (const Communicator& communicator : waited_for) merge(result, communicator->wait());
  return result;
}

constexpr int kWithoutGroupedAbort = NCCL_VERSION(2, 21, 5);

bool is_old() { return double_is_set("RRFP_DOUBLE_WITH", "nccl-2.21"); }

ncclResult_t version(int* code) {
  *code = is_old() ? kWithoutGroupedAbort : NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t unique_id(ncclUniqueId* id) {
  if (double_fault("ncclGetUniqueId")) return refuse("ncclGetUniqueId");
  const std::string name = DoubleNcclBoard::new_name();
  std::memset(id->internal, 0, sizeof(id->internal));
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

ncclResult_t check_config(const ncclConfig_t& config) {
  const ncclConfig_t right = NCCL_CONFIG_INITIALIZER;
  if (config.magic != right.magic) {
    return nccl_failure(ncclInvalidArgument,
                        "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
  }
  if (config.blocking != NCCL_CONFIG_UNDEF_INT && config.blocking != 0 && config.blocking != 1) {
    return nccl_failure(ncclInvalidArgument, "Invalid config blocking attribute value " +
                                                 std::to_string(config.blocking));
  }
  if (config.maxCTAs != NCCL_CONFIG_UNDEF_INT && config.maxCTAs <= 0) {
    return nccl_failure(ncclInvalidArgument, "Invalid config max CTAs attribute value " +
                                                 std::to_string(config.maxCTAs));
  }
  if (config.cgaClusterSize != NCCL_CONFIG_UNDEF_INT && config.cgaClusterSize < 0) {
    return nccl_failure(ncclInvalidArgument, "Invalid config cgaClusterSize attribute value " +
                                                 std::to_string(config.cgaClusterSize));
  }
  if (config.maxCTAs != NCCL_CONFIG_UNDEF_INT && config.cgaClusterSize != 0) {
    return nccl_objection(
        "ncclCommInitRankConfig: with maxCTAs, clusters of blocks (cgaClusterSize is not 0) may "
        "find no SMs beside each other while tasks run");
  }
  return ncclSuccess;
}

ncclResult_t init(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  *comm = nullptr;
  if (double_fault("ncclCommInitRankConfig")) return refuse("ncclCommInitRankConfig");
  if (nccl_verdict() != ncclSuccess) return nccl_verdict();
  if (config != nullptr) {
    if (const ncclResult_t fit = check_config(*config); fit != ncclSuccess) return fit;
  }
  const std::string name(id.internal, strnlen(id.internal, sizeof(id.internal)));
  Result<std::unique_ptr<DoubleNcclBoard>> board =
      DoubleNcclBoard::attach(name, ranks, rank, current_double_device());
  if (!board.ok()) return nccl_failure(ncclInvalidArgument, board.error().message);
  const bool blocking = config == nullptr || config->blocking != 0;
  const auto made = std::make_shared<DoubleNcclCommunicator>(std::move(*board), rank,
                                                             current_double_device(), blocking);
  *comm = add_handle(made);
  if (!blocking) return ncclInProgress;
  if (group().depth > 0) {
    group().attaching.push_back(made);
    return ncclSuccess;
  }
  return made->wait();
}

ncclResult_t async_error(ncclComm_t comm, ncclResult_t* state) {
  ncclResult_t why = ncclSuccess;
  const Communicator found = look_up(comm, "ncclCommGetAsyncError", why);
  *state = found == nullptr ? why : found->ask();
  if (found != nullptr && nccl_verdict() != ncclSuccess) *state = nccl_verdict();
  return why;
}

ncclResult_t finalize(ncclComm_t comm) {
  if (double_fault("ncclCommFinalize")) return refuse("ncclCommFinalize");
  ncclResult_t why = ncclSuccess;
  const Communicator found = look_up(comm, "ncclCommFinalize", why);
  if (found == nullptr) return why;
  if (nccl_verdict() != ncclSuccess) return nccl_verdict();
  const ncclResult_t begun = found->finalize();
  return begun == ncclInProgress && found->blocking() ? found->wait() : begun;
}

ncclResult_t destroy(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  ncclResult_t why = ncclSuccess;
  const Communicator found = give_back(comm, "ncclCommDestroy", why);
  return found == nullptr ? why : found->destroy();
}

ncclResult_t abort(ncclComm_t comm) {
  if (comm == nullptr) return ncclSuccess;
  if (double_fault("ncclCommAbort")) {
    group().refused = group().depth > 0;
    return refuse("ncclCommAbort");
  }
  ncclResult_t why = ncclSuccess;
  const Communicator found = give_back(comm, "ncclCommAbort", why);
  if (found == nullptr) return why;
  found->abort();
  if (group().depth == 0 || is_old()) return wait_for_device(found->device());
  group().aborted.push_back({comm, found});
  return ncclSuccess;
}

ncclResult_t group_start() {
  ++group().depth;
  return ncclSuccess;
}

ncclResult_t group_end() {
  if (group().depth == 0) {
    return nccl_failure(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
  }
  if (--group().depth > 0) return ncclSuccess;
  return end(std::exchange(group(), Group()));
}

// As a group of its own, if it is in none.
ncclResult_t issue(ncclComm_t comm, const Operation& operation) {
  ncclResult_t why = ncclSuccess;
  const Communicator found = look_up(comm, operation.call(), why);
  if (found == nullptr) return why;
  if (double_fault(operation.call())) return refuse(operation.call());
  if (nccl_verdict() != ncclSuccess) return nccl_verdict();
  if (const ncclResult_t fit = found->check(operation); fit != ncclSuccess) return fit;
  group_start();
  group().add(found, operation);
  return group_end();
}

ncclResult_t send(const void* from, std::size_t count, ncclDataType_t datatype, int peer,
                  ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, {Operation::Kind::kSend, from, nullptr, count, datatype, peer, stream});
}

ncclResult_t receive(void* to, std::size_t count, ncclDataType_t datatype, int peer,
                     ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, {Operation::Kind::kReceive, nullptr, to, count, datatype, peer, stream});
}

ncclResult_t all_gather(const void* from, void* to, std::size_t count, ncclDataType_t datatype,
                        ncclComm_t comm, cudaStream_t stream) {
  return issue(comm, {Operation::Kind::kAllGather, from, to, count, datatype, 0, stream});
}

const char* last_error(ncclComm_t) { return last_nccl_failure(); }

}  // namespace

Result<CudaNcclFunctions> load_cuda_nccl() {
  return CudaNcclFunctions{version,         unique_id, init,    async_error, finalize,    destroy,
                           abort,           send,      receive, all_gather,  group_start, group_end,
                           nccl_error_text, last_error};
}

}  // namespace rrfp
