// The module's one entry point.
#include <mpi.h>
#include <sys/prctl.h>

#include <cstdlib>
#include <cstring>

#include "executor/mpi_transport.h"

namespace rrfp {

namespace {

// A lane that does not come blocks this; then the job is ended from outside,
// by mpirun or by the workers that notice the silence.
class MpiLaneExchange final : public LaneExchange {
 public:
  explicit MpiLaneExchange(MPI_Comm communicator) : communicator_(communicator) {
    MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
    MPI_Comm_size(communicator_, &lanes_);
  }
  ~MpiLaneExchange() override {
    int gone = 0;
    MPI_Finalized(&gone);
    if (gone == 0) MPI_Comm_free(&communicator_);
  }
  MpiLaneExchange(const MpiLaneExchange&) = delete;
  MpiLaneExchange& operator=(const MpiLaneExchange&) = delete;

  int lanes() const override { return lanes_; }
  Result<std::vector<Payload>> exchange(Payload mine) override {
    const std::size_t size = mine.size();
    std::unique_ptr<std::byte[]> all(new std::byte[size * static_cast<std::size_t>(lanes_)]);
    const int code = MPI_Allgather(mine.data(), static_cast<int>(size), MPI_BYTE, all.get(),
                                   static_cast<int>(size), MPI_BYTE, communicator_);
    if (code != MPI_SUCCESS) return Error{"MPI_Allgather among the lanes of a group failed"};
    std::vector<Payload> parts;
    for (int lane = 0; lane < lanes_; ++lane) {
      Payload part(size);
      if (size > 0)
        std::memcpy(part.data(), all.get() + static_cast<std::size_t>(lane) * size, size);
      parts.push_back(std::move(part));
    }
    return parts;
  }

 private:
  MPI_Comm communicator_;
  int lanes_ = 0;
};

class Session final : public ProcessSession {
 public:
  Session(MPI_Comm communicator, const MpiSettings& settings)
      : communicator_(communicator),
        transport_(std::make_unique<MpiTransport>(communicator, settings)) {}
  ~Session() override { finish(); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Transport& transport() override { return *transport_; }
  std::unique_ptr<LaneExchange> lane_exchange(int group, int lane, std::int64_t) override {
    MPI_Comm of_group = MPI_COMM_NULL;
    MPI_Comm_split(communicator_, group, lane, &of_group);
    return std::make_unique<MpiLaneExchange>(of_group);
  }
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

ProcessSession* open_session(const MpiSettings& settings, std::string& error) {
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
