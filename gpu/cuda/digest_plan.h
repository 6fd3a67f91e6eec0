// What one digest launch works on.
#pragma once

#include <cstdint>

#include "gpu/cuda/host_device.h"
#include "gpu/leaf.h"

namespace savegate::gpu::cuda {

inline constexpr std::uint64_t kUnitLeaves =
    8;  // what a warp takes at a time: a stripe of the root
inline constexpr std::uint64_t kBlockUnits = 16;   // a block of the root's hash
inline constexpr std::uint64_t kShortLeaves = 29;  // with the length 240 bytes: a short hash

struct DigestTensor {
  const std::uint8_t* data;
  std::uint64_t bytes;
  std::uint64_t leaves;       // at least one
  std::uint64_t first_unit;   // of the launch
  std::uint64_t first_block;  // of the launch
  unsigned alignment;         // of `data`: 16, 4 or 1
};

// What a block of the root's hash adds to it, as far as its units are done. Zero before a launch
// and after it.
struct alignas(64) RootBlock {
  unsigned long long accumulators[8];
};

// The tensor's last leaves.
struct RootTail {
  std::uint64_t leaves[7];
};

// The root, low word first; or the leaves of a tensor that has at most kShortLeaves. In memory of
// the host that the device writes to.
struct DigestSlot {
  std::uint64_t words[kShortLeaves];
};

struct DigestPlan {
  const DigestTensor* tensors;
  RootBlock* blocks;
  unsigned* block_units;  // of each block, how many are in it; zero as the blocks are
  RootTail* tails;
  DigestSlot* slots;
  std::uint64_t units;
  std::uint32_t count;        // tensors, at least one
  std::uint32_t root_blocks;  // thread blocks, the first ones, that put roots together
};

SAVEGATE_HOST_DEVICE inline std::uint64_t units_of(std::uint64_t leaves) {
  return (leaves + kUnitLeaves - 1) / kUnitLeaves;
}
SAVEGATE_HOST_DEVICE inline std::uint64_t blocks_of(std::uint64_t leaves) {
  return (units_of(leaves) + kBlockUnits - 1) / kBlockUnits;
}

}  // namespace savegate::gpu::cuda
