#include "executor/cuda_nccl_channel.h"

#include "executor/clock.h"
#include "executor/cuda_error.h"
#include "executor/cuda_figures.h"
#include "executor/cuda_memory.h"
#include "executor/cuda_stopwatch.h"

namespace rrfp {

namespace {

constexpr std::size_t kWarmUpBytes = 512;
constexpr std::int64_t kSenderFirstNs = 500'000;

}  // namespace

Result<std::unique_ptr<CudaNcclChannel>> CudaNcclChannel::open(const CudaNcclFunctions& nccl,
                                                               const ncclUniqueId& id, End end,
                                                               CudaBlocks& blocks, Manner manner,
                                                               CudaPeerWait& wait) {
  std::unique_ptr<CudaNcclChannel> made(new CudaNcclChannel(end, std::move(manner)));
  const Result<void> connected = made->connect(nccl, id, blocks, wait);
  if (connected.ok()) return made;
  return Error{made->manner_.name + " cannot be connected: " + connected.error().message};
}

Result<void> CudaNcclChannel::connect(const CudaNcclFunctions& nccl, const ncclUniqueId& id,
                                      CudaBlocks& blocks, CudaPeerWait& wait) {
  Result<std::unique_ptr<CudaNcclCommunicator>> communicator =
      CudaNcclCommunicator::create(nccl, id, 2, sends() ? 0 : 1, kMostBlocks, wait);
  if (!communicator.ok()) return communicator.error();
  communicator_ = std::move(*communicator);
  const Result<int> priority = highest_stream_priority();
  if (!priority.ok()) return priority.error();
  Result<void> stream =
      check_cuda("cudaStreamCreateWithPriority",
                 cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, *priority));
  if (!stream.ok()) return stream;
  Result<std::unique_ptr<CudaMarks>> marks = CudaMarks::create(stream_);
  if (!marks.ok()) return marks.error();
  marks_ = std::move(*marks);
  return warm_up(blocks, wait);
}

