#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "gpu/backend.h"

namespace savegate::gpu {
namespace {

class HostBackendTest : public testing::Test {
 protected:
  Tensor tensor(std::uint64_t count) {
    buffers_.push_back(backend_->allocate(count).value());
    return {Dtype::kU8, {count}, buffers_.back().get()};
  }

  std::unique_ptr<Backend> backend_ = open_backend("cpu", 0).value();
  std::vector<Buffer> buffers_;
};

TEST_F(HostBackendTest, MemoryIsZeroedAndOwned) {
  const Tensor zeros = tensor(100000);
  const std::vector<std::byte> expected(100000);
  EXPECT_TRUE(compare_host(zeros.data, expected.data(), expected.size()).equal());
}

TEST_F(HostBackendTest, CompareFindsTheFirstByteThatDiffersAndCountsThem) {
  const Tensor left = tensor(200000);
  const Tensor right = tensor(200000);
  right.data[70001] = std::byte{1};
  right.data[199999] = std::byte{2};
  const Difference difference = backend_->compare(left, right).value();
  EXPECT_EQ(difference.count, 2U);
  EXPECT_EQ(difference.first, 70001U);
}

TEST_F(HostBackendTest, CompareRefusesTensorsOfDifferentSize) {
  EXPECT_FALSE(backend_->compare(tensor(8), tensor(9)));
}

TEST_F(HostBackendTest, CopiesReachTheirOffset) {
  const Tensor target = tensor(16);
  const std::byte value{42};
  ASSERT_TRUE(backend_->copy_from_host(target, 5, &value, 1));
  std::byte read{};
  ASSERT_TRUE(backend_->copy_to_host(&read, target, 5, 1));
  EXPECT_EQ(read, value);
}

TEST_F(HostBackendTest, MidwayTheFirstHalfIsThereAndTheSecondIsNot) {
  const Tensor source = tensor(9);
  std::memset(source.data, 1, 9);
  std::string copied(9, '0');
  std::string seen;
  const auto copy =
      backend_->start_copy_to_host(copied.data(), source, 0, 9, [&] { seen = copied; });
  ASSERT_TRUE(copy && (*copy)->wait());
  EXPECT_EQ(seen,
            "\1\1\1\1"
            "00000");
  EXPECT_EQ(copied, std::string(9, '\1'));
}

TEST_F(HostBackendTest, FillAndDigestAgreeWithTheHostFunctions) {
  const Tensor random = tensor(9000);
  const FillKey key{.seed = 1, .name_hash = 2, .step = 3};
  ASSERT_TRUE(backend_->fill(random, key, 0));
  EXPECT_EQ(static_cast<std::uint64_t>(random.data[17]), element_bits(Dtype::kU8, key, 17) & 255);
  EXPECT_EQ(backend_->digest(random).value(), digest_of(random.data, 9000));
}

TEST(BackendTest, AnUnknownDeviceIsUnavailable) {
  const auto backend = open_backend("abacus", 0);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, Code::kUnavailable);
}

TEST(TensorTest, NamesOfDtypesRoundTrip) {
  for (Dtype dtype : {Dtype::kF32, Dtype::kF64, Dtype::kBf16, Dtype::kF16, Dtype::kF8E4m3,
                      Dtype::kF8E5m2, Dtype::kI64, Dtype::kI32, Dtype::kU64, Dtype::kU8}) {
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_name("f12"), std::nullopt);
}

}  // namespace
}  // namespace savegate::gpu
