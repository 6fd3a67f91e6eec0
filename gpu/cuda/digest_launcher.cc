#include "gpu/cuda/digest_launcher.h"

#include <cstring>

#include "gpu/cuda/kernels.h"

namespace savegate::gpu::cuda {

Result<std::vector<Digest>> DigestLauncher::run(std::span<const Tensor> tensors) {
  const DigestBatch batch(tensors);
  const std::uint64_t count = batch.tensors().size();
  if (count == 0) return batch.digests({});
  const std::uint64_t tensor_bytes = count * sizeof(DigestTensor);
  const std::uint64_t block_bytes = batch.blocks() * sizeof(RootBlock);
  const cudaStream_t stream = device_->stream();
  SAVEGATE_CHECK(host_.reserve(tensor_bytes + count * sizeof(DigestSlot)));
  SAVEGATE_CHECK(tensors_.reserve(tensor_bytes));
  SAVEGATE_CHECK(tails_.reserve(count * sizeof(RootTail)));
  SAVEGATE_TRY(const bool grown, zeros_.reserve(block_bytes + batch.blocks() * sizeof(unsigned)));
  if (grown) {
    SAVEGATE_CHECK(device_->check(cudaMemsetAsync(zeros_.data(), 0, zeros_.bytes(), stream),
                                  "cudaMemsetAsync"));
  }
  std::memcpy(host_.data(), batch.tensors().data(), tensor_bytes);
  SAVEGATE_CHECK(device_->check(
      cudaMemcpyAsync(tensors_.data(), host_.data(), tensor_bytes, cudaMemcpyHostToDevice, stream),
      "cudaMemcpyAsync"));
  auto* slots = reinterpret_cast<DigestSlot*>(host_.data() + tensor_bytes);
  const DigestPlan plan{reinterpret_cast<const DigestTensor*>(tensors_.data()),
                        reinterpret_cast<RootBlock*>(zeros_.data()),
                        reinterpret_cast<unsigned*>(zeros_.data() + block_bytes),
                        reinterpret_cast<RootTail*>(tails_.data()),
                        slots,
                        batch.units(),
                        static_cast<std::uint32_t>(count),
                        /*root_blocks=*/0};
  SAVEGATE_CHECK(
      device_->check(launch_digest(plan, device_->multiprocessors(), stream), "digest kernel"));
  SAVEGATE_CHECK(device_->synchronize());
  return batch.digests({slots, count});
}

}  // namespace savegate::gpu::cuda
