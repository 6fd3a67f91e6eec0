// The digest kernel on a device made of threads: bit-equal to the host for every size, alignment
// and mix of tensors.

#include "gpu/cuda/emulated_device.h"
// The device comes before its kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/cuda/digest_batch.h"
#include "gpu/cuda/digest_kernel.cuh"
#include "gpu/digest.h"
#include "gpu/fill.h"

namespace savegate::gpu::cuda {
namespace {

constexpr unsigned kWarps = 1;
constexpr unsigned kBlocks = 3;
constexpr unsigned kStages = 3;

class DigestKernelTest : public testing::Test {
 protected:
  // Random bytes; `misalignment` is their address modulo 16.
  void add(std::uint64_t bytes, std::uint64_t misalignment) {
    auto& memory = memory_.emplace_back(bytes / 16 + 3);
    auto* data = reinterpret_cast<std::byte*>(memory.data()) + misalignment;
    tensors_.push_back({Dtype::kU8, {bytes}, data});
    fill_host(tensors_.back(), {.seed = 1, .name_hash = memory_.size(), .step = 0}, 0);
  }

  std::vector<Digest> digests() {
    const DigestBatch batch(tensors_);
    std::vector<RootBlock> blocks(batch.blocks());
    std::vector<unsigned> block_units(batch.blocks());
    std::vector<RootTail> tails(batch.tensors().size());
    std::vector<DigestSlot> slots(batch.tensors().size());
    const DigestPlan plan{batch.tensors().data(),
                          blocks.data(),
                          block_units.data(),
                          tails.data(),
                          slots.data(),
                          batch.units(),
                          static_cast<std::uint32_t>(batch.tensors().size()),
                          /*root_blocks=*/1};
    std::vector<std::array<LeafRing<kStages>, kWarps>> rings(kBlocks);
    launch(kBlocks, kWarps * kWarp,
           [&] { digest_tensors<kWarps, kStages>(plan, rings[blockIdx.x].data()); });
    for (const RootBlock& block : blocks) {  // the next launch finds them so
      EXPECT_THAT(block.accumulators, testing::Each(0));
    }
    EXPECT_THAT(block_units, testing::Each(0));
    return batch.digests(slots);
  }

  void expect_equal() {
    const std::vector<Digest> found = digests();
    ASSERT_EQ(found.size(), tensors_.size());
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      EXPECT_EQ(found[i].hex(), digest_of(tensors_[i].data, tensors_[i].bytes()).hex())
          << "tensor " << i << " of " << tensors_[i].bytes() << " bytes";
    }
  }

  struct alignas(16) Sixteen {
    std::byte bytes[16];
  };
  std::vector<std::vector<Sixteen>> memory_;
  std::vector<Tensor> tensors_;
};

TEST_F(DigestKernelTest, WholeLeaves) {
  for (std::uint64_t leaves : {1, 29, 30, 37}) add(leaves * kLeafBytes, 0);
  expect_equal();
}

TEST_F(DigestKernelTest, ARootOfSeveralBlocks) {
  add(128 * kLeafBytes, 0);
  add(137 * kLeafBytes, 0);
  expect_equal();
}

// Every kind of short hash, and long ones of every number of blocks.
TEST_F(DigestKernelTest, LastLeavesOfEverySize) {
  for (std::uint64_t bytes :
       {0,   1,   2,    3,    4,    7,    8,    9,    15,   16,   17,  32,  33,
        64,  65,  96,   97,   128,  129,  144,  239,  240,  241,  256, 257, 511,
        512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 3072, 3073, 4095}) {
    add(bytes, 0);
  }
  add(29 * kLeafBytes + 1, 0);
  add(37 * kLeafBytes + 1000, 0);
  expect_equal();
}

TEST_F(DigestKernelTest, EveryAlignment) {
  for (std::uint64_t misalignment = 1; misalignment < 16; ++misalignment) {
    add(2 * kLeafBytes + 1000 + misalignment, misalignment);
  }
  expect_equal();
}

// More blocks than are looked at together: put together of leaves' hashes, without the leaves.
TEST_F(DigestKernelTest, ARootOfManyBlocks) {
  constexpr std::uint64_t kLeaves = 8 * 16 * 111 + 43;
  std::vector<std::uint64_t> leaves(kLeaves);
  fill_host({Dtype::kU64, {kLeaves}, reinterpret_cast<std::byte*>(leaves.data())}, {}, 0);
  std::vector<RootBlock> blocks(blocks_of(kLeaves));
  std::vector<unsigned> block_units(blocks_of(kLeaves));
  for (std::uint64_t unit = 0; unit < units_of(kLeaves); ++unit) {
    RootBlock& block = blocks[unit / kBlockUnits];
    ++block_units[unit / kBlockUnits];
    for (std::uint64_t i = 0; i < 8 && unit < kLeaves / 8; ++i) {
      block.accumulators[i ^ 1] += leaves[8 * unit + i];
      block.accumulators[i] +=
          xxh3::product(leaves[8 * unit + i], digest_secret[unit % kBlockUnits + i]);
    }
  }
  RootTail tail{};
  std::copy(leaves.end() - 7, leaves.end(), tail.leaves);
  const DigestTensor tensor{nullptr, kLeaves * kLeafBytes, kLeaves, 0, 0, 16};
  DigestSlot slot{};
  const DigestPlan plan{&tensor, blocks.data(), block_units.data(), &tail, &slot, 0, 1, 1};
  std::vector<Word> staged(8 * kWindow);
  launch(1, kWarp, [&] { chain_root(plan, 0, staged.data(), threadIdx.x); });
  EXPECT_EQ(canonical(slot.words[1], slot.words[0]).hex(), root_of(leaves, tensor.bytes).hex());
}

TEST_F(DigestKernelTest, NothingAtAll) {
  EXPECT_TRUE(digests().empty());
  add(0, 0);
  expect_equal();
}

}  // namespace
}  // namespace savegate::gpu::cuda
