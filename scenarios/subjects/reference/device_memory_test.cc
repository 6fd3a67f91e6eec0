// What saves and loads through a copy leave on a device, simulated here.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/subjects/reference/restore.h"
#include "scenarios/subjects/reference/save.h"
#include "scenarios/subjects/reference/training.h"

namespace savegate::reference {
namespace {

class DeviceMemoryTest : public testing::Test {
 protected:
  DeviceMemoryTest() {
    std::string pattern = testing::TempDir() + "/reference-XXXXXX";
    job_.root = ::mkdtemp(pattern.data());
    std::ofstream(job_.root + "/latest") << "none\n";
    EXPECT_TRUE(state_.start(*backend_, 0));
    saver_.begin_life(kNoCheckpoint);
  }
  ~DeviceMemoryTest() override { std::filesystem::remove_all(job_.root); }

  Job job() {
    return {.rank = 0,
            .world = 1,
            .root = "",
            .comms = comms_,
            .worker = worker_,
            .files = files_,
            .backend = *backend_,
            .contract = {"code", "data", "recipe", 10},
            .through_copy = true};
  }
  State empty_state() { return State::create(*backend_, {}, 1 << 16).value(); }
  std::vector<std::string> digests(const State& state) {
    std::vector<std::string> all;
    const auto items = digest_items(*backend_, state, job_.contract).value();
    all.reserve(items.size());
    for (const worker::Item& item : items) {
      all.push_back(item.name + " " + item.digest);
    }
    return all;
  }
  gpu::MemoryFacts facts() { return backend_->memory().value().value(); }
  // All but so many bytes of the device.
  gpu::Buffer fill_device(std::uint64_t headroom) {
    return backend_->allocate(facts().free - headroom).value();
  }

  Files files_{0};
  worker::Worker worker_{worker::Environment{}};
  Comms comms_{nullptr, worker_};
  std::unique_ptr<gpu::Backend> backend_ = gpu::open_backend("simulated").value();
  Job job_ = job();
  State state_ = empty_state();
  Training training_{job_};
  Saver saver_{job_};
};

TEST_F(DeviceMemoryTest, ASaveTakesASecondSetAndGivesItBack) {
  const std::uint64_t before = facts().reserved;
  ASSERT_TRUE(saver_.save(state_));
  EXPECT_EQ(facts().reserved_peak, 2 * before);
  EXPECT_EQ(facts().reserved, before);
}

TEST_F(DeviceMemoryTest, ALoadLeavesTheAllocatorNothingThatItDoesNotUse) {
  ASSERT_TRUE(training_.step(state_));
  ASSERT_TRUE(saver_.save(state_));
  State loaded = empty_state();
  ASSERT_TRUE(Restorer(job_).restore(loaded));
  EXPECT_EQ(digests(loaded), digests(state_));
  EXPECT_EQ(facts().reserved, facts().allocated);
}

TEST_F(DeviceMemoryTest, ASaveThatFindsNoRoomForItsCopySaysWhatItAskedForAndHoldsNothing) {
  const gpu::Buffer rest = fill_device(1 << 12);
  const auto saved = saver_.save(state_);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().error, ENOMEM);
  EXPECT_TRUE(saved.error().asked.has_value());
  EXPECT_EQ(facts().allocated, facts().reserved);
  EXPECT_EQ(facts().free, 1U << 12);
}

TEST_F(DeviceMemoryTest, ALoadThatFindsNoRoomLeavesTheStateAsItWas) {
  ASSERT_TRUE(training_.step(state_));
  ASSERT_TRUE(saver_.save(state_));
  State other = empty_state();
  const auto before = digests(other);
  const gpu::Buffer rest = fill_device(1 << 12);
  EXPECT_FALSE(Restorer(job_).restore(other));
  EXPECT_EQ(digests(other), before);
}

}  // namespace
}  // namespace savegate::reference
