#include "gpu/cuda/digest_launcher.h"

#include <algorithm>
#include <cstring>

#include "gpu/cuda/kernels.h"

namespace savegate::gpu::cuda {
namespace {

// Where the parts of a plan lie, behind one another in one piece of memory.
struct Places {
  std::uint64_t tensors = 0;
  std::uint64_t blocks;  // zero at first
  std::uint64_t tails;
  std::uint64_t slots;
  std::uint64_t end;

  Places(std::uint64_t count, std::uint64_t block_count)
      : blocks(count * sizeof(DigestTensor)),
        tails(blocks + block_count * sizeof(RootBlock)),
        slots(tails + count * sizeof(RootTail)),
        end(slots + count * sizeof(DigestSlot)) {}
};
static_assert(alignof(DigestTensor) == 8 && alignof(RootBlock) == 8 && alignof(RootTail) == 8);

}  // namespace

DigestLauncher::~DigestLauncher() {
  if (memory_ != nullptr) device_->give_back(memory_);
  if (staging_ != nullptr) device_->give_back_pinned(staging_);
}

Result<void> DigestLauncher::make_room(std::uint64_t device_bytes, std::uint64_t host_bytes) {
  if (device_bytes > memory_bytes_) {
    if (memory_ != nullptr) device_->give_back(std::exchange(memory_, nullptr));
    memory_bytes_ = 0;
    SAVEGATE_TRY(void* memory, device_->allocate(device_bytes));
    memory_ = static_cast<std::uint8_t*>(memory);
    memory_bytes_ = device_bytes;
  }
  if (host_bytes > staging_bytes_) {
    if (staging_ != nullptr) device_->give_back_pinned(std::exchange(staging_, nullptr));
    staging_bytes_ = 0;
    SAVEGATE_TRY(void* memory, device_->allocate_pinned(host_bytes));
    staging_ = static_cast<std::uint8_t*>(memory);
    staging_bytes_ = host_bytes;
  }
  return {};
}

Result<std::vector<Digest>> DigestLauncher::run(std::span<const Tensor> tensors) {
  const DigestBatch batch(tensors);
  const std::uint64_t count = batch.tensors().size();
  if (count == 0) return batch.digests({});
  const Places places(count, batch.blocks());
  const std::uint64_t tensor_bytes = count * sizeof(DigestTensor);
  const std::uint64_t slot_bytes = count * sizeof(DigestSlot);
  SAVEGATE_CHECK(make_room(places.end, std::max(tensor_bytes, slot_bytes)));

  std::memcpy(staging_, batch.tensors().data(), tensor_bytes);
  const cudaStream_t stream = device_->stream();
  SAVEGATE_CHECK(device_->check(cudaMemcpyAsync(memory_ + places.tensors, staging_, tensor_bytes,
                                                cudaMemcpyHostToDevice, stream),
                                "cudaMemcpyAsync"));
  SAVEGATE_CHECK(device_->check(
      cudaMemsetAsync(memory_ + places.blocks, 0, places.tails - places.blocks, stream),
      "cudaMemsetAsync"));
  const DigestPlan plan{reinterpret_cast<const DigestTensor*>(memory_ + places.tensors),
                        reinterpret_cast<RootBlock*>(memory_ + places.blocks),
                        reinterpret_cast<RootTail*>(memory_ + places.tails),
                        reinterpret_cast<DigestSlot*>(memory_ + places.slots),
                        batch.units(),
                        static_cast<std::uint32_t>(count),
                        /*root_blocks=*/0};
  SAVEGATE_CHECK(
      device_->check(launch_digest(plan, device_->multiprocessors(), stream), "digest kernel"));
  SAVEGATE_CHECK(device_->check(
      cudaMemcpyAsync(staging_, memory_ + places.slots, slot_bytes, cudaMemcpyDeviceToHost, stream),
      "cudaMemcpyAsync"));
  SAVEGATE_CHECK(device_->synchronize());
  std::vector<DigestSlot> slots(count);
  std::memcpy(slots.data(), staging_, slot_bytes);
  return batch.digests(slots);
}

}  // namespace savegate::gpu::cuda
