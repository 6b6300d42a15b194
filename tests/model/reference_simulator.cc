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
    {Mutant::kInboxNeverLeft, "inbox never left"},
    {Mutant::kInboxFromFinish, "inbox from the finish"},
    {Mutant::kArrangeByForward, "arranged by forwards"},
    {Mutant::kRendezvousVotes, "rendezvous transfers vote"},
    {Mutant::kCauseFillUntilStart, "cause: fill until the first start"},
    {Mutant::kCauseTransmissionOnly, "cause: in flight until transmitted"},
    {Mutant::kCauseInputInWindow, "cause: input inside the window only"},
    {Mutant::kCauseInputBeforeComm, "cause: input before communication"},
    {Mutant::kCauseMemoryAnywhere, "cause: memory outside the window"},
});

// Mistakes that amount to another case.
Case with_mistake(Case given, Mutant mutant) {
  TensorParallel& tensor = given.tensor_parallel;
  if (mutant == Mutant::kNoticeAtOnce) given.network.notice_ns = 0;
  if (mutant == Mutant::kVoteFree) tensor.vote_ns = 0;
  if (mutant == Mutant::kAnnounceFree) tensor.announce_ns = 0;
  if (mutant == Mutant::kDepthOne) given.queue_depth = 1;
  if (mutant == Mutant::kVoteForLeader && tensor.coordination == Coordination::kVote &&
      tensor.lanes > 1) {
    for (std::vector<std::int64_t>& rows : given.network.latency_ns) {
      const auto lane = static_cast<std::size_t>(given.program.microbatches());
      for (std::size_t m = 0; m < lane && m < rows.size(); ++m) rows[m] += tensor.vote_ns;
    }
  }
  return given;
}

}  // namespace

std::span<const MutantName> mutants() { return kMutants; }

Result<SimulationResult> reference_simulate(const Case& given, const SimulateOptions& options,
                                            Mutant mutant) {
  const Result<ReferenceCase> ready = prepare_case(with_mistake(given, mutant), mutant);
  if (!ready.ok()) return ready.error();
  return ReferenceRun(*ready, options, mutant).run();
}

}  // namespace rrfp::model
