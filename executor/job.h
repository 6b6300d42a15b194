// Where runs take place: threads of this process, or the processes of a job of
// which this is one, over MPI or TCP. Several runs may follow one another; then
// all processes must ask for the same ones in the same order.
//
// Thread safety: one thread.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "executor/agreement.h"
#include "executor/lane_exchange.h"
#include "executor/launcher.h"
#include "executor/process_session.h"
#include "executor/run_setup.h"
#include "executor/threads_run.h"
#include "executor/watched_exchange.h"

namespace rrfp {

enum class TransportKind : std::uint8_t {
  /// Where a launcher started several processes MPI, or TCP if it is PyTorch's
  /// (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT); else threads.
  kAuto,
  kThreads,
  kMpi,
  kTcp,
};

/// "auto", "threads", "mpi" or "tcp".
std::string_view name_of(TransportKind kind);

/// How processes wait for each other beside a run, in which they tell each other
/// that they are alive.
struct JobMeeting {
  /// Runs compute on CUDA devices, for which the environment is set while the
  /// process has one thread.
  bool cuda = false;
  /// Until all have come.
  std::int64_t patience_ns = 60'000'000'000;
  /// Until all agree, or leave. What one of them does before, to open a device
  /// say, may take long.
  std::int64_t agreement_patience_ns = 300'000'000'000;
  /// Told where it takes long, by any call of the job: who waits for whom, for people.
  std::function<void(const std::string& who_waits)> on_slow;
  /// Told where one of them does not come at all and MPI cannot be left: ends the
  /// process.
  std::function<void(const std::string& who_waited)> on_late;
  /// Told of other work that takes long before a run, by whoever does it.
  std::function<void(const std::string& what)> on_progress;
};

class Job {
 public:
  /// The error names the variable, the module or the launcher that is at fault.
  static Result<Job> open(TransportKind kind, const JobMeeting& meeting = {});
  /// Whether as many processes were started as `grid` takes, where the launcher
  /// says how many: the error of check_size(), before they meet.
  static Result<void> check_launch(TransportKind kind, const Grid& grid);
  /// Whether open() makes processes meet over TCP.
  static bool meets_over_tcp(TransportKind kind);
  Job(Job&&) noexcept = default;
  Job& operator=(Job&&) = delete;
  ~Job();

  /// The processes of the job; null where its workers are threads of this one.
  ProcessSession* processes() const { return session_.get(); }
  /// Which of the processes of its host this is, where the launcher says so.
  std::optional<int> local_process() const { return local_process_; }
  /// This process speaks for the job, and has its records.
  bool speaks() const { return session_ == nullptr || session_->transport().endpoint() == 0; }
  std::string name() const { return std::string(name_of(kind_)); }
  TransportKind transport() const { return kind_; }

  /// All processes, as lanes in the order of endpoints; null where workers are
  /// threads of this one.
  LaneExchange* everyone();

  /// Whether every process can go on, where `mine` says it of this one. All
  /// processes call it at the same point. See shared_reason() for the error.
  Result<void> agree(const Result<void>& mine);
  /// Whether all processes run the same. See shared_difference() for the error.
  Result<void> agree_on(const Terms& mine);
  /// The last error of the two was the same for all processes: all of them
  /// leave, and each has said why.
  bool failed_alike() const { return failed_alike_; }

  /// How the processes wait for each other beside a run, and whom that is told.
  const JobMeeting& meeting() const { return meeting_; }

  /// The collective of one lane's group, for devices that compute. Every process
  /// calls it once, at the same point; over threads, once for each place, from
  /// one thread.
  std::shared_ptr<LaneExchange> lane_exchange(const Grid& grid, const Place& place,
                                              std::int64_t patience_ns);

  /// Where workers are processes, each must be one. The error says how many are
  /// needed.
  Result<void> check_size(const Grid& grid) const;

  /// Sets the number of the run in `prepared`. `sink` is used where this
  /// process speaks. `make_transport` may be empty. The error: see check_size().
  Result<RunOutcome> run(PreparedRun& prepared, const DeviceMaker& make_device,
                         std::shared_ptr<IterationSink> sink,
                         const TransportMaker& make_transport = {});

  /// Leaves in an orderly way, as all other processes do.
  void leave();
  /// Ends all processes of the job, at once; over TCP the others can tell `why`.
  /// Returns where workers are threads.
  void abort(int status, const std::string& why);
  /// Leaves in an orderly way where every run completed; else ends all processes
  /// of the job, with `status`. Returns where workers are threads.
  void close(const RunOutcome& last, int status);

 private:
  Job() = default;
  Result<void> open_mpi_session(const Launch& launch);
  Result<void> open_tcp_session();
  Result<void> told(const Result<std::string>& shared);

  TransportKind kind_ = TransportKind::kThreads;
  JobMeeting meeting_;
  std::unique_ptr<ProcessSession> session_;
  std::unique_ptr<WatchedExchange> everyone_;  // of the session
  bool failed_alike_ = false;
  std::map<int, std::shared_ptr<ThreadsLaneGroup>> groups_;  // by endpoint of lane 0
  std::optional<int> local_process_;
  int runs_ = 0;
};

/// What is to be told of a run that did not complete: why, then one line per
/// worker.
std::string describe(const RunOutcome& outcome);

}  // namespace rrfp
