#include "executor/cuda_nccl_transport.h"

#include <string>

#include "scheduler_core/check.h"

namespace rrfp {

// After a run that did not end by itself a transfer may wait for a peer that does not come.
CudaNcclTransport::~CudaNcclTransport() {
  if (!idle()) connections_->abort();
}

bool CudaNcclTransport::idle() const { return connections_->idle(); }

void CudaNcclTransport::send(const Letter& letter, Payload payload) {
  const std::optional<CudaMessage> message =
      letter.tag == Tag::kMessage ? to_cuda_message(payload) : std::nullopt;
  if (!message) return control().send(letter, std::move(payload));
  CudaNcclChannel* const channel = connections_->to(letter.to);
  RRFP_CHECK(channel != nullptr);
  Letter announcement = letter;
  announcement.bytes = 0;
  announcement.device_bytes = static_cast<std::int64_t>(message->bytes);
  announcement.sequence = announced_to_[letter.to]++;
  control().tell(announcement);
  channel->push({announcement, *message});
  finish_sends();
}

void CudaNcclTransport::receive(const Letter& announced) {
  if (announced.device_bytes == 0) return control().receive(announced);
  CudaBlocks& blocks = connections_->partition().blocks();
  const auto bytes = static_cast<std::size_t>(announced.device_bytes);
  const Result<void*> block = blocks.take(bytes);
  if (!block.ok()) return fail(block.error());
  connections_->from(announced.from)->push({announced, {*block, bytes, &blocks}});
}

bool CudaNcclTransport::poll(Delivery& delivery) {
  if (failed()) return false;
  finish_sends();
  if (take_received(delivery)) return true;
  if (failed() || !control().poll(delivery)) return false;
  const Letter& letter = delivery.letter;
  if (letter.device_bytes == 0) return true;
  if (letter.device_bytes < 0 || letter.tag != Tag::kMessage) {
    fail(Error{"process " + std::to_string(letter.from) + " announces a tensor of " +
               std::to_string(letter.device_bytes) + " bytes with a letter that can have none"});
    return false;
  }
  if (connections_->from(letter.from) == nullptr ||
      letter.sequence != announced_from_[letter.from]++) {
    fail(Error{"process " + std::to_string(letter.from) + " announces tensor " +
               std::to_string(letter.sequence) + ", which is not the next of a channel"});
    return false;
  }
  delivery.event = Delivery::Event::kAnnounced;
  delivery.letter.bytes = letter.device_bytes;
  return true;
}

void CudaNcclTransport::finish_sends() {
  for (const auto& channel : connections_->channels()) {
    if (!channel->sends() || channel->idle()) continue;
    Result<std::optional<CudaNcclChannel::Transfer>> done = channel->step();
    if (!done.ok()) return fail(done.error());
    if (*done) (*done)->message.give_back();
  }
}

bool CudaNcclTransport::take_received(Delivery& delivery) {
  for (const auto& channel : connections_->channels()) {
    if (channel->sends() || channel->idle()) continue;
    const Result<std::optional<CudaNcclChannel::Transfer>> done = channel->step();
    if (!done.ok()) {
      fail(done.error());
      return false;
    }
    if (!*done) continue;
    delivery.event = Delivery::Event::kReceived;
    delivery.letter = (*done)->letter;
    delivery.payload = to_payload((*done)->message);
    return true;
  }
  return false;
}

// After a failure letters are all that is left to say; one of them is about it. No tensor will be
// taken by a peer that is lost.
bool CudaNcclTransport::flushed() {
  if (!status().ok()) return control().flushed();
  finish_sends();
  return idle() && control().flushed();
}

}  // namespace rrfp
