// What the device's memory can do at best: the ceilings that the benchmarks are held to.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace savegate::gpu::cuda {

// Reads `bytes` once, a multiple of 64 KiB, and leaves next to nothing in `result` (8 bytes).
cudaError_t read_once(const void* data, std::uint64_t bytes, void* result, cudaStream_t stream);
// Writes them once.
cudaError_t write_once(void* data, std::uint64_t bytes, cudaStream_t stream);

}  // namespace savegate::gpu::cuda
