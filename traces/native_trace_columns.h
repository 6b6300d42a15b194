// The columns of each record type of a native trace: one table that reader and
// writer share.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace rrfp {

enum class TraceField : std::uint8_t {
  kIteration,
  kReplica,
  kRank,
  kLane,
  kStage,
  kMicrobatch,
  kKind,
  kReady,
  kDecided,
  kStart,
  kEnd,
  kFrom,
  kTo,
  kBytes,
  kSequence,
  kSendPost,
  kSendMatch,
  kSendDone,
  kReceivePost,
  kReceiveMatch,
  kReceiveDone,
  kName,
  kGroup,
  kSent,
  kSeen,
  kEta,
  kUnknown,  ///< a column that this version does not know: skipped
};
inline constexpr int kTraceFields = 27;

struct TraceColumn {
  std::string_view name;
  TraceField field = TraceField::kUnknown;
  bool needed = true;  ///< others have a default, see native_trace.h
};

inline constexpr TraceColumn kTaskColumns[] = {{"iteration", TraceField::kIteration},
                                               {"replica", TraceField::kReplica},
                                               {"rank", TraceField::kRank},
                                               {"lane", TraceField::kLane, false},
                                               {"stage", TraceField::kStage},
                                               {"microbatch", TraceField::kMicrobatch},
                                               {"kind", TraceField::kKind},
                                               {"ready_ns", TraceField::kReady, false},
                                               {"decided_ns", TraceField::kDecided, false},
                                               {"start_ns", TraceField::kStart},
                                               {"end_ns", TraceField::kEnd}};
inline constexpr TraceColumn kMessageColumns[] = {
    {"iteration", TraceField::kIteration},
    {"replica", TraceField::kReplica},
    {"lane", TraceField::kLane, false},
    {"kind", TraceField::kKind},
    {"from", TraceField::kFrom},
    {"to", TraceField::kTo},
    {"microbatch", TraceField::kMicrobatch},
    {"bytes", TraceField::kBytes, false},
    {"sequence", TraceField::kSequence, false},
    {"send_post_ns", TraceField::kSendPost},
    {"send_match_ns", TraceField::kSendMatch, false},
    {"send_done_ns", TraceField::kSendDone},
    {"receive_post_ns", TraceField::kReceivePost},
    {"receive_match_ns", TraceField::kReceiveMatch, false},
    {"receive_done_ns", TraceField::kReceiveDone}};
inline constexpr TraceColumn kSpanColumns[] = {
    {"iteration", TraceField::kIteration}, {"replica", TraceField::kReplica},
    {"rank", TraceField::kRank},           {"lane", TraceField::kLane, false},
    {"name", TraceField::kName},           {"group", TraceField::kGroup, false},
    {"start_ns", TraceField::kStart},      {"end_ns", TraceField::kEnd}};

inline constexpr TraceColumn kNoticeColumns[] = {{"iteration", TraceField::kIteration},
                                                 {"replica", TraceField::kReplica},
                                                 {"kind", TraceField::kKind},
                                                 {"from", TraceField::kFrom},
                                                 {"to", TraceField::kTo},
                                                 {"microbatch", TraceField::kMicrobatch},
                                                 {"sent_ns", TraceField::kSent},
                                                 {"seen_ns", TraceField::kSeen},
                                                 {"eta_ns", TraceField::kEta}};
inline constexpr TraceColumn kCreditColumns[] = {{"iteration", TraceField::kIteration},
                                                 {"replica", TraceField::kReplica},
                                                 {"lane", TraceField::kLane, false},
                                                 {"from", TraceField::kFrom},
                                                 {"to", TraceField::kTo},
                                                 {"microbatch", TraceField::kMicrobatch},
                                                 {"sent_ns", TraceField::kSent},
                                                 {"seen_ns", TraceField::kSeen}};

/// A record type: the word that opens its lines, and its columns.
struct TraceRecordType {
  std::string_view word;
  std::span<const TraceColumn> columns;
};
/// In the order of the alternatives of TraceRecord.
inline constexpr std::array<TraceRecordType, 5> kTraceRecordTypes = {
    TraceRecordType{"task", kTaskColumns}, TraceRecordType{"message", kMessageColumns},
    TraceRecordType{"span", kSpanColumns}, TraceRecordType{"notice", kNoticeColumns},
    TraceRecordType{"credit", kCreditColumns}};

}  // namespace rrfp
