#include "scenarios/subjects/reference/number.h"

#include <gtest/gtest.h>

namespace savegate::gpu {

// The name of a test's parameter in its output.
static void PrintTo(Dtype dtype, std::ostream* stream) { *stream << dtype_name(dtype); }

}  // namespace savegate::gpu

namespace savegate::reference {
namespace {

using gpu::Dtype;

class EveryNarrowFloat : public testing::TestWithParam<Dtype> {};

TEST_P(EveryNarrowFloat, OrdinaryNumbersRoundTrip) {
  const Number number(*gpu::float_format(GetParam()));
  const std::uint32_t end = 1U << (8 * gpu::dtype_bytes(GetParam()));
  for (std::uint32_t bits = 0; bits < end; ++bits) {
    if (!number.is_ordinary(bits)) continue;
    ASSERT_EQ(number.encode(number.decode(bits)), bits);
  }
}

INSTANTIATE_TEST_SUITE_P(NumberTest, EveryNarrowFloat,
                         testing::Values(Dtype::kBf16, Dtype::kF16, Dtype::kF8E4m3, Dtype::kF8E5m2),
                         [](const auto& each) { return std::string(gpu::dtype_name(each.param)); });

TEST(NumberTest, RoundsToTheNearestAndTiesToEven) {
  const Number number(*gpu::float_format(Dtype::kF8E4m3));
  EXPECT_EQ(number.decode(number.encode(1.0625F)), 1.0F);   // half way between 1 and 1.125
  EXPECT_EQ(number.decode(number.encode(1.1875F)), 1.25F);  // half way between 1.125 and 1.25
  EXPECT_EQ(number.decode(number.encode(-1.1F)), -1.125F);
}

TEST(NumberTest, WhatIsTooLargeOrTooSmallBecomesTheNearestOrdinaryNumber) {
  const Number number(*gpu::float_format(Dtype::kF8E5m2));
  EXPECT_TRUE(number.is_ordinary(number.encode(1e30F)));
  EXPECT_TRUE(number.is_ordinary(number.encode(-1e-30F)));
}

}  // namespace
}  // namespace savegate::reference
