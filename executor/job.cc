#include "executor/job.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "executor/core_count.h"
#include "executor/cuda_environment.h"
#include "executor/module_loader.h"
#include "executor/process_run.h"
#include "executor/stop_signals.h"
#include "executor/tcp_session.h"

namespace rrfp {

namespace {

// Emulated ranks need no core of their own, but somebody must be awake.
// `processes`: 0 where the launcher does not say; then there may be many.
std::int64_t sleep_between_looks_ns(int processes) {
  const int cores = launcher_core_count();
  if (processes > 0 && processes <= cores) return 0;
  return 25'000 * std::max<std::int64_t>(1, processes / (4 * cores));
}

// Before a process that waits for others sleeps.
constexpr std::int64_t kTcpSpinNs = 50'000;

bool has_mpi(const Launch& launch) {
  return launch.by == Launch::By::kOpenMpi || launch.by == Launch::By::kPmix ||
         launch.by == Launch::By::kSlurm;
}

TransportKind transport_for(const Launch& launch) {
  if (launch.processes == 1) return TransportKind::kThreads;
  if (launch.by == Launch::By::kTorchrun) return TransportKind::kTcp;
  return has_mpi(launch) ? TransportKind::kMpi : TransportKind::kThreads;
}

Result<void> check(TransportKind kind, const Grid& grid, int found) {
  if (grid.size() == found) return {};
  const std::string needed = std::to_string(grid.size());
  const std::string remedy =
      kind == TransportKind::kTcp
          ? "start it " + needed + " times, with WORLD_SIZE=" + needed + " and RANK=0, 1, ..."
          : "mpirun -n " + needed + " rrfp run ... (srun: --mpi=pmix -n " + needed + ")";
  return Error{"this run takes " + needed + " processes (" + std::to_string(grid.replicas) +
               " replicas x " + std::to_string(grid.ranks) + " ranks x " +
               std::to_string(grid.lanes) + " lanes), found " + std::to_string(found) + ": " +
               remedy};
}

}  // namespace

std::string_view name_of(TransportKind kind) {
  switch (kind) {
    case TransportKind::kAuto:
      return "auto";
    case TransportKind::kThreads:
      return "threads";
    case TransportKind::kMpi:
      return "mpi";
    case TransportKind::kTcp:
      return "tcp";
  }
  return "";
}

bool Job::meets_over_tcp(TransportKind kind) {
  if (kind != TransportKind::kAuto) return kind == TransportKind::kTcp;
  const Result<Launch> launch = find_launch(environment);
  return launch.ok() && transport_for(*launch) == TransportKind::kTcp;
}

Result<Job> Job::open(TransportKind kind, const JobMeeting& meeting) {
  Job job;
  job.meeting_ = meeting;
  job.kind_ = kind;
  Launch launch;
  if (kind == TransportKind::kAuto || kind == TransportKind::kMpi) {
    const Result<Launch> found = find_launch(environment);
    if (!found.ok()) return found.error();
    launch = *found;
    if (kind == TransportKind::kAuto) job.kind_ = transport_for(launch);
  }
  if (meeting.cuda) set_cuda_environment(job.kind_ != TransportKind::kThreads);
  Result<void> opened;
  if (job.kind_ == TransportKind::kMpi) opened = job.open_mpi_session(launch);
  if (job.kind_ == TransportKind::kTcp) opened = job.open_tcp_session();
  if (!opened.ok()) return opened.error();
  return job;
}

Result<void> Job::open_mpi_session(const Launch& launch) {
  if (!has_mpi(launch)) {
    return Error{"--transport mpi: no launcher of MPI started this process; use mpirun or srun"};
  }
  local_process_ = launch.local_process;
  MpiSettings settings;
  settings.sleep_ns = sleep_between_looks_ns(launch.processes);
  settings.process = launch.process;
  settings.processes = launch.processes;
  settings.patience_ns = meeting_.patience_ns;
  settings.leave_patience_ns = meeting_.agreement_patience_ns;
  settings.on_slow = meeting_.on_slow;
  settings.on_late = meeting_.on_late;
  Result<std::unique_ptr<ProcessSession>> session = open_mpi(settings);
  if (!session.ok()) return session.error();
  session_ = std::move(*session);
  return {};
}

Result<void> Job::open_tcp_session() {
  const Result<Launch> launch = find_tcp_launch(environment);
  if (!launch.ok()) return Error{"--transport tcp: " + launch.error().message};
  local_process_ = launch->local_process;
  TcpSettings settings;
  settings.process = launch->process;
  settings.processes = launch->processes;
  settings.address = launch->address;
  settings.port = launch->port;
  settings.port_from = launch->port_from;
  settings.patience_ns = meeting_.patience_ns;
  settings.leave_patience_ns = meeting_.agreement_patience_ns;
  settings.on_slow = meeting_.on_slow;
  settings.spin_ns = sleep_between_looks_ns(launch->processes) == 0 ? kTcpSpinNs : 0;
  Result<std::unique_ptr<ProcessSession>> session = open_tcp(settings);
  if (!session.ok()) return session.error();
  session_ = std::move(*session);
  return {};
}

Job::~Job() = default;

LaneExchange* Job::everyone() {
  if (session_ != nullptr && everyone_ == nullptr) {
    const int process = session_->transport().endpoint();
    everyone_ = std::make_unique<WatchedExchange>(
        session_->lane_exchange(0, process, meeting_.agreement_patience_ns), process,
        meeting_.on_slow);
  }
  return everyone_.get();
}

Result<void> Job::agree(const Result<void>& mine) {
  if (everyone() == nullptr) return mine;
  everyone_->waits_for_others("to say whether it can go on");
  Result<void> all_can = told(shared_reason(*everyone_, mine));
  everyone_->waits_for_others();
  // Where they cannot be asked it may be for what this one has found.
  return mine.ok() || all_can.ok() || failed_alike_ ? all_can : mine;
}

Result<void> Job::agree_on(const Terms& mine) {
  if (everyone() == nullptr) return {};
  everyone_->waits_for_others("to agree on what is run");
  Result<void> alike = told(shared_difference(*everyone_, mine));
  everyone_->waits_for_others();
  return alike;
}

// `shared`: what is wrong, in the words of all.
Result<void> Job::told(const Result<std::string>& shared) {
  failed_alike_ = shared.ok() && !shared->empty();
  if (!shared.ok()) {
    // Who is lost, and how that was noticed, says more than who was waited for.
    const Result<void> looked = everyone_->look();
    if (looked.ok()) return shared.error();
    return Error{"before the run all processes were asked whether they can go on: " +
                 looked.error().message};
  }
  return failed_alike_ ? Error{*shared} : Result<void>();
}

std::shared_ptr<LaneExchange> Job::lane_exchange(const Grid& grid, const Place& place,
                                                 std::int64_t patience_ns) {
  const int group = grid.endpoint({place.replica, place.rank, 0});
  if (session_ != nullptr) return session_->lane_exchange(group, place.lane, patience_ns);
  if (grid.lanes == 1) return std::make_shared<LoneExchange>();
  std::shared_ptr<ThreadsLaneGroup>& shared = groups_[group];
  if (shared == nullptr) shared = std::make_shared<ThreadsLaneGroup>(grid.lanes, patience_ns);
  return std::make_shared<ThreadsLaneExchange>(shared, place.lane);
}

Result<void> Job::check_launch(TransportKind kind, const Grid& grid) {
  if (kind == TransportKind::kThreads) return {};
  const Result<Launch> launch =
      kind == TransportKind::kTcp ? find_tcp_launch(environment) : find_launch(environment);
  // What is wrong with the launcher open() tells.
  const bool says = launch.ok() && launch->by != Launch::By::kNobody && launch->processes > 0;
  if (!says) return {};
  if (kind == TransportKind::kAuto) kind = transport_for(*launch);
  return kind == TransportKind::kThreads ? Result<void>() : check(kind, grid, launch->processes);
}

Result<void> Job::check_size(const Grid& grid) const {
  if (session_ == nullptr) return {};
  return check(kind_, grid, session_->transport().endpoints());
}

Result<RunOutcome> Job::run(PreparedRun& prepared, const DeviceMaker& make_device,
                            std::shared_ptr<IterationSink> sink,
                            const TransportMaker& make_transport) {
  prepared.plan->run = ++runs_;
  auto stop = std::make_shared<std::atomic<bool>>(false);
  if (session_ == nullptr) {
    const StopSignals signals(stop, nullptr);
    return run_on_threads(prepared.plan, make_device, std::move(sink),
                          default_tuning(prepared.plan->grid.size()), stop, make_transport);
  }
  if (Result<void> fits = check_size(prepared.plan->grid); !fits.ok()) return fits.error();
  Transport& control = session_->transport();
  const Place place = prepared.plan->grid.place(control.endpoint());
  WaitingLine line;
  const StopSignals signals(stop, &line);
  const std::unique_ptr<Transport> own = make_transport ? make_transport(place, control) : nullptr;
  const std::unique_ptr<Device> device = make_device(place);
  return run_in_process(*prepared.plan, *device, *sink, own != nullptr ? *own : control, *stop,
                        line);
}

void Job::leave() {
  if (session_ != nullptr) session_->finish();
}

void Job::abort(int status, const std::string& why) {
  if (session_ != nullptr) session_->abort(status, why);
}

void Job::close(const RunOutcome& last, int status) {
  if (session_ == nullptr) return;
  if (last.end == RunEnd::kCompleted) return leave();
  // The others say what they waited for; then none of them may stay.
  if (speaks()) std::this_thread::sleep_for(std::chrono::milliseconds(500));
  if (!speaks()) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  session_->abort(status, "");
}

std::string describe(const RunOutcome& outcome) {
  std::string text = outcome.why + "\n";
  for (const std::string& line : outcome.waiting) text += "  " + line + "\n";
  return text;
}

}  // namespace rrfp
