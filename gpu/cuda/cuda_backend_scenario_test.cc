// The cuda backend against the host's: same bytes, same digests, same differences.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "gpu/backend.h"
#include "gpu/neighbour.h"
#include "gpu/staging_pool.h"

namespace savegate::gpu {
namespace {

constexpr std::array kDtypes = {Dtype::kF32,    Dtype::kF64,    Dtype::kBf16, Dtype::kF16,
                                Dtype::kF8E4m3, Dtype::kF8E5m2, Dtype::kI64,  Dtype::kI32,
                                Dtype::kU64,    Dtype::kU8};
constexpr FillKey kKey{.seed = 3, .name_hash = 5, .step = 7};

class CudaBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = open_backend("cuda", 0);
    if (!opened) GTEST_SKIP() << opened.error().to_string();
    cuda_ = std::move(*opened);
  }

  // `offset` bytes into memory of its own.
  Tensor on_device(Dtype dtype, std::uint64_t count, std::uint64_t offset = 0) {
    const Tensor size{dtype, {count}, nullptr};
    buffers_.push_back(cuda_->allocate(size.bytes() + offset).value());
    return {dtype, {count}, buffers_.back().get() + offset};
  }
  Tensor on_host(Dtype dtype, std::uint64_t count) {
    const Tensor size{dtype, {count}, nullptr};
    buffers_.push_back(host_->allocate(size.bytes()).value());
    return {dtype, {count}, buffers_.back().get()};
  }
  std::vector<std::byte> bytes_of(const Tensor& tensor) {
    std::vector<std::byte> bytes(tensor.bytes());
    EXPECT_TRUE(cuda_->copy_to_host(bytes.data(), tensor, 0, bytes.size()));
    return bytes;
  }

  std::unique_ptr<Backend> host_ = open_backend("cpu", 0).value();
  std::unique_ptr<Backend> cuda_;
  std::vector<Buffer> buffers_;
};

// CUDA's current device is each thread's own, and the first one where nobody said otherwise.
TEST_F(CudaBackendTest, AnotherThreadMayUseIt) {
  auto second = open_backend("cuda", 1);  // the second GPU where there is one
  ASSERT_TRUE(second);
  buffers_.push_back(second->get()->allocate(4096).value());
  const Tensor tensor{Dtype::kU8, {4096}, buffers_.back().get()};
  Result<Digest> digest = fail(internal_error("not run"));
  Result<void> copied;
  std::vector<std::byte> bytes(tensor.bytes());
  std::thread([&] {
    digest = second->get()->digest(tensor);
    copied = second->get()->copy_to_host(bytes.data(), tensor, 0, bytes.size());
  }).join();
  ASSERT_TRUE(digest) << digest.error().to_string();
  ASSERT_TRUE(copied) << copied.error().to_string();
  EXPECT_EQ(*digest, digest_of(bytes.data(), bytes.size()));
  buffers_.clear();  // before their backend
}

TEST_F(CudaBackendTest, FillIsTheHostsForEveryDtypeSizeAndAlignment) {
  for (Dtype dtype : kDtypes) {
    for (std::uint64_t count : {0, 1, 3, 1000, 4097}) {
      for (std::uint64_t offset : {0, 1, 8}) {
        const Tensor device = on_device(dtype, count, offset);
        const Tensor host = on_host(dtype, count);
        ASSERT_TRUE(cuda_->fill(device, kKey, 11));
        ASSERT_TRUE(host_->fill(host, kKey, 11));
        const auto bytes = bytes_of(device);
        EXPECT_TRUE(compare_host(bytes.data(), host.data, bytes.size()).equal())
            << dtype_name(dtype) << " " << count << " at " << offset;
      }
    }
  }
}

TEST_F(CudaBackendTest, DigestsOfManyTensorsInOneLaunchAreTheHosts) {
  std::vector<Tensor> device;
  std::vector<Digest> expected;
  std::uint64_t count = 0;
  for (std::uint64_t step : {1, 15, 16, 17, 200, 255, 4096, 5000, 65536, 119 * 1024, 1 << 20}) {
    for (std::uint64_t offset : {0, 1, 4, 8}) {
      count += step + offset;
      device.push_back(on_device(Dtype::kU8, count, offset));
      const Tensor host = on_host(Dtype::kU8, count);
      ASSERT_TRUE(cuda_->fill(device.back(), kKey, count));
      ASSERT_TRUE(host_->fill(host, kKey, count));
      expected.push_back(host_->digest(host).value());
    }
  }
  device.push_back(on_device(Dtype::kF32, 0));
  expected.push_back(digest_of(nullptr, 0));
  EXPECT_EQ(cuda_->digests(device).value(), expected);
}

