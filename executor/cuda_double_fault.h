// A fault that the double is told to have, so that tests can break a job at
// every point of its way.
//
// RRFP_DOUBLE_FAULT=PROCESS,CALL,NUMBER,WHAT: in the process of that rank (RANK,
// or under mpirun OMPI_COMM_WORLD_RANK) the call of that number (from 1) to the
// function of that name ("ncclSend") ends the process as a killed one ends (WHAT
// is kill), stops until it is continued (stop), or fails (fail).
//
// Thread safety: any.
#pragma once

namespace rrfp {

/// To be called at the beginning of `call`: whether it is the one that fails.
bool double_fault(const char* call);

}  // namespace rrfp