// What is still under way ends when the communicator is aborted.
CudaNcclChannel::~CudaNcclChannel() {
  if (communicator_ != nullptr && !idle()) static_cast<void>(communicator_->abort());
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  for (const Running& running : running_) running.transfer.message.give_back();
  for (const Transfer& transfer : waiting_) transfer.message.give_back();
  communicator_.reset();
  marks_.reset();
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

Result<void> CudaNcclChannel::warm_up(CudaBlocks& blocks, CudaPeerWait& wait) {
  const Result<void*> block = blocks.take(kWarmUpBytes);
  if (!block.ok()) return block.error();
  Result<void> moved = issue(*block, kWarmUpBytes);
  if (moved.ok()) moved = communicator_->wait_until_done(*marks_, wait);
  if (!moved.ok()) {
    static_cast<void>(communicator_->abort());  // what waits in the stream uses the block
    cudaStreamSynchronize(stream_);
  }
  blocks.give_back(*block);
  return moved;
}

Result<double> CudaNcclChannel::measure_ns(CudaPartition& partition, std::size_t bytes,
                                           CudaPeerWait& wait) {
  const Result<CudaMemory> memory = CudaMemory::create(bytes, "the measuring of a channel");
  if (!memory.ok()) return memory.error();
  CudaStopwatch watch;
  if (Result<void> ready = watch.prepare(); !ready.ok()) return ready.error();
  std::vector<double> all;
  for (int round = -kFigureWarmUps; round < kFigureRounds; ++round) {
    const Result<double> ns = measure_once_ns(watch, partition, memory->data(), bytes, wait);
    if (!ns.ok()) {
      // What waits in the stream would wait for good, and it uses the memory and the events.
      static_cast<void>(communicator_->abort());
      cudaStreamSynchronize(stream_);
      return Error{manner_.name + ": the measuring with " + std::to_string(bytes) +
                   " bytes: " + ns.error().message};
    }
    if (round >= 0) all.push_back(*ns);
  }
  return median_of(std::move(all));
}

Result<double> CudaNcclChannel::measure_once_ns(CudaStopwatch& watch, CudaPartition& partition,
                                                void* memory, std::size_t bytes,
                                                CudaPeerWait& wait) {
  if (!sends()) {
    // As in a run the send is there first, or the time would hold how late the sender came.
    sleep_for_ns(kSenderFirstNs);
    if (Result<void> led = launch_lead(partition, stream_); !led.ok()) return led.error();
  }
  Result<void> issued;
  Result<void> started = watch.start(stream_, [&](cudaStream_t) {
    issued = issue(memory, bytes);
    if (issued.ok()) issued = communicator_->wait_until_ready(wait);
    return cudaSuccess;
  });
  if (!issued.ok()) return issued.error();
  if (!started.ok()) return started.error();
  // What a lost peer leaves in the stream does not end by itself.
  Result<void> done = communicator_->wait_until_done(*marks_, wait);
  if (!done.ok()) return done.error();
  return sends() ? Result<double>(0.0) : watch.ns();
}

Error CudaNcclChannel::error(const Transfer& transfer, const std::string& what) const {
  const TaskId task = transfer.letter.task;
  const std::string use =
      task != kNoTask && manner_.name_of_task ? " for " + manner_.name_of_task(task) : "";
  return Error{manner_.name + ": the " + (sends() ? "send" : "receive") + " of " +
               std::to_string(transfer.message.bytes) + " bytes" + use + " (number " +
               std::to_string(transfer.letter.sequence) + " of the channel): " + what};
}

std::optional<Error> CudaNcclChannel::late(std::int64_t since_ns) const {
  const std::int64_t waited_ns = MonotonicClock::read_ns() - since_ns;
  if (waited_ns <= manner_.patience_ns) return std::nullopt;
  return Error{"the other end has not come within " + std::to_string(waited_ns / 1'000'000) +
               " ms; a --patience-ms above " + std::to_string(manner_.patience_ns / 1'000'000) +
               " waits longer"};
}

Result<void> CudaNcclChannel::issue(void* memory, std::size_t bytes) {
  return sends() ? communicator_->send(memory, bytes, 1, stream_)
                 : communicator_->receive(memory, bytes, 0, stream_);
}

Result<std::optional<CudaNcclChannel::Transfer>> CudaNcclChannel::step() {
  if (idle()) return std::optional<Transfer>();
  const Transfer oldest = running_.empty() ? waiting_.front() : running_.front().transfer;
  if (!issuing_ && !waiting_.empty()) {
    const CudaMessage& next = waiting_.front().message;
    issuing_ = true;
    if (running_.empty()) moved_ns_ = MonotonicClock::read_ns();
    if (Result<void> issued = issue(next.block, next.bytes); !issued.ok()) {
      return error(waiting_.front(), issued.error().message);
    }
  }
  // Asked for what is running, too: a peer that is lost shows up here.
  const Result<bool> ready = communicator_->ready();
  if (!ready.ok()) return error(oldest, ready.error().message);
  if (issuing_ && *ready) {
    const Result<std::int64_t> mark = marks_->leave();
    if (!mark.ok()) return error(waiting_.front(), mark.error().message);
    running_.push_back({waiting_.front(), *mark});
    waiting_.pop_front();
    issuing_ = false;
  }
  const Result<std::int64_t> reached = marks_->reached();
  if (!reached.ok()) return error(oldest, reached.error().message);
  if (!running_.empty() && *reached >= running_.front().mark) {
    const Transfer done = running_.front().transfer;
    running_.pop_front();
    moved_ns_ = MonotonicClock::read_ns();
    return std::optional<Transfer>(done);
  }
  if (const std::optional<Error> given_up = late(moved_ns_)) {
    return error(oldest, given_up->message);
  }
  return std::optional<Transfer>();
}

}  // namespace rrfp
