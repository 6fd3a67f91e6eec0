// A CUDA device as this rank has it: its streams, its memory pool, and errors that say whose they
// are.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "faults/status.h"
#include "gpu/cuda_module.h"

namespace savegate::gpu::cuda {

class Device {
 public:
  static Result<std::shared_ptr<Device>> open(const CudaOptions& options);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  int ordinal() const { return ordinal_; }
  int rank() const { return rank_; }
  int multiprocessors() const { return multiprocessors_; }
  cudaStream_t stream() const { return stream_; }  // all work, in order
  cudaStream_t copies() const { return copies_; }  // copies beside it
  cudaMemPool_t pool() const { return pool_; }

  // "cudaMallocAsync: rank 1: device 1: cudaErrorMemoryAllocation (out of memory)"
  Result<void> check(cudaError_t error, const char* call) const;
  Status error(const char* call, const std::string& text) const;
  // For the calling thread, whose current device may be another. Before any other call.
  Result<void> make_current() const { return check(cudaSetDevice(ordinal_), "cudaSetDevice"); }
  // All work is done, and what went wrong in it is told.
  Result<void> synchronize() const {
    return check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  // Device memory from the pool, which is trimmed before a second try. What goes wrong in giving it
  // back is told by the next allocate().
  Result<void*> allocate(std::uint64_t bytes);
  void give_back(void* memory);
  Result<void> trim();
  std::uint64_t retries() const { return retries_; }    // granted at the second try
  std::uint64_t refusals() const { return refusals_; }  // out of memory
  // Pinned host memory.
  Result<void*> allocate_pinned(std::uint64_t bytes);
  void give_back_pinned(void* memory);

 private:
  Device(int ordinal, int rank) : ordinal_(ordinal), rank_(rank) {}
  Result<void> set_up();
  void remember(cudaError_t error, const char* call);

  int ordinal_;
  int rank_;
  int multiprocessors_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaStream_t copies_ = nullptr;
  cudaMemPool_t pool_ = nullptr;
  Result<void> given_back_;
  std::uint64_t retries_ = 0;
  std::uint64_t refusals_ = 0;
};

}  // namespace savegate::gpu::cuda
