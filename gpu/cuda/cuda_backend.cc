#include <cuda_runtime_api.h>

#include "gpu/cuda/compare_launcher.h"
#include "gpu/cuda/device.h"
#include "gpu/cuda/digest_launcher.h"
#include "gpu/cuda/kernels.h"
#include "gpu/cuda/nccl_collectives.h"
#include "gpu/cuda_module.h"

namespace savegate::gpu::cuda {
namespace {

class PendingCopy : public Pending {
 public:
  explicit PendingCopy(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  PendingCopy(const PendingCopy&) = delete;
  PendingCopy& operator=(const PendingCopy&) = delete;
  ~PendingCopy() override {
    if (done_ != nullptr) static_cast<void>(cudaEventDestroy(done_));
  }

  Result<void> start(std::byte* to, const std::byte* from, std::uint64_t bytes, Midway midway) {
    SAVEGATE_CHECK(device_->check(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming),
                                  "cudaEventCreateWithFlags"));
    // After the work so far, and before the work to come.
    SAVEGATE_CHECK(device_->check(cudaEventRecord(done_, device_->stream()), "cudaEventRecord"));
    SAVEGATE_CHECK(
        device_->check(cudaStreamWaitEvent(device_->copies(), done_), "cudaStreamWaitEvent"));
    if (midway) {
      const std::uint64_t half = bytes / 2;
      SAVEGATE_CHECK(copy(to, from, half));
      SAVEGATE_CHECK(call(std::move(midway)));
      SAVEGATE_CHECK(copy(to + half, from + half, bytes - half));
    } else {
      SAVEGATE_CHECK(copy(to, from, bytes));
    }
    SAVEGATE_CHECK(device_->check(cudaEventRecord(done_, device_->copies()), "cudaEventRecord"));
    return device_->check(cudaStreamWaitEvent(device_->stream(), done_), "cudaStreamWaitEvent");
  }

  Result<void> wait() override {
    return device_->check(cudaEventSynchronize(done_), "cudaEventSynchronize");
  }

 private:
  Result<void> copy(std::byte* to, const std::byte* from, std::uint64_t bytes) const {
    return device_->check(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, device_->copies()),
        "cudaMemcpyAsync");
  }

  // In its turn among the copies, which wait for it.
  Result<void> call(Midway midway) const {
    auto owned = std::make_unique<Midway>(std::move(midway));
    const auto call_owned = [](void* given) {
      const std::unique_ptr<Midway> function(static_cast<Midway*>(given));
      (*function)();
    };
    SAVEGATE_CHECK(device_->check(cudaLaunchHostFunc(device_->copies(), call_owned, owned.get()),
                                  "cudaLaunchHostFunc"));
    static_cast<void>(owned.release());  // the callee's
    return {};
  }

  std::shared_ptr<Device> device_;
  cudaEvent_t done_ = nullptr;
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(std::shared_ptr<Device> device)
      : device_(std::move(device)), digests_(device_), compares_(device_) {}

  std::string_view name() const override { return "cuda"; }

  Result<Buffer> allocate(std::uint64_t bytes) override {
    SAVEGATE_CHECK(device_->make_current());
    SAVEGATE_TRY(void* memory, device_->allocate(bytes));
    Buffer buffer(static_cast<std::byte*>(memory),
                  [device = device_](std::byte* given) { device->give_back(given); });
    SAVEGATE_CHECK(
        device_->check(cudaMemsetAsync(memory, 0, bytes, device_->stream()), "cudaMemsetAsync"));
    return buffer;
  }

  Result<Buffer> allocate_staging(std::uint64_t bytes) override {
    SAVEGATE_CHECK(device_->make_current());
    SAVEGATE_TRY(void* memory, device_->allocate_pinned(bytes));
    return Buffer(static_cast<std::byte*>(memory),
                  [device = device_](std::byte* given) { device->give_back_pinned(given); });
  }

  Result<void> fill(const Tensor& tensor, const FillKey& key, std::uint64_t first_index) override {
    SAVEGATE_CHECK(device_->make_current());
    SAVEGATE_CHECK(device_->check(launch_fill(tensor.dtype, tensor.data, elements(tensor.shape),
                                              stream_of(key), first_index, device_->stream()),
                                  "fill kernel"));
    return device_->synchronize();
  }

  Result<std::vector<Digest>> digests(std::span<const Tensor> tensors) override {
    SAVEGATE_CHECK(device_->make_current());
    return digests_.run(tensors);
  }

