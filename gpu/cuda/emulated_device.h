// A device made of threads, for tests of kernels where there is no GPU: each thread of a block is a
// std::thread, barriers are barriers, and blocks run at the same time.
//
//   #include "gpu/cuda/emulated_device.h"     // before the kernel
//   #include "gpu/cuda/digest_kernel.cuh"
//   LeafRing<2> rings[2][2];
//   launch(/*blocks=*/2, /*threads=*/64, [&] { digest_tensors<2, 2>(plan, rings[blockIdx.x]); });
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

// NOLINTBEGIN(bugprone-reserved-identifier): the names are CUDA's
#define __device__
#define __constant__ static const
#define __noinline__

struct ulonglong2 {
  std::uint64_t x, y;
};
struct Dimensions {
  unsigned x = 1;
};
inline thread_local Dimensions threadIdx, blockIdx, blockDim, gridDim;

namespace savegate::gpu::cuda {

inline constexpr unsigned kEmulatedWarp = 32;

// Its threads are many and the cores few, so who waits lets others run.
class EmulatedBarrier {
 public:
  explicit EmulatedBarrier(unsigned threads) : threads_(threads) {}
  void arrive_and_wait() {
    const unsigned turn = turn_.load();
    if (arrived_.fetch_add(1) + 1 == threads_) {
      arrived_ = 0;
      turn_ = turn + 1;
    }
    while (turn_.load() == turn) std::this_thread::yield();
  }

 private:
  unsigned threads_;
  std::atomic<unsigned> arrived_{0};
  std::atomic<unsigned> turn_{0};
};

struct EmulatedWarp {
  EmulatedBarrier barrier{kEmulatedWarp};
  std::array<std::uint64_t, kEmulatedWarp> exchanged{};
};

struct EmulatedBlock {
  explicit EmulatedBlock(unsigned threads) : barrier(threads), warps(threads / kEmulatedWarp) {}
  EmulatedBarrier barrier;
  std::vector<EmulatedWarp> warps;
};

inline thread_local EmulatedBlock* this_block = nullptr;

inline EmulatedWarp& this_warp() { return this_block->warps[threadIdx.x / kEmulatedWarp]; }

// What lane `from` gave.
inline std::uint64_t exchange(std::uint64_t own, unsigned from) {
  EmulatedWarp& warp = this_warp();
  warp.exchanged[threadIdx.x % kEmulatedWarp] = own;
  warp.barrier.arrive_and_wait();
  const std::uint64_t other = warp.exchanged[from % kEmulatedWarp];
  warp.barrier.arrive_and_wait();
  return other;
}

template <class Kernel>
void launch(unsigned blocks, unsigned threads, Kernel kernel) {
  std::vector<std::unique_ptr<EmulatedBlock>> all;
  std::vector<std::jthread> running;
  for (unsigned block = 0; block < blocks; ++block) {
    all.push_back(std::make_unique<EmulatedBlock>(threads));
    for (unsigned thread = 0; thread < threads; ++thread) {
      running.emplace_back([=, &kernel, own = all.back().get()] {
        threadIdx.x = thread;
        blockIdx.x = block;
        blockDim.x = threads;
        gridDim.x = blocks;
        this_block = own;
        kernel();
      });
    }
  }
}

}  // namespace savegate::gpu::cuda

inline void __syncthreads() { savegate::gpu::cuda::this_block->barrier.arrive_and_wait(); }
inline void __syncwarp() { savegate::gpu::cuda::this_warp().barrier.arrive_and_wait(); }
template <class T>
T __shfl_sync(unsigned /*mask*/, T value, unsigned from) {
  return static_cast<T>(savegate::gpu::cuda::exchange(value, from));
}
template <class T>
T __shfl_xor_sync(unsigned /*mask*/, T value, unsigned bit) {
  return static_cast<T>(savegate::gpu::cuda::exchange(value, threadIdx.x ^ bit));
}
inline unsigned __ballot_sync(unsigned /*mask*/, bool own) {
  unsigned all = 0;
  for (unsigned lane = 0; lane < savegate::gpu::cuda::kEmulatedWarp; ++lane) {
    all |= static_cast<unsigned>(savegate::gpu::cuda::exchange(own ? 1 : 0, lane)) << lane;
  }
  return all;
}
namespace savegate::gpu::cuda {
inline void copy_async(void* shared, const void* global) { std::memcpy(shared, global, 16); }
inline void end_copies() {}
template <unsigned kLeft>
void await_copies() {}
inline void add_released(unsigned* to, unsigned value) {
  std::atomic_ref<unsigned>(*to).fetch_add(value);
}
inline unsigned load_relaxed(const unsigned* from) {
  return std::atomic_ref<unsigned>(*const_cast<unsigned*>(from)).load();
}
inline void acquire_loaded() {}  // load_relaxed() has
inline void let_others_run() { std::this_thread::yield(); }
}  // namespace savegate::gpu::cuda

inline int __ffs(unsigned word) { return word == 0 ? 0 : std::countr_zero(word) + 1; }

template <class T>
T __ldcg(const T* from) {
  return std::atomic_ref<T>(*const_cast<T*>(from)).load();
}
template <class T>
T __ldcs(const T* from) {
  return *from;
}
template <class T>
T atomicAdd(T* to, T value) {
  return std::atomic_ref<T>(*to).fetch_add(value);
}
// NOLINTEND(bugprone-reserved-identifier)
