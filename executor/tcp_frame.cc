#include "executor/tcp_frame.h"

namespace rrfp {

Result<void> check_frame(const TcpFrame& frame, int from, int to) {
  const auto wrong = [](const std::string& field, std::int64_t found) {
    return Error{"a frame whose " + field + " is " + std::to_string(found)};
  };
  const auto kind = static_cast<std::uint32_t>(frame.kind);
  if (kind > static_cast<std::uint32_t>(TcpFrame::Kind::kLeave)) return wrong("kind", kind);
  const Letter& letter = frame.letter;
  if (letter.from != from) return wrong("sender", letter.from);
  if (letter.to != to) return wrong("receiver", letter.to);
  if (letter.bytes < 0 || letter.bytes > kMostTcpPayload) return wrong("length", letter.bytes);
  if (letter.tag > Tag::kEnd) return wrong("tag", static_cast<std::int64_t>(letter.tag));
  if (frame.number < 0) return wrong("number", frame.number);
  return {};
}

std::string describe_refusal(const TcpHello& hello, const TcpAnswer& answer) {
  const auto version = [](std::uint32_t number) {
    return std::to_string(number >> 16) + "." + std::to_string(number & 0xffff);
  };
  switch (answer.verdict) {
    case TcpVerdict::kWelcome:
      return "welcome";
    case TcpVerdict::kOtherVersion:
      return "it speaks version " + version(answer.version) + " of the protocol, this process " +
             version(hello.version) + "; start the same rrfp everywhere";
    case TcpVerdict::kOtherSize:
      return "its job has " + std::to_string(answer.processes) + " processes, that of this one " +
             std::to_string(hello.processes);
    case TcpVerdict::kTaken:
      return "it has met a process " + std::to_string(hello.process) +
             " already; two processes have this number, or two jobs one port";
    case TcpVerdict::kOtherJob:
      return "it belongs to another job";
    case TcpVerdict::kGaveUp:
      return std::to_string(answer.missing) + " of " + std::to_string(answer.processes) +
             " processes did not come, process " + std::to_string(answer.first_missing) +
             " among them";
  }
  return "for a reason that this program does not know";
}

}  // namespace rrfp
