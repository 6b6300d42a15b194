// The seam between a worker and its peers: message-driven, asynchronous.
//
// A sender announces a payload and sends it when its task finishes, and never
// waits for the receiver's schedule. A receiver posts a receive only once the
// announcement is there, in announced order; then nothing that is posted waits
// on a task that has not run (which is what blocks a pipeline built on posted
// receives). Which messages may be under way at all is not decided here: see
// EdgeCredits.
//
// Invariants
//  1. Letters from one endpoint to another come in the order of sending,
//     announcements among them. Payloads may complete in any order.
//  2. No call but wait() blocks.
//  3. A lost peer is a value of status(), never a hang and never an exit.
//
// Thread safety: one thread uses an endpoint; wake() may be called by any.
#pragma once

#include <cstdint>

#include "executor/letter.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// Something that has come.
struct Delivery {
  enum class Event : std::uint8_t {
    kLetter,     ///< a letter without a payload
    kAnnounced,  ///< a payload is on offer: answer with receive()
    kReceived,   ///< the payload of an announcement is here
  };
  Event event = Event::kLetter;
  Letter letter;
  Payload payload;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual int endpoint() const = 0;
  virtual int endpoints() const = 0;
  /// All endpoints read one and the same clock.
  virtual bool shares_clock() const = 0;
  /// Payloads are copied by devices, at the speed of their links: one that comes
  /// late does not say that a thread was held up.
  virtual bool devices_copy() const { return false; }

  /// Sends `letter` to letter.to. REQUIRES: another endpoint; bytes is 0.
  virtual void tell(const Letter& letter) = 0;
  /// Announces `payload` by `letter` and transmits it. REQUIRES: not empty,
  /// another endpoint; letter.bytes is its size.
  virtual void send(const Letter& letter, Payload payload) = 0;

  /// The next thing that has come. False where there is nothing now.
  virtual bool poll(Delivery& delivery) = 0;
  /// Posts the receive of an announced payload. REQUIRES: announced, once.
  virtual void receive(const Letter& announced) = 0;

  /// Returns at `until_ns` of the local clock, or earlier where something may
  /// have come since poll() last returned false, or somebody called wake().
  virtual void wait(std::int64_t until_ns) = 0;
  virtual void wake() = 0;

  /// Everything that was sent has left; call until true before leaving. Takes
  /// nothing that has come.
  virtual bool flushed() = 0;
  /// The error names the peer and the call.
  virtual Result<void> status() const = 0;
};

}  // namespace rrfp
