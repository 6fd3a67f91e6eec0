// Bitwise compare of device memory.
#pragma once

#include <cstdint>

#include "gpu/cuda/device_difference.h"
#include "gpu/cuda/host_device.h"

namespace savegate::gpu::cuda {

// How many of the eight bytes differ.
__device__ inline unsigned differing_bytes(std::uint64_t difference) {
  std::uint64_t any = difference | difference >> 4;
  any |= any >> 2;
  any |= any >> 1;
  return static_cast<unsigned>(__popcll(any & 0x0101010101010101ULL));
}

class Differences {
 public:
  // `at` is the offset of the eight bytes whose exclusive or is given.
  __device__ void note(std::uint64_t difference, std::uint64_t at) {
    if (difference == 0) return;
    count_ += differing_bytes(difference);
    const unsigned long long byte =
        at + static_cast<unsigned>(__ffsll(static_cast<long long>(difference)) - 1) / 8;
    first_ = byte < first_ ? byte : first_;
  }
  __device__ void add_to(DeviceDifference* total) const {
    if (count_ == 0) return;
    atomicAdd(&total->count, count_);
    atomicMin(&total->first, first_);
  }

 private:
  unsigned long long count_ = 0;
  unsigned long long first_ = ~0ULL;
};

// Both views begin at a multiple of 16; the rest of less than 16 bytes is the first block's.
__device__ inline void compare_aligned(const std::uint8_t* left, const std::uint8_t* right,
                                       std::uint64_t bytes, DeviceDifference* total) {
  constexpr unsigned kInFlight = 4;
  const auto* a = reinterpret_cast<const ulonglong2*>(left);
  const auto* b = reinterpret_cast<const ulonglong2*>(right);
  const std::uint64_t pieces = bytes / 16;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  Differences found;
  std::uint64_t at = thread;
  for (; at + (kInFlight - 1) * threads < pieces; at += kInFlight * threads) {
    ulonglong2 x[kInFlight];
    ulonglong2 y[kInFlight];
    SAVEGATE_UNROLL
    for (unsigned i = 0; i < kInFlight; ++i) {
      x[i] = __ldcs(a + at + i * threads);
      y[i] = __ldcs(b + at + i * threads);
    }
    SAVEGATE_UNROLL
    for (unsigned i = 0; i < kInFlight; ++i) {
      found.note(x[i].x ^ y[i].x, 16 * (at + i * threads));
      found.note(x[i].y ^ y[i].y, 16 * (at + i * threads) + 8);
    }
  }
  for (; at < pieces; at += threads) {
    found.note(a[at].x ^ b[at].x, 16 * at);
    found.note(a[at].y ^ b[at].y, 16 * at + 8);
  }
  const std::uint64_t rest = 16 * pieces + thread;
  if (rest < bytes) found.note(std::uint64_t{left[rest]} ^ right[rest], rest);
  found.add_to(total);
}

__device__ inline void compare_bytes(const std::uint8_t* left, const std::uint8_t* right,
                                     std::uint64_t bytes, DeviceDifference* total) {
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  Differences found;
  for (; at < bytes; at += threads) found.note(std::uint64_t{left[at]} ^ right[at], at);
  found.add_to(total);
}

}  // namespace savegate::gpu::cuda
