#include "executor/cuda_local_transport.h"

#include <string>

#include "executor/cuda_error.h"

namespace rrfp {

// After a run that did not end by itself, copies may still be under way.
CudaLocalTransport::~CudaLocalTransport() {
  if (!copies_.empty()) cudaStreamSynchronize(partition_.copies());
}

bool CudaLocalTransport::poll(Delivery& delivery) {
  if (take_copy(delivery)) return true;
  while (control().poll(delivery)) {
    if (delivery.event != Delivery::Event::kReceived || delivery.letter.tag != Tag::kMessage) {
      return true;
    }
    const std::optional<CudaMessage> from = to_cuda_message(delivery.payload);
    if (!from) return true;  // whoever takes it says what it expected
    if (failed()) continue;
    Result<void> started = start_copy(delivery.letter, *from);
    if (!started.ok()) {
      fail(Error{"the tensor from endpoint " + std::to_string(delivery.letter.from) + ": " +
                 started.error().message});
    }
  }
  return false;
}

Result<void> CudaLocalTransport::start_copy(const Letter& letter, const CudaMessage& from) {
  const Result<void*> block = partition_.blocks().take(from.bytes);
  if (!block.ok()) return block.error();
  const cudaError_t code = cudaMemcpyAsync(*block, from.block, from.bytes, cudaMemcpyDeviceToDevice,
                                           partition_.copies());
  if (code != cudaSuccess) return cuda_error("cudaMemcpyAsync", code);
  const Result<std::int64_t> mark = partition_.copy_marks().leave();
  if (!mark.ok()) return mark.error();
  copies_.push_back({letter, from, {*block, from.bytes, &partition_.blocks()}, *mark});
  return {};
}

bool CudaLocalTransport::take_copy(Delivery& delivery) {
  if (copies_.empty() || failed()) return false;
  const Result<std::int64_t> reached = partition_.copy_marks().reached();
  if (!reached.ok()) {
    fail(reached.error());
    return false;
  }
  const Copy done = copies_.front();
  if (*reached < done.mark) return false;
  copies_.pop_front();
  done.from.give_back();
  delivery.event = Delivery::Event::kReceived;
  delivery.letter = done.letter;
  delivery.letter.bytes = static_cast<std::int64_t>(done.to.bytes);
  delivery.payload = to_payload(done.to);
  return true;
}

}  // namespace rrfp
