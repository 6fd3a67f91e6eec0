// The host's side of a digest launch: tensors into units of work, and slots into digests.
//
// Empty tensors have no leaf and take no part in the launch.
#pragma once

#include <span>
#include <vector>

#include "gpu/cuda/digest_plan.h"
#include "gpu/digest.h"
#include "gpu/tensor.h"

namespace savegate::gpu::cuda {

class DigestBatch {
 public:
  explicit DigestBatch(std::span<const Tensor> tensors);

  const std::vector<DigestTensor>& tensors() const { return tensors_; }  // that are not empty
  std::uint64_t units() const { return units_; }
  std::uint64_t blocks() const { return blocks_; }

  // Of all tensors, in their order; `slots` are those of tensors().
  std::vector<Digest> digests(std::span<const DigestSlot> slots) const;

 private:
  std::vector<bool> empty_;  // by tensor
  std::vector<DigestTensor> tensors_;
  std::uint64_t units_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace savegate::gpu::cuda
