// Launches of the kernels; each returns what the launch did. The work is asynchronous on `stream`.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "gpu/cuda/device_difference.h"
#include "gpu/cuda/digest_plan.h"
#include "gpu/tensor.h"

namespace savegate::gpu::cuda {

// `root_blocks` of the plan is the launch's own to say.
cudaError_t launch_digest(DigestPlan plan, int multiprocessors, cudaStream_t stream);

// `total` is zero and ~0 before.
cudaError_t launch_compare(const void* left, const void* right, std::uint64_t bytes,
                           DeviceDifference* total, int multiprocessors, cudaStream_t stream);

cudaError_t launch_fill(Dtype dtype, void* data, std::uint64_t count, std::uint64_t stream_number,
                        std::uint64_t first_index, cudaStream_t stream);

}  // namespace savegate::gpu::cuda
