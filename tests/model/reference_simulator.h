// A second, independent reading of the rules of a run, for differential
// testing: one global list of events, explicit rounds, scans over everything,
// nothing clever. Slow, and meant to be checked by reading it beside the rules.
//
// Invariants
//  1. Shares no code with the simulator and the scheduler core beyond the
//     types of a program, a case and a result, and the named schedules.
//  2. All events of an instant are applied before any rank decides, and what a
//     round of decisions causes is applied in the next round.
//
// Thread safety: reference_simulate may run on several threads at once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "scheduler_core/result.h"
#include "sim/simulate.h"
#include "traces/case.h"
#include "traces/simulation_result.h"

namespace rrfp::model {

/// Planted mistakes: each is one rule read wrongly. A differential test that
/// cannot tell a mutant from the rules could not find that bug either.
enum class Mutant : std::uint8_t {
  kNone,
  kHintReversed,            ///< the highest hint position starts
  kDecidesBeforeEvents,     ///< ranks decide after every single event of an instant
  kNoticeIgnored,           ///< no input is ever announced
  kNoticeAtOnce,            ///< notice_ns is 0
  kNoticeWithoutBusy,       ///< eta leaves out the link's busy time
  kNoticeWithoutQueue,      ///< eta forgets the tasks held before
  kGraceIgnored,            ///< an announced input that is late is not waited for
  kReachOfTheAwaited,       ///< reach counted from the awaited task, not from the other
  kWaitsForTheLatest,       ///< of several announced tasks, the one with the greatest eta
  kZeroReachNeverWaits,     ///< a reach that rounds down to 0 ns waits for nothing
  kTokenNotReturned,        ///< a stage's token is gone after its first use
  kTokenForAnyMicrobatch,   ///< the token does not wait for the oldest
  kSharesEverywhere,        ///< oldest-first programs use the rule for shares
  kOldestFirstEverywhere,   ///< shares programs use the rule for oldest first
  kStashFreedWithInput,     ///< I frees the weight's stash too
  kFrozenKeepsActivation,   ///< a stage without backward never frees
  kLinkPerEdge,             ///< a link is not shared by edges
  kLinkRoundsDown,          ///< transmission times round down
  kVoteFree,                ///< vote_ns is 0
  kVoteForLeader,           ///< the leader's own message pays vote_ns too
  kLanesOfLeaderForgotten,  ///< leader mode starts before the last lane has its inputs
  kAnnounceFree,            ///< announce_ns is 0
  kDispatchAfterPrevious,   ///< dispatch begins at the end of the previous task
  kDepthOne,                ///< queue_depth is 1
  kWindowSlides,            ///< the window counts only tasks that are not yet started
  kAccumulationUnordered,   ///< ordered accumulation is forgotten
  kFusedIsInputOnly,        ///< a fused backward takes only the time of I
  kInboxNeverLeft,          ///< an activation stays in the inbox when its task is decided
  kInboxFromFinish,         ///< the inbox is entered at the producer's finish
  kArrangeByForward,        ///< the cost of a microbatch is that of its forwards
  kRendezvousVotes,         ///< rendezvous: vote_ns applies
  kCauseFillUntilStart,     ///< idle: fill lasts until the first start
  kCauseTransmissionOnly,   ///< idle: a message is in flight only until its link is free
  kCauseInputInWindow,      ///< idle: an input outside the window does not count
  kCauseInputBeforeComm,    ///< idle: input comes before communication
  kCauseMemoryAnywhere,     ///< idle: a blocked F outside the window counts as memory
};

struct MutantName {
  Mutant mutant;
  std::string_view name;
};

/// All mutants but kNone.
std::span<const MutantName> mutants();

/// What `simulate` must give. Error for a case that the rules exclude, and for
/// the launch-queue mode, which is not part of this reading. Messages are
/// listed by finish, then edge, then microbatch.
Result<SimulationResult> reference_simulate(const Case& given, const SimulateOptions& options = {},
                                            Mutant mutant = Mutant::kNone);

}  // namespace rrfp::model
