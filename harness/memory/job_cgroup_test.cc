// On real cgroups, where this machine lets any be made.
#include "harness/memory/job_cgroup.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "harness/run/process.h"

namespace savegate::harness {
namespace {

class JobCgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = JobCgroup::create(2);
    if (!made) GTEST_SKIP() << made.error().to_string();
    job_.emplace(std::move(*made));
  }

  static bool is_there(const CgroupPlace& place) {
    struct stat found {};
    return ::stat(place.directory.c_str(), &found) == 0;
  }

  std::optional<JobCgroup> job_;
};

TEST_F(JobCgroupTest, ItGoesWithItsObject) {
  const CgroupPlace job = job_->job();
  EXPECT_TRUE(is_there(job_->rank(1)));
  job_.reset();
  EXPECT_FALSE(is_there(job));
}

// The next runner has no other way to know that it was killed.
TEST_F(JobCgroupTest, WhatAKilledRunnerLeftIsRemovedByTheNextOne) {
  const std::string beside = job_->job().directory;
  const CgroupPlace abandoned{job_->job().version,
                              beside.substr(0, beside.rfind('/')) + "/savegate-abandoned"};
  ASSERT_EQ(::mkdir(abandoned.directory.c_str(), 0755), 0);
  EXPECT_TRUE(JobCgroup::create(1));
  EXPECT_FALSE(is_there(abandoned));
}

TEST_F(JobCgroupTest, WhatIsInUseStays) {
  EXPECT_TRUE(JobCgroup::create(1));
  EXPECT_TRUE(is_there(job_->job()));
}

TEST_F(JobCgroupTest, ACommandBeginsInItsRanksCgroup) {
  SpawnRequest request;
  request.command = job_->begun_in(1, {"grep", "-q", "/ranks/rank-1$", "/proc/self/cgroup"});
  request.environment = environment_with({});
  auto process = Process::spawn(request);
  ASSERT_TRUE(process) << process.error().to_string();
  const auto status = process->wait_for(20 * kSecond);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 0);
}

}  // namespace
}  // namespace savegate::harness