// Offsets beyond 32 bits; the digest of the host would take half the suite's time, so the tail is
// moved to the front of another tensor and both are compared.
TEST_F(CudaBackendTest, ATensorOfMoreThanFourGibibytesIsFilledDigestedAndCompared) {
  const std::uint64_t count = (std::uint64_t{1} << 32) + 12345;
  const auto facts = cuda_->memory().value();
  if (facts->free < 3 * count) GTEST_SKIP() << "less than 13 GiB are free on the device";
  const Tensor whole = on_device(Dtype::kU8, count);
  const Tensor again = on_device(Dtype::kU8, count);
  ASSERT_TRUE(cuda_->fill(whole, kKey, 0));
  ASSERT_TRUE(cuda_->fill(again, kKey, 0));
  const Tensor host = on_host(Dtype::kU8, count);
  ASSERT_TRUE(cuda_->copy_to_host(host.data, whole, 0, count));
  for (std::uint64_t i : {std::uint64_t{0}, count / 2, count - 1}) {
    EXPECT_EQ(static_cast<std::uint64_t>(host.data[i]), element_bits(Dtype::kU8, kKey, i) & 255);
  }
  EXPECT_EQ(cuda_->digest(whole).value(), digest_of(host.data, count));
  EXPECT_TRUE(cuda_->compare(whole, again).value().equal());
  const std::byte flipped = host.data[count - 1] ^ std::byte{1};
  ASSERT_TRUE(cuda_->copy_from_host(again, count - 1, &flipped, 1));
  const Difference difference = cuda_->compare(whole, again).value();
  EXPECT_EQ(difference.count, 1U);
  EXPECT_EQ(difference.first, count - 1);
}

TEST_F(CudaBackendTest, CompareFindsTheFirstByteThatDiffersAndCountsThem) {
  for (std::uint64_t offset : {0, 1}) {
    const Tensor left = on_device(Dtype::kU8, 200003, offset);
    const Tensor right = on_device(Dtype::kU8, 200003);
    ASSERT_TRUE(cuda_->fill(left, kKey, 0));
    ASSERT_TRUE(cuda_->fill(right, kKey, 0));
    EXPECT_TRUE(cuda_->compare(left, right).value().equal());
    for (std::uint64_t at : {70001, 70002, 200002}) {
      const auto value = static_cast<std::byte>(~element_bits(Dtype::kU8, kKey, at) & 255);
      ASSERT_TRUE(cuda_->copy_from_host(right, at, &value, 1));
    }
    const Difference difference = cuda_->compare(left, right).value();
    EXPECT_EQ(difference.count, 3U);
    EXPECT_EQ(difference.first, 70001U);
  }
  EXPECT_FALSE(cuda_->compare(on_device(Dtype::kU8, 8), on_device(Dtype::kU8, 9)));
}

TEST_F(CudaBackendTest, MemoryIsZeroed) {
  const auto bytes = bytes_of(on_device(Dtype::kU8, 100001));
  EXPECT_EQ(bytes, std::vector<std::byte>(100001));
}

// The snapshot is that of the call, whatever comes after it.
TEST_F(CudaBackendTest, AStartedCopyDoesNotSeeLaterWork) {
  constexpr std::uint64_t kCount = 64 << 20;
  const Tensor tensor = on_device(Dtype::kU8, kCount);
  ASSERT_TRUE(cuda_->fill(tensor, kKey, 0));
  const Digest before = cuda_->digest(tensor).value();
  StagingPool pool(*cuda_, Rounding::kExact);
  const StagingBlock staged = pool.take(kCount).value();
  const auto copy = cuda_->start_copy_to_host(staged.data(), tensor, 0, kCount, {}).value();
  ASSERT_TRUE(cuda_->fill(tensor, {.seed = 4, .name_hash = 5, .step = 7}, 0));
  ASSERT_TRUE(copy->wait());
  EXPECT_EQ(digest_of(staged.data(), kCount), before);
  EXPECT_NE(cuda_->digest(tensor).value(), before);
}

