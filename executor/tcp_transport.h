// Letters and payloads over the connections of a job that meets over TCP.
//
// A payload is read into its buffer as it comes, so that nothing behind it on
// the same connection waits for receive(), and is announced once it is here.
//
// The loss of a process becomes status() a moment after it was noticed: then
// workers have run into what they lack, and can name it.
//
// Thread safety: see Transport.
#pragma once

#include <deque>
#include <vector>

#include "executor/tcp_mesh.h"
#include "executor/transport.h"

namespace rrfp {

class TcpTransport final : public Transport {
 public:
  /// `mesh` outlives this, and its letters are handed to on_letter().
  explicit TcpTransport(TcpMesh& mesh);

  int endpoint() const override { return mesh_.process(); }
  int endpoints() const override { return mesh_.processes(); }
  bool shares_clock() const override { return false; }
  void tell(const Letter& letter) override;
  void send(const Letter& letter, Payload payload) override;
  bool poll(Delivery& delivery) override;
  void receive(const Letter& announced) override;
  void wait(std::int64_t until_ns) override;
  void wake() override { mesh_.wake(); }
  bool flushed() override;
  Result<void> status() const override;

  void on_letter(const Letter& letter, Payload payload);
  /// Another process has ended the job: status() from now on.
  void end(const std::string& why);

 private:
  static constexpr std::int64_t kUntilToldNs = 300'000'000;

  TcpMesh& mesh_;
  std::deque<Delivery> deliveries_;
  std::vector<std::deque<Delivery>> offered_;  // by process: announced, not yet asked for
  Result<void> ended_;
};

}  // namespace rrfp
