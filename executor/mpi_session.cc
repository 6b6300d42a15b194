// The module's one entry point.
#include <mpi.h>
#include <sys/prctl.h>

#include <cstdlib>

#include "executor/mpi_transport.h"

namespace rrfp {

namespace {

class Session final : public MpiSession {
 public:
  Session(MPI_Comm communicator, const MpiSettings& settings)
      : communicator_(communicator),
        transport_(std::make_unique<MpiTransport>(communicator, settings)) {}
  ~Session() override { finish(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Transport& transport() override { return *transport_; }
  void barrier() override { MPI_Barrier(communicator_); }
  [[noreturn]] void abort(int status) override {
    MPI_Abort(communicator_, status);
    std::_Exit(status);
  }
  void finish() override {
    if (transport_ == nullptr) return;
    // Nobody takes back its receives while a letter may be on its way.
    MPI_Barrier(communicator_);
    transport_.reset();
    MPI_Comm_free(&communicator_);
    MPI_Finalize();
  }

 private:
  MPI_Comm communicator_;
  std::unique_ptr<MpiTransport> transport_;
};

MpiSession* open_session(const MpiSettings& settings, std::string& error) {
  // The default slack of 50 us would be added to every sleep.
  prctl(PR_SET_TIMERSLACK, 1);
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
    error = "MPI_Init_thread failed";
    return nullptr;
  }
  MPI_Comm communicator = MPI_COMM_NULL;
  if (MPI_Comm_dup(MPI_COMM_WORLD, &communicator) != MPI_SUCCESS) {
    error = "MPI_Comm_dup failed";
    return nullptr;
  }
  return new Session(communicator, settings);
}

}  // namespace

}  // namespace rrfp

extern "C" {
extern __attribute__((visibility("default"))) const rrfp::MpiModule rrfp_mpi_module;
const rrfp::MpiModule rrfp_mpi_module = {rrfp::kMpiModuleVersion, rrfp::open_session};
}
