#include "gpu/fill.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>

namespace savegate::gpu {

// The name of a test's parameter in its output.
static void PrintTo(Dtype dtype, std::ostream* stream) { *stream << dtype_name(dtype); }

namespace {

constexpr std::uint64_t kMany = 20000;

std::vector<std::byte> filled(Dtype dtype, const FillKey& key, std::uint64_t count,
                              std::uint64_t first) {
  std::vector<std::byte> memory(count * dtype_bytes(dtype));
  fill_host({dtype, {count}, memory.data()}, key, first);
  return memory;
}

struct Kinds {
  int nan = 0;
  int negative_zero = 0;
  int denormal = 0;
};

Kinds kinds_of(Dtype dtype) {
  const FloatFormat format = *float_format(dtype);
  const std::uint64_t mantissa_mask = (std::uint64_t{1} << format.mantissa_bits) - 1;
  const std::uint64_t exponent_mask = (std::uint64_t{1} << format.exponent_bits) - 1;
  Kinds kinds;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const std::uint64_t bits = element_bits(dtype, {.seed = 1, .name_hash = 2, .step = 3}, i);
    const std::uint64_t mantissa = bits & mantissa_mask;
    const std::uint64_t exponent = (bits >> format.mantissa_bits) & exponent_mask;
    const bool sign = (bits >> (format.mantissa_bits + format.exponent_bits)) != 0;
    const bool all_ones = exponent == exponent_mask;
    if (all_ones && (format.ieee ? mantissa != 0 : mantissa == mantissa_mask)) ++kinds.nan;
    if (exponent == 0 && mantissa == 0 && sign) ++kinds.negative_zero;
    if (exponent == 0 && mantissa != 0) ++kinds.denormal;
  }
  return kinds;
}

class EveryFloat : public testing::TestWithParam<Dtype> {};

// What a save path that converts values would lose must be there to be lost.
TEST_P(EveryFloat, HasNansNegativeZeroesAndDenormals) {
  const Kinds kinds = kinds_of(GetParam());
  EXPECT_GT(kinds.nan, 0);
  EXPECT_GT(kinds.negative_zero, 0);
  EXPECT_GT(kinds.denormal, 0);
  EXPECT_LT(kinds.nan, static_cast<int>(kMany / 100));
}

INSTANTIATE_TEST_SUITE_P(FillTest, EveryFloat,
                         testing::Values(Dtype::kF32, Dtype::kF64, Dtype::kBf16, Dtype::kF16,
                                         Dtype::kF8E4m3, Dtype::kF8E5m2),
                         [](const auto& each) { return std::string(dtype_name(each.param)); });

// Shards of different ranks are cut from one and the same tensor.
TEST(FillTest, APartIsFilledAsItIsInTheWhole) {
  const FillKey key{.seed = 7, .name_hash = name_hash("w"), .step = 4};
  const auto whole = filled(Dtype::kBf16, key, 1000, 0);
  for (std::uint64_t first : {600, 601, 603}) {
    const auto part = filled(Dtype::kBf16, key, 300, first);
    EXPECT_EQ(std::memcmp(whole.data() + 2 * first, part.data(), part.size()), 0) << first;
  }
}

TEST(FillTest, SeedNameAndStepEachChangeTheBytes) {
  const FillKey key{.seed = 7, .name_hash = name_hash("w"), .step = 4};
  const std::array<FillKey, 4> keys = {
      {key, {8, key.name_hash, 4}, {7, name_hash("v"), 4}, {7, key.name_hash, 5}}};
  std::set<std::uint64_t> different;
  for (const FillKey& each : keys) different.insert(element_bits(Dtype::kI64, each, 0));
  EXPECT_EQ(different.size(), 4U);
}

}  // namespace
}  // namespace savegate::gpu
