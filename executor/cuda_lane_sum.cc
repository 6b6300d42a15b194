#include "executor/cuda_lane_sum.h"

#include <utility>

#include "scheduler_core/check.h"

namespace rrfp {

Result<CudaLaneSum> CudaLaneSum::create(std::unique_ptr<CudaLaneGather> gather, int lanes,
                                        std::size_t most) {
  CudaLaneSum made;
  made.gather_ = std::move(gather);
  made.lanes_ = static_cast<std::size_t>(lanes);
  made.most_ = most;
  Result<CudaMemory> parts =
      CudaMemory::create(made.lanes_ * most * sizeof(float), "the sums over lanes");
  if (!parts.ok()) return parts.error();
  made.parts_ = std::move(*parts);
  return made;
}

void CudaLaneSum::sum(CudaCompute& compute, const CudaMatrix& part) {
  if (lanes_ == 1 || compute.failure()) return;
  RRFP_CHECK(part.stride == part.columns && part.size() <= most_);
  auto* const all = reinterpret_cast<float*>(parts_.data());
  if (Result<void> gathered = gather_->gather(compute, part, all); !gathered.ok()) {
    return compute.fail(gathered.error());
  }
  compute.copy(CudaMatrix::dense(all, part.rows, part.columns), part);
  for (std::size_t lane = 1; lane < lanes_; ++lane) {
    compute.run("launch of a sum over lanes", [&](cudaStream_t stream) {
      return launch_add(part.size(), all + lane * part.size(), part.data, stream);
    });
  }
}

}  // namespace rrfp
