#include "gpu/digest.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include <vector>

#include "gpu/fill.h"

namespace savegate::gpu {
namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  fill_host({Dtype::kU8, {count}, bytes.data()}, {.seed = 3, .name_hash = 1, .step = 0}, 0);
  return bytes;
}

// The definition, written with nothing but the library.
std::string straight(const std::vector<std::byte>& bytes) {
  std::vector<std::uint64_t> words;
  for (std::size_t at = 0; at < bytes.size(); at += 4096) {
    words.push_back(XXH3_64bits(bytes.data() + at, std::min<std::size_t>(4096, bytes.size() - at)));
  }
  words.push_back(bytes.size());
  const XXH128_hash_t root = XXH3_128bits(words.data(), words.size() * 8);
  return fmt::format("{:016x}{:016x}", root.high64, root.low64);
}

class EverySize : public testing::TestWithParam<std::size_t> {};

TEST_P(EverySize, EqualsOneComputedWithTheLibrary) {
  const auto bytes = some_bytes(GetParam());
  EXPECT_EQ(digest_of(bytes.data(), bytes.size()).hex(), straight(bytes));
}

TEST_P(EverySize, DoesNotDependOnHowTheBytesArrive) {
  const auto bytes = some_bytes(GetParam());
  for (std::size_t piece : {1U, 7U, 4095U, 4096U, 4097U, 65536U}) {
    if (bytes.size() / piece > 10000) continue;
    TreeDigest tree;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      tree.update(bytes.data() + at, std::min(piece, bytes.size() - at));
    }
    EXPECT_EQ(tree.finish().hex(), straight(bytes)) << piece;
  }
}

TEST_P(EverySize, DoesNotDependOnHowManyThreadsHash) {
  const auto bytes = some_bytes(GetParam());
  for (unsigned threads : {1U, 3U}) {
    EXPECT_EQ(digest_of(bytes.data(), bytes.size(), threads).hex(), straight(bytes)) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(DigestTest, EverySize,
                         testing::Values(0, 1, 4095, 4096, 4097, 8192, 512 * 4096, 513 * 4096 + 5));

// Zeros of another length are another object.
TEST(DigestTest, TheLengthIsPartOfIt) {
  const std::vector<std::byte> zeros(8192);
  EXPECT_NE(digest_of(zeros.data(), 4096), digest_of(zeros.data(), 8192));
  EXPECT_NE(digest_of(zeros.data(), 0), digest_of(zeros.data(), 1));
}

}  // namespace
}  // namespace savegate::gpu
