// Bitwise compare of two tensors on a device: one launch.
#pragma once

#include <memory>
#include <utility>

#include "gpu/compare.h"
#include "gpu/cuda/scratch.h"
#include "gpu/tensor.h"

namespace savegate::gpu::cuda {

class CompareLauncher {
 public:
  explicit CompareLauncher(const std::shared_ptr<Device>& device)
      : total_(device), host_(device), device_(device) {}

  // Of equal size.
  Result<Difference> run(const Tensor& left, const Tensor& right);

 private:
  DeviceScratch total_;
  PinnedScratch host_;
  std::shared_ptr<Device> device_;
};

}  // namespace savegate::gpu::cuda