  Result<Difference> compare(const Tensor& left, const Tensor& right) override {
    if (left.bytes() != right.bytes()) {
      return fail(invalid("compare: tensors of " + std::to_string(left.bytes()) + " and " +
                          std::to_string(right.bytes()) + " bytes"));
    }
    SAVEGATE_CHECK(device_->make_current());
    return compares_.run(left, right);
  }

  Result<void> copy(const Tensor& to, const Tensor& from) override {
    if (to.bytes() != from.bytes()) {
      return fail(invalid("copy: tensors of " + std::to_string(to.bytes()) + " and " +
                          std::to_string(from.bytes()) + " bytes"));
    }
    return copy(to.data, from.data, from.bytes(), cudaMemcpyDeviceToDevice);
  }

  Result<void> copy_to_host(void* to, const Tensor& from, std::uint64_t offset,
                            std::uint64_t bytes) override {
    return copy(to, from.data + offset, bytes, cudaMemcpyDeviceToHost);
  }

  Result<void> copy_from_host(const Tensor& to, std::uint64_t offset, const void* from,
                              std::uint64_t bytes) override {
    return copy(to.data + offset, from, bytes, cudaMemcpyHostToDevice);
  }

  Result<std::unique_ptr<Pending>> start_copy_to_host(void* to, const Tensor& from,
                                                      std::uint64_t offset, std::uint64_t bytes,
                                                      Midway midway) override {
    SAVEGATE_CHECK(device_->make_current());
    auto pending = std::make_unique<PendingCopy>(device_);
    SAVEGATE_CHECK(
        pending->start(static_cast<std::byte*>(to), from.data + offset, bytes, std::move(midway)));
    return pending;
  }

  Result<std::optional<MemoryFacts>> memory() override {
    SAVEGATE_CHECK(device_->make_current());
    SAVEGATE_CHECK(device_->synchronize());
    MemoryFacts facts;
    SAVEGATE_CHECK(device_->check(
        cudaMemPoolGetAttribute(device_->pool(), cudaMemPoolAttrUsedMemCurrent, &facts.allocated),
        "cudaMemPoolGetAttribute"));
    SAVEGATE_CHECK(
        device_->check(cudaMemPoolGetAttribute(device_->pool(), cudaMemPoolAttrReservedMemCurrent,
                                               &facts.reserved),
                       "cudaMemPoolGetAttribute"));
    std::uint64_t peak = 0;
    SAVEGATE_CHECK(device_->check(
        cudaMemPoolGetAttribute(device_->pool(), cudaMemPoolAttrReservedMemHigh, &peak),
        "cudaMemPoolGetAttribute"));
    facts.reserved_peak = peak;
    std::uint64_t reset = 0;  // the only value that it takes
    SAVEGATE_CHECK(device_->check(
        cudaMemPoolSetAttribute(device_->pool(), cudaMemPoolAttrReservedMemHigh, &reset),
        "cudaMemPoolSetAttribute"));
    std::size_t free = 0;
    std::size_t total = 0;
    SAVEGATE_CHECK(device_->check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
    facts.free = free;
    facts.retries = device_->retries();
    facts.refusals = device_->refusals();
    return facts;
  }

  Result<void> trim() override {
    SAVEGATE_CHECK(device_->make_current());
    return device_->trim();
  }

  Result<std::unique_ptr<Collectives>> open_collectives(
      Collectives& side, std::chrono::milliseconds timeout) override {
    SAVEGATE_CHECK(device_->make_current());
    return open_nccl(device_, side, timeout);
  }

 private:
  Result<void> copy(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind) {
    SAVEGATE_CHECK(device_->make_current());
    SAVEGATE_CHECK(device_->check(cudaMemcpyAsync(to, from, bytes, kind, device_->stream()),
                                  "cudaMemcpyAsync"));
    return device_->synchronize();
  }

  std::shared_ptr<Device> device_;
  DigestLauncher digests_;
  CompareLauncher compares_;
};

Result<std::unique_ptr<Backend>> open(const CudaOptions& options) {
  SAVEGATE_TRY(std::shared_ptr<Device> device, Device::open(options));
  return std::make_unique<CudaBackend>(std::move(device));
}

}  // namespace
}  // namespace savegate::gpu::cuda

extern "C" __attribute__((visibility("default"))) void savegate_open_cuda(
    const savegate::gpu::CudaOptions& options,
    savegate::Result<std::unique_ptr<savegate::gpu::Backend>>& opened) {
  opened = savegate::gpu::cuda::open(options);
}
