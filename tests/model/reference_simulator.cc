#include "tests/model/reference_simulator.h"

#include <array>
#include <utility>

#include "tests/model/reference_case.h"
#include "tests/model/reference_run.h"

namespace rrfp::model {

namespace {

constexpr auto kMutants = std::to_array<MutantName>({
    {Mutant::kHintReversed, "hint reversed"},
    {Mutant::kDecidesBeforeEvents, "decides before the events of the instant are in"},
    {Mutant::kNoticeIgnored, "notices ignored"},
    {Mutant::kNoticeAtOnce, "notices arrive at once"},
    {Mutant::kNoticeWithoutBusy, "notices leave out the busy time"},
    {Mutant::kNoticeWithoutQueue, "notices forget the tasks held before"},
    {Mutant::kGraceIgnored, "grace ignored"},
    {Mutant::kReachOfTheAwaited, "reach of the awaited task"},
    {Mutant::kWaitsForTheLatest, "waits for the latest announced"},
    {Mutant::kZeroReachNeverWaits, "reach of 0 ns never waits"},
    {Mutant::kTokenNotReturned, "token not returned"},
    {Mutant::kTokenForAnyMicrobatch, "token for any microbatch"},
    {Mutant::kSharesEverywhere, "shares everywhere"},
    {Mutant::kOldestFirstEverywhere, "oldest first everywhere"},
    {Mutant::kStashFreedWithInput, "stash freed with the input gradient"},
    {Mutant::kFrozenKeepsActivation, "frozen stages keep activations"},
    {Mutant::kLinkPerEdge, "a link per edge"},
    {Mutant::kLinkRoundsDown, "transmissions round down"},
    {Mutant::kVoteFree, "votes are free"},
    {Mutant::kVoteForLeader, "the leader votes too"},
    {Mutant::kLanesOfLeaderForgotten, "leader mode forgets the other lanes"},
    {Mutant::kAnnounceFree, "announcements are free"},
    {Mutant::kDispatchAfterPrevious, "dispatch after the previous task"},
    {Mutant::kDepthOne, "queue depth 1"},
    {Mutant::kWindowSlides, "window of unstarted tasks"},
    {Mutant::kAccumulationUnordered, "accumulation unordered"},
    {Mutant::kFusedIsInputOnly, "fused backward as short as I"},
    {Mutant::kInboxUntilStart, "inbox never left"},
    {Mutant::kInboxFromFinish, "inbox from the finish"},
    {Mutant::kArrangeByForward, "arranged by forwards"},
    {Mutant::kPhaseSendsFirst, "phases post receives after sends"},
    {Mutant::kTransfersQueue, "transfers queue"},
    {Mutant::kCauseWithoutLinkQueue, "cause: queued messages not in flight"},
    {Mutant::kCauseInputBeforeComm, "cause: input before communication"},
    {Mutant::kCauseMemoryAnywhere, "cause: memory outside the window"},
});

}  // namespace

std::span<const MutantName> mutants() { return kMutants; }

Result<SimulationResult> reference_simulate(const Case& given, const SimulateOptions& options,
                                            Mutant mutant) {
  const Result<ReferenceCase> ready = prepare_case(given);
  if (!ready.ok()) return ready.error();
  return ReferenceRun(*ready, options, mutant).run();
}

}  // namespace rrfp::model
