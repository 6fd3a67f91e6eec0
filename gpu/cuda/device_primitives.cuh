// What the kernels need of the device beyond CUDA C++'s own functions.
#pragma once

namespace savegate::gpu::cuda {

// 16 bytes from global into shared memory, past the registers; complete after await_copies().
__device__ inline void copy_async(void* shared, const void* global) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}

// The copies since the last call are a group.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// At most kLeft groups of this thread's are still under way.
template <unsigned kLeft>
__device__ void await_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Whoever sees the sum by load_relaxed() and then calls acquire_loaded() also sees what this thread
// saw and did before. Cheaper than a fence, which waits for copies that are under way, too.
__device__ inline void add_released(unsigned* to, unsigned value) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(to), "r"(value) : "memory");
}
__device__ inline unsigned load_relaxed(const unsigned* from) {
  unsigned value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline void acquire_loaded() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

__device__ inline void let_others_run() { __nanosleep(100); }

}  // namespace savegate::gpu::cuda
