// The module's one entry point.
#include "executor/cuda_module.h"
#include "executor/cuda_survey.h"

extern "C" {
extern __attribute__((visibility("default"))) const rrfp::CudaModule rrfp_cuda_module;
const rrfp::CudaModule rrfp_cuda_module = {rrfp::kCudaModuleVersion, rrfp::survey_cuda};
}
