// What the members of one communicator of the double share: who is there, on
// which device, what went wrong, and a ring for every ordered pair of them. It
// is a file in /dev/shm that all have mapped, so members may be threads or
// processes.
//
//  1. Its random name is the unique id. The first member makes the file; it goes
//     when all members have attached, or when all that did have left.
//  2. A member that is gone is missed by nobody: the others wait.
//
// Thread safety: any; of a ring as that says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "executor/cuda_double_nccl_ring.h"
#include "scheduler_core/result.h"

namespace rrfp {

class DoubleNcclBoard {
 public:
  static constexpr int kMostMembers = 64;
  /// Of a name, with its end; a unique id of NCCL has room for as many.
  static constexpr std::size_t kNameBytes = 128;

  /// That nobody else has.
  static std::string new_name();
  /// As member `rank` of `members`, whose device is `device`. The error says
  /// what of it cannot be.
  static Result<std::unique_ptr<DoubleNcclBoard>> attach(const std::string& name, int members,
                                                         int rank, int device);
  ~DoubleNcclBoard();
  DoubleNcclBoard(const DoubleNcclBoard&) = delete;
  DoubleNcclBoard& operator=(const DoubleNcclBoard&) = delete;

  int members() const { return members_; }
  bool all_attached() const;
  /// REQUIRES: all_attached().
  int device_of(int rank) const;
  DoubleNcclRing& ring(int from, int to);

  /// What a member found wrong ends the work of all. The first is kept.
  void fail(const std::string& what);
  /// Empty: nothing.
  std::string failure() const;

 private:
  struct Head;

  DoubleNcclBoard() = default;
  Result<void> take_seat(int file, int rank, int device);
  static std::size_t bytes_for(int members);

  std::string path_;
  int members_ = 0;
  Head* head_ = nullptr;
  DoubleNcclRing* rings_ = nullptr;  // from * members + to
};

}  // namespace rrfp
