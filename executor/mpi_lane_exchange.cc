#include "executor/mpi_lane_exchange.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace rrfp {

namespace {

constexpr int kPartTag = 1;
constexpr int kWarningTag = 2;
constexpr std::size_t kMostWarning = 1024;  // which leaves without its receiver
// Lanes come at about the same time; who waits for longer gives its core away.
constexpr std::int64_t kSpinNs = 1'000'000;
constexpr std::int64_t kBetweenLooksNs = 50'000;

}  // namespace

struct MpiLaneExchange::Round {
  Payload mine;
  std::vector<Payload> parts;         // by lane; its own: empty
  std::vector<MPI_Request> requests;  // receives by lane, then sends by lane
  int code = MPI_SUCCESS;
  bool other_sizes = false;
};

MpiLaneExchange::MpiLaneExchange(MPI_Comm communicator, std::int64_t patience_ns)
    : communicator_(communicator), patience_ns_(patience_ns) {
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_size(communicator_, &lanes_);
  MPI_Comm_rank(communicator_, &lane_);
}

MpiLaneExchange::~MpiLaneExchange() {
  int gone = 0;
  MPI_Finalized(&gone);
  if (gone == 0 && !failure_) MPI_Comm_free(&communicator_);
}

void MpiLaneExchange::on_slow(std::int64_t after_ns, std::function<void(int lane)> handler) {
  slow_after_ns_ = after_ns;
  on_slow_ = std::move(handler);
}

Result<std::vector<Payload>> MpiLaneExchange::exchange(Payload mine) {
  if (failure_) return *failure_;
  if (mine.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return Error{"a part of " + std::to_string(mine.size()) + " bytes is too large for MPI"};
  }
  const std::int64_t begin_ns = MonotonicClock::read_ns();
  const auto lanes = static_cast<std::size_t>(lanes_);
  const int size = static_cast<int>(mine.size());
  auto round = std::make_unique<Round>();
  round->mine = std::move(mine);
  round->parts.resize(lanes);
  round->requests.assign(2 * lanes, MPI_REQUEST_NULL);
  for (int lane = 0; lane < lanes_ && round->code == MPI_SUCCESS; ++lane) {
    if (lane == lane_) continue;
    const auto at = static_cast<std::size_t>(lane);
    Payload& part = round->parts[at] = Payload(round->mine.size());
    round->code =
        MPI_Irecv(part.data(), size, MPI_BYTE, lane, kPartTag, communicator_, &round->requests[at]);
    if (round->code != MPI_SUCCESS) break;
    round->code = MPI_Isend(round->mine.data(), size, MPI_BYTE, lane, kPartTag, communicator_,
                            &round->requests[lanes + at]);
  }
  wait(*round, begin_ns, std::min(patience_ns_, std::exchange(most_ns_, kNever)));
  Result<std::vector<Payload>> parts = parts_of(*round);
  if (parts.ok()) return parts;
  failure_ = parts.error();
  // What MPI may write to still must stay; the job is about to end.
  static_cast<void>(round.release());
  return parts;
}

void MpiLaneExchange::warn(const std::string& why) {
  const std::string& warning = warnings_.emplace_back(why.substr(0, kMostWarning));
  for (int lane = 0; lane < lanes_; ++lane) {
    if (lane == lane_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(warning.data(), static_cast<int>(warning.size()), MPI_BYTE, lane, kWarningTag,
              communicator_, &request);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

Result<void> MpiLaneExchange::look() {
  int came = 0;
  int size = 0;
  MPI_Status status;
  const int code = MPI_Iprobe(MPI_ANY_SOURCE, kWarningTag, communicator_, &came, &status);
  if (code != MPI_SUCCESS || came == 0) return {};
  MPI_Get_count(&status, MPI_BYTE, &size);
  std::string why(static_cast<std::size_t>(size), ' ');
  MPI_Recv(why.data(), size, MPI_BYTE, status.MPI_SOURCE, kWarningTag, communicator_,
           MPI_STATUS_IGNORE);
  return Error{"process " + std::to_string(status.MPI_SOURCE) + ": " + why};
}

// Looks at all of them: who is here is asked for afterwards.
bool MpiLaneExchange::all_done(Round& round) {
  bool all = true;
  for (std::size_t i = 0; i < round.requests.size() && round.code == MPI_SUCCESS; ++i) {
    if (round.requests[i] == MPI_REQUEST_NULL) continue;
    int done = 0;
    MPI_Status status;
    round.code = MPI_Test(&round.requests[i], &done, &status);
    all = all && done != 0;
    if (done == 0 || i >= round.parts.size() || round.code != MPI_SUCCESS) continue;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    round.other_sizes = round.other_sizes || size != static_cast<int>(round.mine.size());
  }
  return all && round.code == MPI_SUCCESS;
}

void MpiLaneExchange::wait(Round& round, std::int64_t begin_ns, std::int64_t most_ns) {
  while (round.code == MPI_SUCCESS && !all_done(round)) {
    const std::int64_t waited_ns = MonotonicClock::read_ns() - begin_ns;
    if (waited_ns > most_ns) return;
    if (on_slow_ && waited_ns > slow_after_ns_) tell_slow(round);
    if (waited_ns > kSpinNs) sleep_for_ns(kBetweenLooksNs);
  }
}

// Of those that wait, the first in number speaks.
void MpiLaneExchange::tell_slow(const Round& round) {
  const std::function<void(int)> handler = std::exchange(on_slow_, nullptr);
  const auto is_here = [](MPI_Request receive) { return receive == MPI_REQUEST_NULL; };
  const auto first = round.requests.begin();
  if (std::any_of(first, first + lane_, is_here)) return;
  const auto missing = std::find_if_not(first, first + lanes_, is_here);
  if (missing != first + lanes_) handler(static_cast<int>(missing - first));
}

int MpiLaneExchange::process_of(int lane) const {
  MPI_Group own = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm_group(communicator_, &own);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  int process = lane;
  MPI_Group_translate_ranks(own, 1, &lane, world, &process);
  MPI_Group_free(&own);
  MPI_Group_free(&world);
  return process;
}

Result<std::vector<Payload>> MpiLaneExchange::parts_of(Round& round) const {
  const std::string self = "lane " + std::to_string(lane_);
  int kind = MPI_SUCCESS;
  MPI_Error_class(round.code, &kind);
  if (kind == MPI_ERR_TRUNCATE || round.other_sizes) {
    return Error{"the lanes of a group brought parts of different sizes"};
  }
  if (round.code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(round.code, text, &length);
    return Error{self + " cannot reach the others of its group: " + text};
  }
  for (std::size_t i = 0; i < round.requests.size(); ++i) {
    if (round.requests[i] == MPI_REQUEST_NULL) continue;
    const int lane = static_cast<int>(i % round.parts.size());
    return Error{self + " waited in vain for process " + std::to_string(process_of(lane)) +
                 " of its group"};
  }
  round.parts[static_cast<std::size_t>(lane_)] = std::move(round.mine);
  return std::move(round.parts);
}

}  // namespace rrfp
