// The hash that kernels are made of, held to the library.

#include "gpu/cuda/xxh3.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <array>
#include <vector>

#include "gpu/fill.h"

namespace savegate::gpu::xxh3 {
namespace {

constexpr std::array<Word, kSecretBytes / 8> kSecret = {SAVEGATE_XXH3_SECRET};

TEST(Xxh3Test, ShortHashesOfEveryLength) {
  std::vector<Byte> bytes(kShortBytes + 1);
  fill_host({Dtype::kU8, {bytes.size()}, reinterpret_cast<std::byte*>(bytes.data())},
            {.seed = 1, .name_hash = 1, .step = 0}, 0);
  const auto* secret = reinterpret_cast<const Byte*>(kSecret.data());
  for (std::uint64_t length = 1; length <= kShortBytes; ++length) {
    EXPECT_EQ(hash_short(bytes.data() + 1, length, secret), XXH3_64bits(bytes.data() + 1, length))
        << length;
  }
}

}  // namespace
}  // namespace savegate::gpu::xxh3
