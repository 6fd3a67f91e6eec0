#include "gpu/cuda/device.h"

#include <cstdint>

namespace savegate::gpu::cuda {

Result<std::shared_ptr<Device>> Device::open(const CudaOptions& options) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    return fail(unavailable(std::string("there is no GPU: ") +
                            (error == cudaSuccess ? "no device" : cudaGetErrorString(error)) +
                            "; use `cpu`"));
  }
  const int ordinal = options.ordinal.value_or(options.rank % count);
  if (ordinal >= count) {
    return fail(unavailable("there is no device `cuda:" + std::to_string(ordinal) +
                            "`; there are " + std::to_string(count)));
  }
  std::shared_ptr<Device> device(new Device(ordinal, options.rank));
  SAVEGATE_CHECK(device->set_up());
  return device;
}

Result<void> Device::set_up() {
  SAVEGATE_CHECK(make_current());
  SAVEGATE_CHECK(
      check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, ordinal_),
            "cudaDeviceGetAttribute"));
  SAVEGATE_CHECK(check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                       "cudaStreamCreateWithFlags"));
  SAVEGATE_CHECK(check(cudaStreamCreateWithFlags(&copies_, cudaStreamNonBlocking),
                       "cudaStreamCreateWithFlags"));
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, ordinal_};
  SAVEGATE_CHECK(check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate"));
  // As training programs' allocators do: what was freed stays with the process until it is trimmed.
  std::uint64_t keep = UINT64_MAX;
  return check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep),
               "cudaMemPoolSetAttribute");
}

// Nobody is left to be told.
Device::~Device() {
  if (stream_ != nullptr) static_cast<void>(cudaStreamSynchronize(stream_));
  if (pool_ != nullptr) static_cast<void>(cudaMemPoolDestroy(pool_));
  if (copies_ != nullptr) static_cast<void>(cudaStreamDestroy(copies_));
  if (stream_ != nullptr) static_cast<void>(cudaStreamDestroy(stream_));
}

Status Device::error(const char* call, const std::string& text) const {
  Status status;
  status.code = Code::kSystem;
  status.operation = call;
  status.rank = rank_;
  status.text = "device " + std::to_string(ordinal_) + ": " + text;
  return status;
}

Result<void> Device::check(cudaError_t error, const char* call) const {
  if (error == cudaSuccess) return {};
  Status status = this->error(
      call, std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")");
  if (error == cudaErrorMemoryAllocation) status.error = ENOMEM;
  return fail(std::move(status));
}

void Device::remember(cudaError_t error, const char* call) {
  if (given_back_) given_back_ = check(error, call);
}

Result<void*> Device::allocate(std::uint64_t bytes) {
  SAVEGATE_CHECK(given_back_);
  void* memory = nullptr;
  const auto attempt = [&] {
    return check(cudaMallocFromPoolAsync(&memory, bytes == 0 ? 1 : bytes, pool_, stream_),
                 "cudaMallocFromPoolAsync");
  };
  auto allocated = attempt();
  if (!allocated && allocated.error().error == ENOMEM) {
    static_cast<void>(cudaGetLastError());  // or the next launch of a kernel would report it
    SAVEGATE_CHECK(trim());
    allocated = attempt();
    ++(allocated ? retries_ : refusals_);
    if (!allocated) static_cast<void>(cudaGetLastError());
  }
  if (!allocated) {
    allocated.error().asked = bytes;
    return fail(std::move(allocated).error());
  }
  return memory;
}

Result<void> Device::trim() {
  SAVEGATE_CHECK(synchronize());
  return check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
}

// After copies that still read it.
void Device::give_back(void* memory) {
  remember(cudaStreamSynchronize(copies_), "cudaStreamSynchronize");
  remember(cudaFreeAsync(memory, stream_), "cudaFreeAsync");
}

Result<void*> Device::allocate_pinned(std::uint64_t bytes) {
  SAVEGATE_CHECK(given_back_);
  void* memory = nullptr;
  auto allocated =
      check(cudaHostAlloc(&memory, bytes == 0 ? 1 : bytes, cudaHostAllocDefault), "cudaHostAlloc");
  if (!allocated) {
    if (allocated.error().error == ENOMEM) ++refusals_;
    allocated.error().asked = bytes;
    return fail(std::move(allocated).error());
  }
  return memory;
}

void Device::give_back_pinned(void* memory) { remember(cudaFreeHost(memory), "cudaFreeHost"); }

}  // namespace savegate::gpu::cuda
