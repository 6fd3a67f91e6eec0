#include <algorithm>

#include "gpu/cuda/compare_kernel.cuh"
#include "gpu/cuda/digest_kernel.cuh"
#include "gpu/cuda/fill_kernel.cuh"
#include "gpu/cuda/kernels.h"

namespace savegate::gpu::cuda {
namespace {

constexpr unsigned kDigestWarps = 16;  // a block; one block a multiprocessor
template <unsigned kStages>
constexpr unsigned kDigestShared = kDigestWarps * sizeof(LeafRing<kStages>);  // bytes
constexpr unsigned kCompareThreads = 256;                                     // a block
constexpr unsigned kCompareBlocks = 8;                                        // a multiprocessor

extern __shared__ Piece digest_rings[];

// kStages: leaves that a warp has, the one that it hashes included.
template <unsigned kStages>
__global__ void __launch_bounds__(kDigestWarps* kWarp, 1)
    digest_kernel(const __grid_constant__ DigestPlan plan) {
  digest_tensors<kDigestWarps, kStages>(plan, reinterpret_cast<LeafRing<kStages>*>(digest_rings));
}

template <unsigned kStages>
cudaError_t launch_digest_staged(DigestPlan plan, int multiprocessors, cudaStream_t stream) {
  const cudaError_t error = cudaFuncSetAttribute(
      digest_kernel<kStages>, cudaFuncAttributeMaxDynamicSharedMemorySize, kDigestShared<kStages>);
  if (error != cudaSuccess) return error;
  const std::uint64_t most = static_cast<std::uint64_t>(multiprocessors);
  const std::uint64_t useful = plan.units / kDigestWarps + 1;
  // A warp brings the roots of many small tensors to their end while as many are hashed.
  plan.root_blocks = static_cast<std::uint32_t>(
      1 + std::min<std::uint64_t>(plan.count / (16 * kDigestWarps), most / 8));
  const std::uint64_t blocks = plan.root_blocks + std::min(useful, most - plan.root_blocks);
  digest_kernel<kStages>
      <<<static_cast<unsigned>(blocks), kDigestWarps * kWarp, kDigestShared<kStages>, stream>>>(
          plan);
  return cudaGetLastError();
}

__global__ void __launch_bounds__(kCompareThreads)
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
__global__ void __launch_bounds__(kFillThreads)
    fill_kernel(std::uint8_t* data, std::uint64_t count, std::uint64_t stream_number,
                std::uint64_t first_index) {
  fill_elements<Element, Format>(data, count, stream_number, first_index);
}

// No more blocks than there is work for.
unsigned compare_blocks(std::uint64_t bytes, int multiprocessors) {
  const std::uint64_t most = kCompareBlocks * static_cast<unsigned>(multiprocessors);
  const std::uint64_t useful = bytes / (16 * kCompareThreads) + 1;
  return static_cast<unsigned>(useful < most ? useful : most);
}

}  // namespace

cudaError_t launch_digest(DigestPlan plan, int multiprocessors, cudaStream_t stream) {
  int device = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  int shared = 0;  // bytes that a block may have
  error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  if (error != cudaSuccess) return error;
  return static_cast<unsigned>(shared) >= kDigestShared<3>
             ? launch_digest_staged<3>(plan, multiprocessors, stream)
             : launch_digest_staged<2>(plan, multiprocessors, stream);
}

cudaError_t launch_compare(const void* left, const void* right, std::uint64_t bytes,
                           DeviceDifference* total, int multiprocessors, cudaStream_t stream) {
  compare_kernel<<<compare_blocks(bytes, multiprocessors), kCompareThreads, 0, stream>>>(
      static_cast<const std::uint8_t*>(left), static_cast<const std::uint8_t*>(right), bytes,
      total);
  return cudaGetLastError();
}

cudaError_t launch_fill(Dtype dtype, void* data, std::uint64_t count, std::uint64_t stream_number,
                        std::uint64_t first_index, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return with_format(dtype, [&](auto format, auto word) {
    const std::uint64_t blocks = (count * sizeof(word) - 1) / kFillSpan + 1;
    fill_kernel<decltype(word), decltype(format)>
        <<<static_cast<unsigned>(blocks), kFillThreads, 0, stream>>>(
            static_cast<std::uint8_t*>(data), count, stream_number, first_index);
    return cudaGetLastError();
  });
}

}  // namespace savegate::gpu::cuda
