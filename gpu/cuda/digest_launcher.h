// Digests of tensors on a device: one launch, however many there are.
//
// Holds on to its working memory, which is 0.02 % of the tensors', from one call to the next.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "gpu/cuda/device.h"
#include "gpu/cuda/digest_batch.h"

namespace savegate::gpu::cuda {

class DigestLauncher {
 public:
  explicit DigestLauncher(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  DigestLauncher(const DigestLauncher&) = delete;
  DigestLauncher& operator=(const DigestLauncher&) = delete;
  ~DigestLauncher();

  Result<std::vector<Digest>> run(std::span<const Tensor> tensors);

 private:
  Result<void> make_room(std::uint64_t device_bytes, std::uint64_t host_bytes);

  std::shared_ptr<Device> device_;
  std::uint8_t* memory_ = nullptr;  // of the device
  std::uint64_t memory_bytes_ = 0;
  std::uint8_t* staging_ = nullptr;  // pinned
  std::uint64_t staging_bytes_ = 0;
};

}  // namespace savegate::gpu::cuda
