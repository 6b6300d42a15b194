// Workers as MPI processes. Letters and payloads are non-blocking operations:
// a few receives for letters are always posted, a payload's is posted once it
// has been announced, so nothing that is posted waits for a task to run.
//
// Invariants
//  1. Letters are taken in the order in which their receives were posted, which
//     for each sender is the order of sending.
//  2. Payloads of a pair are received in announced order, so one tag does.
//
// Thread safety: one thread, but for wake().
#pragma once

#include <mpi.h>

#include <array>
#include <deque>
#include <list>
#include <string>

#include "executor/mpi_module.h"
#include "executor/transport.h"

namespace rrfp {

class MpiTransport final : public Transport {
 public:
  MpiTransport(MPI_Comm communicator, const MpiSettings& settings);
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  int endpoint() const override { return endpoint_; }
  int endpoints() const override { return endpoints_; }
  bool shares_clock() const override { return false; }
  void tell(const Letter& letter) override;
  void send(const Letter& letter, Payload payload) override;
  bool poll(Delivery& delivery) override;
  void receive(const Letter& announced) override;
  void wait(std::int64_t until_ns) override;
  void wake() override {}
  bool flushed() override;
  Result<void> status() const override { return status_; }

  /// Takes back what is posted, before MPI is left.
  void close();

 private:
  static constexpr int kLetterTag = 1;
  static constexpr int kPayloadTag = 2;
  static constexpr std::size_t kPosted = 32;

  struct Sent {
    MPI_Request request = MPI_REQUEST_NULL;
    Letter letter;
    Payload payload;
  };
  struct Incoming {
    MPI_Request request = MPI_REQUEST_NULL;
    Letter letter;
    Payload payload;
  };

  void post_letter(std::size_t slot);
  bool is_as_sent(const Letter& letter, const MPI_Status& status) const;
  bool take_letter(Delivery& delivery);
  bool take_payload(Delivery& delivery);
  void finish_sends();
  void check(int code, const char* call, int peer);

  MPI_Comm communicator_;
  MpiSettings settings_;
  int endpoint_ = 0;
  int endpoints_ = 0;
  std::array<Letter, kPosted> letters_{};
  std::array<MPI_Request, kPosted> posted_{};
  std::size_t oldest_ = 0;
  std::list<Sent> sent_;  // not yet complete; addresses must not move
  std::list<Incoming> incoming_;
  Result<void> status_;
};

}  // namespace rrfp
