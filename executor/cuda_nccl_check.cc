// NCCL with one process: what can be seen of it without another GPU.
#include "executor/clock.h"
#include "executor/cuda_check.h"
#include "executor/cuda_launchers.h"
#include "executor/cuda_memory.h"
#include "executor/cuda_nccl_communicator.h"
#include "executor/cuda_partition.h"
#include "executor/cuda_pinned_word.h"

namespace rrfp {

namespace {

constexpr std::int64_t kPatienceNs = 20'000'000'000;
constexpr std::uint64_t kSent = 0x5E4D;
constexpr std::uint64_t kGathered = 0x6A74;

using Communicator = std::unique_ptr<CudaNcclCommunicator>;

Result<Communicator> make_alone(const CudaNcclFunctions& nccl) {
  const Result<ncclUniqueId> id = make_nccl_id(nccl);
  if (!id.ok()) return id.error();
  CudaPeerWait wait(kPatienceNs);
  return CudaNcclCommunicator::create(nccl, *id, 1, 0, CudaNcclCommunicator::kAnyBlocks, wait);
}

// A stream with what is moved in it.
class Mover {
 public:
  ~Mover() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  Result<void> prepare(std::size_t bytes) {
    bytes_ = bytes;
    Result<CudaPinnedWord> fault = CudaPinnedWord::create();
    if (!fault.ok()) return fault.error();
    fault_ = std::move(*fault);
    for (CudaMemory* to : {&from_, &to_}) {
      Result<CudaMemory> memory = CudaMemory::create(bytes, "a check of NCCL");
      if (!memory.ok()) return memory.error();
      *to = std::move(*memory);
    }
    const Result<int> priority = highest_stream_priority();
    if (!priority.ok()) return priority.error();
    Result<void> made =
        check_cuda("cudaStreamCreateWithPriority",
                   cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, *priority));
    // The first comparison loads its kernel, which is not to wait for what NCCL has in the stream.
    if (made.ok()) made = fill(kSent);
    return made.ok() ? compare(from_, kSent) : made;
  }
  /// Moves bytes that start with `word` by `issue(from, to)`, and compares what came.
  template <typename Issue>
  Result<void> move(const char* what, std::uint64_t word, CudaNcclCommunicator& by, Issue issue) {
    Result<void> done = fill(word);
    if (done.ok()) done = issue(from_.data(), to_.data());
    CudaPeerWait in_stream(kPatienceNs);
    if (done.ok()) done = by.wait_until_ready(in_stream);
    if (done.ok()) done = compare(to_, word);
    if (done.ok()) done = wait(by);
    if (!done.ok()) return Error{std::string(what) + ": " + done.error().message};
    if (fault_.load() != 0) return Error{std::string(what) + ": other bytes came than were sent"};
    return {};
  }
  cudaStream_t stream() const { return stream_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Result<void> fill(std::uint64_t word) {
    return check_cuda("launch of a pattern",
                      launch_fill_pattern(from_.data(), bytes_, word, stream_));
  }
  Result<void> compare(const CudaMemory& in, std::uint64_t word) {
    return check_cuda("launch of a comparison",
                      launch_check_pattern(in.data(), bytes_, word, {fault_.get(), 1}, stream_));
  }
  // What never ends by itself is aborted, so that this can be told.
  Result<void> wait(CudaNcclCommunicator& by) {
    const std::int64_t begin_ns = MonotonicClock::read_ns();
    while (true) {
      const cudaError_t code = cudaStreamQuery(stream_);
      if (code != cudaErrorNotReady) return check_cuda("cudaStreamQuery", code);
      static_cast<void>(cudaGetLastError());  // cudaErrorNotReady is kept as if it were one
      if (MonotonicClock::read_ns() - begin_ns < kPatienceNs) continue;
      static_cast<void>(by.abort());
      return Error{"it has not ended within 20 s"};
    }
  }

  std::size_t bytes_ = 0;
  cudaStream_t stream_ = nullptr;
  CudaPinnedWord fault_;
  CudaMemory from_;
  CudaMemory to_;
};

// A send and its receive, of one process, which have to be issued together.
Result<void> send_to_itself(const CudaNcclFunctions& nccl, CudaNcclCommunicator& by, Mover& mover) {
  return mover.move("a send to itself", kSent, by, [&](void* from, void* to) -> Result<void> {
    ncclResult_t code = nccl.group_start();
    if (code == ncclSuccess) {
      const Result<void> sent = by.send(from, mover.bytes(), 0, mover.stream());
      const Result<void> received = by.receive(to, mover.bytes(), 0, mover.stream());
      code = nccl.group_end();
      if (!sent.ok()) return sent;
      if (!received.ok()) return received;
    }
    if (is_accepted(code)) return {};
    return Error{std::string("a group: ") + nccl.error_string(code)};
  });
}

// As a process gives up all that it has.
Result<void> abort_two(const CudaNcclFunctions& nccl) {
  const Result<Communicator> one = make_alone(nccl);
  if (!one.ok()) return one.error();
  const Result<Communicator> other = make_alone(nccl);
  if (!other.ok()) return other.error();
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  Result<void> aborted = CudaNcclCommunicator::abort_together({one->get(), other->get()});
  if (!aborted.ok()) return aborted;
  if (MonotonicClock::read_ns() - begin_ns >= kPatienceNs) return Error{"it took more than 20 s"};
  return check_cuda("cudaDeviceSynchronize", cudaDeviceSynchronize());
}

}  // namespace

Result<std::string> check_cuda_nccl(std::size_t bytes) {
  const Result<CudaNcclFunctions> nccl = load_cuda_nccl();
  if (!nccl.ok()) return nccl.error();
  Mover mover;
  Result<void> done = mover.prepare(bytes);
  if (!done.ok()) return done.error();
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  Result<Communicator> communicator = make_alone(*nccl);
  if (!communicator.ok()) return communicator.error();
  const std::int64_t made_ns = MonotonicClock::read_ns() - begin_ns;
  done = send_to_itself(*nccl, **communicator, mover);
  if (done.ok()) {
    done = mover.move("an all-gather", kGathered, **communicator, [&](void* from, void* to) {
      return (*communicator)->all_gather(from, to, mover.bytes(), mover.stream());
    });
  }
  if (!done.ok()) return done.error();
  const std::int64_t end_ns = MonotonicClock::read_ns();
  communicator->reset();  // finalized, as nothing went wrong; else aborted after a while
  if (MonotonicClock::read_ns() - end_ns >= CudaNcclCommunicator::kMostFinalizeNs) {
    return Error{"ncclCommFinalize: still in progress after 2 s"};
  }
  done = abort_two(*nccl);
  if (!done.ok()) return Error{"the abort of two communicators: " + done.error().message};
  int version = 0;
  static_cast<void>(nccl->version(&version));
  return "NCCL " + nccl_version_text(version) + "; a communicator of one in " +
         std::to_string(made_ns / 1'000'000) + " ms; " + std::to_string(bytes >> 20) +
         " MiB sent to itself and gathered arrive; it is finalized; two are aborted together";
}

}  // namespace rrfp
