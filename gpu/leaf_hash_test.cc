#include <gtest/gtest.h>

#include <vector>

#include "gpu/fill.h"
#include "gpu/leaf.h"
#include "gpu/leaf_hash_vectors.h"

namespace savegate::gpu {
namespace {

constexpr std::size_t kLeaves = 5;

class LeafHashTest : public testing::Test {
 protected:
  LeafHashTest() {
    fill_host({Dtype::kU8, {bytes_.size()}, bytes_.data()}, {.seed = 3, .name_hash = 1, .step = 0},
              0);
  }
  std::vector<std::uint64_t> hashed(LeafHash* hash) {
    std::vector<std::uint64_t> leaves(kLeaves);
    hash(bytes_.data() + 1, kLeaves, leaves.data());
    return leaves;
  }
  std::vector<std::byte> bytes_ = std::vector<std::byte>(kLeaves * kLeafBytes + 1);
};

#if defined(__x86_64__)
TEST_F(LeafHashTest, Avx2HashesAsTheBaselineDoes) {
  if (__builtin_cpu_supports("avx2") == 0) GTEST_SKIP() << "this processor has no AVX2";
  EXPECT_EQ(hashed(hash_leaves_avx2), hashed(hash_leaves_baseline));
}

TEST_F(LeafHashTest, Avx512HashesAsTheBaselineDoes) {
  if (__builtin_cpu_supports("avx512f") == 0) GTEST_SKIP() << "this processor has no AVX-512";
  EXPECT_EQ(hashed(hash_leaves_avx512), hashed(hash_leaves_baseline));
}
#endif

}  // namespace
}  // namespace savegate::gpu
