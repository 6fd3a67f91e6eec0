#include <algorithm>

#include "gpu/cuda/compare_kernel.cuh"
#include "gpu/cuda/digest_kernel.cuh"
#include "gpu/cuda/fill_kernel.cuh"
#include "gpu/cuda/kernels.h"

namespace savegate::gpu::cuda {
namespace {

constexpr unsigned kDigestWarps = 4;   // a block
constexpr unsigned kDigestStages = 4;  // leaves that a warp has, the one that it hashes included
constexpr unsigned kDigestBlocks = 3;  // a multiprocessor, at most
constexpr unsigned kDigestShared = kDigestWarps * sizeof(LeafRing<kDigestStages>);  // bytes
constexpr unsigned kStreamingThreads = 256;  // a block that reads or writes once
constexpr unsigned kStreamingBlocks = 8;     // a multiprocessor

extern __shared__ Piece digest_rings[];

__global__ void __launch_bounds__(kDigestWarps* kWarp, kDigestBlocks)
    digest_kernel(const __grid_constant__ DigestPlan plan) {
  digest_tensors<kDigestWarps, kDigestStages>(
      plan, reinterpret_cast<LeafRing<kDigestStages>*>(digest_rings));
}

__global__ void __launch_bounds__(kStreamingThreads)
    compare_kernel(const std::uint8_t* left, const std::uint8_t* right, std::uint64_t bytes,
                   DeviceDifference* total) {
  const bool aligned =
      (reinterpret_cast<std::uintptr_t>(left) | reinterpret_cast<std::uintptr_t>(right)) % 16 == 0;
  if (aligned) {
    compare_aligned(left, right, bytes, total);
  } else {
    compare_bytes(left, right, bytes, total);
  }
}

template <class Element, class Format>
__global__ void __launch_bounds__(kStreamingThreads)
    fill_kernel(std::uint8_t* data, std::uint64_t count, std::uint64_t stream_number,
                std::uint64_t first_index) {
  fill_elements<Element, Format>(data, count, stream_number, first_index);
}

// No more blocks than there is work for.
unsigned streaming_blocks(std::uint64_t bytes, int multiprocessors) {
  const std::uint64_t most = kStreamingBlocks * static_cast<unsigned>(multiprocessors);
  const std::uint64_t useful = bytes / (16 * kStreamingThreads) + 1;
  return static_cast<unsigned>(useful < most ? useful : most);
}

}  // namespace

cudaError_t launch_digest(DigestPlan plan, int multiprocessors, cudaStream_t stream) {
  cudaError_t error = cudaFuncSetAttribute(
      digest_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kDigestShared);
  if (error != cudaSuccess) return error;
  int resident = 0;  // blocks of a multiprocessor
  error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, digest_kernel,
                                                        kDigestWarps * kWarp, kDigestShared);
  if (error != cudaSuccess) return error;
  const std::uint64_t most = static_cast<std::uint64_t>(resident) * multiprocessors;
  const std::uint64_t useful = plan.units / kDigestWarps + 1;
  // A warp brings the roots of many small tensors to their end while as many are hashed.
  plan.root_blocks = static_cast<std::uint32_t>(
      1 + std::min<std::uint64_t>(plan.count / (16 * kDigestWarps), most / 8));
  const std::uint64_t blocks = plan.root_blocks + std::min(useful, most - plan.root_blocks);
  digest_kernel<<<static_cast<unsigned>(blocks), kDigestWarps * kWarp, kDigestShared, stream>>>(
      plan);
  return cudaGetLastError();
}

cudaError_t launch_compare(const void* left, const void* right, std::uint64_t bytes,
                           DeviceDifference* total, int multiprocessors, cudaStream_t stream) {
  compare_kernel<<<streaming_blocks(bytes, multiprocessors), kStreamingThreads, 0, stream>>>(
      static_cast<const std::uint8_t*>(left), static_cast<const std::uint8_t*>(right), bytes,
      total);
  return cudaGetLastError();
}

cudaError_t launch_fill(Dtype dtype, void* data, std::uint64_t count, std::uint64_t stream_number,
                        std::uint64_t first_index, int multiprocessors, cudaStream_t stream) {
  return with_format(dtype, [&](auto format, auto word) {
    const unsigned blocks = streaming_blocks(count * sizeof(word), multiprocessors);
    fill_kernel<decltype(word), decltype(format)><<<blocks, kStreamingThreads, 0, stream>>>(
        static_cast<std::uint8_t*>(data), count, stream_number, first_index);
    return cudaGetLastError();
  });
}

}  // namespace savegate::gpu::cuda
