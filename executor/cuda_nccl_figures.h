// How fast the channels of a job are, for its calibration.
//
// Channels are measured in the one order that all processes keep; two that
// share no process may be measured at the same time.
//
// Thread safety: one thread.
#pragma once

#include <vector>

#include "executor/cuda_nccl_connections.h"
#include "executor/device_figures.h"

namespace rrfp {

/// Of the channels on which this process receives. The error names the channel.
Result<std::vector<LinkFigures>> measure_channels(const CudaNcclConnections& connections,
                                                  const CudaPeers& peers, std::size_t message_bytes,
                                                  CudaPeerWait& wait);

/// Those of all processes, in the order of channels. Where some could not, all
/// get one error, that of CudaPeerWait::agree().
Result<std::vector<LinkFigures>> gather_links(const CudaPeers& peers, CudaPeerWait& wait,
                                              const Result<std::vector<LinkFigures>>& mine);

}  // namespace rrfp
