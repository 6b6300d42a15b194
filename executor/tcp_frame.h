// What travels between the processes of a job that meet over TCP: greetings
// while they look for each other, then frames, each a head of a fixed size and
// its payload.
//
// All of it is sent as its bytes, between builds of one program on machines of
// one kind; a greeting says enough to notice where that is not so. Greetings
// keep their size and first two fields from version to version.
//
// Thread safety: plain data and pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "executor/letter.h"
#include "scheduler_core/result.h"

namespace rrfp {

struct TcpFrame {
  enum class Kind : std::uint32_t {
    kLetter,   ///< of the transport
    kPart,     ///< of exchange `number`: what a lane brings
    kNoLane,   ///< of exchange `number`: this lane comes no more
    kWarning,  ///< of exchange `number`: this lane cannot go on, and why
    kBarrier,  ///< has met all others
    kAbort,    ///< the job ends, with status `number`, and why, where it is to be told
    kLeave,    ///< the last frame of a process that leaves in an orderly way
  };
  Kind kind = Kind::kLetter;
  std::int32_t number = 0;
  /// from, to and bytes are of every frame, the rest of letters.
  Letter letter;
};
static_assert(std::is_trivially_copyable_v<TcpFrame>);

/// A payload has at most so many bytes.
inline constexpr std::int64_t kMostTcpPayload = std::int64_t{1} << 32;

/// The error says what is wrong with a frame that came from `from` to `to`.
Result<void> check_frame(const TcpFrame& frame, int from, int to);

inline constexpr std::uint64_t kTcpMagic = 0x7066'7272'7463'7031;  // "1pctrrfp"
/// Letters of another size are another version.
inline constexpr std::uint32_t kTcpVersion = (2U << 16) | sizeof(TcpFrame);

/// The first words of whoever connects.
struct TcpHello {
  std::uint64_t magic = kTcpMagic;
  std::uint32_t version = kTcpVersion;
  std::int32_t process = 0;
  std::int32_t processes = 0;
  std::uint32_t port = 0;  ///< where it listens itself
  std::uint64_t key = 0;   ///< of the job; 0 to process 0, which hands the key out
};

enum class TcpVerdict : std::uint32_t {
  kWelcome,
  kOtherVersion,
  kOtherSize,  ///< another number of processes
  kTaken,      ///< no such process is waited for, or it has come before
  kOtherJob,
  kGaveUp,  ///< others did not come
};

/// The answer to it. From process 0, where it is a welcome, the addresses of
/// all processes follow.
struct TcpAnswer {
  std::uint64_t magic = kTcpMagic;
  std::uint32_t version = kTcpVersion;
  TcpVerdict verdict = TcpVerdict::kWelcome;
  std::int32_t processes = 0;
  std::int32_t missing = 0;        ///< kGaveUp: so many,
  std::int32_t first_missing = 0;  ///< this one among them
  std::uint32_t unused = 0;
  std::uint64_t key = 0;
};

/// Where a process listens: an IPv6 address, or an IPv4 address mapped to one.
struct TcpAddress {
  std::array<std::uint8_t, 16> address{};
  std::uint32_t port = 0;
};

/// Why `hello` was not welcome, as its sender tells it.
std::string describe_refusal(const TcpHello& hello, const TcpAnswer& answer);

}  // namespace rrfp
