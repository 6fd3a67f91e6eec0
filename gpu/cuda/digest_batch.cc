#include "gpu/cuda/digest_batch.h"

#include <array>

namespace savegate::gpu::cuda {
namespace {

unsigned alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return address % 16 == 0 ? 16 : address % 4 == 0 ? 4 : 1;
}

}  // namespace

DigestBatch::DigestBatch(std::span<const Tensor> tensors) {
  empty_.reserve(tensors.size());
  tensors_.reserve(tensors.size());
  for (const Tensor& tensor : tensors) {
    const std::uint64_t bytes = tensor.bytes();
    empty_.push_back(bytes == 0);
    if (bytes == 0) continue;
    const std::uint64_t leaves = (bytes + kLeafBytes - 1) / kLeafBytes;
    tensors_.push_back({reinterpret_cast<const std::uint8_t*>(tensor.data), bytes, leaves, units_,
                        blocks_, alignment_of(tensor.data)});
    units_ += units_of(leaves);
    blocks_ += blocks_of(leaves);
  }
}

std::vector<Digest> DigestBatch::digests(std::span<const DigestSlot> slots) const {
  std::vector<Digest> digests;
  digests.reserve(empty_.size());
  std::size_t at = 0;
  for (const bool empty : empty_) {
    if (empty) {
      digests.push_back(root_of({}, 0));
      continue;
    }
    const DigestTensor& tensor = tensors_[at];
    const DigestSlot& slot = slots[at++];
    if (tensor.leaves <= kShortLeaves) {
      digests.push_back(root_of({slot.words, tensor.leaves}, tensor.bytes));
    } else {
      digests.push_back(canonical(slot.words[1], slot.words[0]));
    }
  }
  return digests;
}

}  // namespace savegate::gpu::cuda
