// Opens librrfp_mpi.so and librrfp_cuda.so, which lie beside the program or
// where RRFP_MPI_MODULE and RRFP_CUDA_MODULE say, and with them MPI and CUDA.
// Nothing else in the program is linked to either.
#pragma once

#include <memory>

#include "executor/cuda_module.h"
#include "executor/mpi_module.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// The error names the file and what the loader or MPI said. The module stays
/// open to the end of the program.
Result<std::unique_ptr<ProcessSession>> open_mpi(const MpiSettings& settings);

/// The error is one sentence that begins with "no CUDA device". The module
/// stays open to the end of the program.
Result<const CudaModule*> open_cuda();

}  // namespace rrfp
