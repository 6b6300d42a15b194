// The module's one entry point.
#include <mpi.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "executor/mpi_call_watch.h"
#include "executor/mpi_lane_exchange.h"
#include "executor/mpi_transport.h"

namespace rrfp {

namespace {

constexpr std::int64_t kSlowNs = 5'000'000'000;
// MPI_Finalize waits for processes that have all said that they are done.
constexpr std::int64_t kFinalizePatienceNs = 60'000'000'000;
// Where all wait in vain, process 0 says so for all: upon its end the launcher ends the others.
constexpr std::int64_t kLauncherNs = 3'000'000'000;

std::string seconds(std::int64_t ns) { return std::to_string(ns / 1'000'000'000) + " s"; }

std::string own_name(const MpiSettings& settings) {
  return "MPI: process " + std::to_string(settings.process) +
         (settings.processes > 0 ? " of " + std::to_string(settings.processes) : "");
}

[[noreturn]] void end_late(const MpiSettings& settings, const std::string& who_waited) {
  if (settings.on_late) settings.on_late(who_waited);
  std::_Exit(1);
}

class Session final : public ProcessSession {
 public:
  /// Of all processes; frees both communicators.
  Session(MPI_Comm communicator, MPI_Comm meeting, const MpiSettings& settings)
      : settings_(settings),
        communicator_(communicator),
        meeting_(std::make_unique<MpiLaneExchange>(meeting, settings.leave_patience_ns)),
        transport_(std::make_unique<MpiTransport>(communicator, settings)) {}
  ~Session() override { finish(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Transport& transport() override { return *transport_; }
  std::unique_ptr<LaneExchange> lane_exchange(int group, int lane,
                                              std::int64_t patience_ns) override;
  [[noreturn]] void abort(int status, const std::string&) override {
    MPI_Abort(communicator_, status);
    std::_Exit(status);
  }
  void finish() override;

 private:
  // All are here. `who_has_not`: what those who are waited for have yet to do.
  Result<void> meet(const std::string& who_has_not);

  const MpiSettings settings_;
  MPI_Comm communicator_;
  std::unique_ptr<MpiLaneExchange> meeting_;
  std::unique_ptr<MpiTransport> transport_;
};

Result<void> Session::meet(const std::string& who_has_not) {
  meeting_->on_slow(kSlowNs, [&](int process) {
    if (!settings_.on_slow) return;
    settings_.on_slow(own_name(settings_) + " waits for process " + std::to_string(process) +
                      ", which has not " + who_has_not + " (" + seconds(kSlowNs) + ")");
  });
  const Result<std::vector<Payload>> met = meeting_->exchange(Payload(1));
  meeting_->on_slow(0, nullptr);
  if (met.ok()) return {};
  return Error{own_name(settings_) + ", as " + met.error().message + ", which has not " +
               who_has_not};
}

// A communicator is made by all of them, without a bound of its own: so they meet first.
std::unique_ptr<LaneExchange> Session::lane_exchange(int group, int lane,
                                                     std::int64_t patience_ns) {
  if (Result<void> met = meet("come so far"); !met.ok()) {
    return std::make_unique<BrokenLaneExchange>(met.error());
  }
  MPI_Comm of_group = MPI_COMM_NULL;
  MPI_Comm_split(communicator_, group, lane, &of_group);
  return std::make_unique<MpiLaneExchange>(of_group, patience_ns);
}

void Session::finish() {
  if (transport_ == nullptr) return;
  // Nobody takes back its receives while a letter may be on its way.
  if (Result<void> met = meet("done its part"); !met.ok()) {
    end_late(settings_, met.error().message);
  }
  meeting_.reset();
  transport_.reset();
  MPI_Comm_free(&communicator_);
  const auto late = [this] {
    end_late(settings_, own_name(settings_) + " waited " + seconds(kFinalizePatienceNs) +
                            " in vain for the others to call MPI_Finalize");
  };
  const MpiCallWatch watch({kFinalizePatienceNs, nullptr}, {kFinalizePatienceNs, late});
  MPI_Finalize();
}

ProcessSession* open_session(const MpiSettings& settings, std::string& error) {
  // The default slack of 50 us would be added to every sleep.
  prctl(PR_SET_TIMERSLACK, 1);
  const std::string others = " for the others to call MPI_Init";
  const std::string remedy =
      ": each has to be started as part of this job, none with --help or --transport threads";
  const auto slow = [&] {
    // Two of them, for one may be who is waited for.
    if (settings.process > 1 || !settings.on_slow) return;
    settings.on_slow(own_name(settings) + " waits" + others + " (" + seconds(kSlowNs) + ")" +
                     remedy);
  };
  const auto late = [&] {
    end_late(settings, own_name(settings) + " waited " + seconds(settings.patience_ns) +
                           " in vain" + others + remedy);
  };
  const std::int64_t patience_ns = settings.patience_ns + (settings.process > 0 ? kLauncherNs : 0);
  const MpiCallWatch watch({kSlowNs, slow}, {patience_ns, late});
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    error = "MPI_Init_thread failed";
    return nullptr;
  }
  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Comm meeting = MPI_COMM_NULL;
  if (MPI_Comm_dup(MPI_COMM_WORLD, &communicator) != MPI_SUCCESS ||
      MPI_Comm_dup(MPI_COMM_WORLD, &meeting) != MPI_SUCCESS) {
    error = "MPI_Comm_dup failed";
    return nullptr;
  }
  return new Session(communicator, meeting, settings);
}

}  // namespace

}  // namespace rrfp

extern "C" {
extern __attribute__((visibility("default"))) const rrfp::MpiModule rrfp_mpi_module;
const rrfp::MpiModule rrfp_mpi_module = {rrfp::kMpiModuleVersion, rrfp::open_session};
}
