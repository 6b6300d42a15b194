// Opens librrfp_mpi.so, which lies beside the program or where RRFP_MPI_MODULE
// says, and MPI with it. Nothing else in the program is linked to MPI.
#pragma once

#include <memory>

#include "executor/mpi_module.h"
#include "scheduler_core/result.h"

namespace rrfp {

/// The error names the file and what the loader or MPI said. The module stays
/// open to the end of the program.
Result<std::unique_ptr<MpiSession>> open_mpi(const MpiSettings& settings);

}  // namespace rrfp