// A kill that is to come while a tensor is being copied comes there.
TEST_F(CudaBackendTest, MidwayTheFirstHalfIsThereAndTheSecondIsNot) {
  constexpr std::uint64_t kCount = 64 << 20;
  const Tensor tensor = on_device(Dtype::kU8, kCount);
  ASSERT_TRUE(cuda_->fill(tensor, kKey, 0));
  StagingPool pool(*cuda_, Rounding::kExact);
  const StagingBlock staged = pool.take(kCount).value();
  std::memset(staged.data(), 0, kCount);
  std::vector<std::byte> seen;
  const auto copy = cuda_->start_copy_to_host(staged.data(), tensor, 0, kCount, [&] {
    seen.assign(staged.data(), staged.data() + kCount);
  });
  ASSERT_TRUE(copy && (*copy)->wait());
  ASSERT_EQ(seen.size(), kCount);
  EXPECT_EQ(std::memcmp(seen.data(), staged.data(), kCount / 2), 0);
  EXPECT_EQ(std::count(seen.begin() + kCount / 2, seen.end(), std::byte{0}), kCount / 2);
  EXPECT_EQ(digest_of(staged.data(), kCount), cuda_->digest(tensor).value());
}

// What the process freed the device does not have before it is trimmed: the mechanism of G2.
TEST_F(CudaBackendTest, FreedMemoryIsReservedUntilItIsTrimmed) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 30;
  ASSERT_TRUE(cuda_->trim());
  const MemoryFacts empty = *cuda_->memory().value();
  { const Buffer memory = cuda_->allocate(kBytes).value(); }
  const MemoryFacts freed = *cuda_->memory().value();
  EXPECT_EQ(freed.allocated, empty.allocated);
  EXPECT_GE(freed.reserved, empty.reserved + kBytes);
  ASSERT_TRUE(cuda_->trim());
  const MemoryFacts trimmed = *cuda_->memory().value();
  EXPECT_LT(trimmed.reserved, kBytes);
  EXPECT_GE(trimmed.free, freed.free + kBytes);
}

TEST_F(CudaBackendTest, OutOfMemoryNamesTheCallTheDeviceTheRankAndTheSize) {
  const auto memory = cuda_->allocate(std::uint64_t{1} << 50);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().error, ENOMEM);
  EXPECT_EQ(memory.error().rank, 0);
  EXPECT_EQ(memory.error().asked, std::uint64_t{1} << 50);
  EXPECT_NE(memory.error().to_string().find("device 0"), std::string::npos);
  EXPECT_NE(memory.error().to_string().find("cudaMallocFromPoolAsync"), std::string::npos);
  EXPECT_TRUE(cuda_->allocate(4096));  // no error stays behind
}

TEST_F(CudaBackendTest, ARefusedAllocationIsCountedAndKernelsRunAfterIt) {
  EXPECT_FALSE(cuda_->allocate(std::uint64_t{1} << 50));
  EXPECT_EQ(cuda_->memory().value()->refusals, 1U);
  EXPECT_EQ(cuda_->memory().value()->retries, 0U);
  EXPECT_TRUE(cuda_->fill(on_device(Dtype::kU8, 4096), kKey, 0));
}

TEST_F(CudaBackendTest, ATensorIsCopiedOnItsDevice) {
  const Tensor from = on_device(Dtype::kU8, 100003);
  const Tensor to = on_device(Dtype::kU8, 100003);
  ASSERT_TRUE(cuda_->fill(from, kKey, 0));
  ASSERT_TRUE(cuda_->copy(to, from));
  EXPECT_TRUE(cuda_->compare(to, from).value().equal());
}

// A neighbour has a pool of its own, as another process would.
TEST_F(CudaBackendTest, ANeighbourFindsWhatIsFreeAndLeavesWhatItIsToldTo) {
  constexpr std::uint64_t kMiB = 1 << 20;
  const auto other = open_backend("cuda", 0).value();
  Neighbour neighbour(*other);
  const std::uint64_t all = neighbour.probe().value();
  const Buffer taken = cuda_->allocate(1024 * kMiB).value();
  const std::uint64_t rest = neighbour.probe().value();
  EXPECT_LE(rest + 1000 * kMiB, all);
  EXPECT_GE(rest + 1100 * kMiB, all);
  EXPECT_LT(neighbour.leave(64 * kMiB).value(), 70 * kMiB);
  EXPECT_FALSE(cuda_->allocate(128 * kMiB));
}

TEST_F(CudaBackendTest, AGpuThatIsNotThereIsUnavailable) {
  const auto backend = open_backend("cuda:4096", 0);
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace savegate::gpu
