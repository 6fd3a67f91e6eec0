#include "harness/memory/cgroup.h"

#include <gtest/gtest.h>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

TEST(CgroupTest, VersionTwoIsRead) {
  MemoryFacts facts;
  read_cgroup_texts(CgroupVersion::kTwo,
                    {.current = "5000\n",
                     .peak = "9000\n",
                     .events = "low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n",
                     .stat = "anon 1000\nfile 3500\nkernel 400\nshmem 500\nfile_mapped 7\n",
                     .limit = "max\n"},
                    facts);
  EXPECT_EQ(facts["cgroup_current"], 5000U);
  EXPECT_EQ(facts["cgroup_peak"], 9000U);
  EXPECT_EQ(facts["cgroup_oom_kills"], 1U);
  EXPECT_EQ(facts["cgroup_anon"], 1000U);
  EXPECT_EQ(facts["cgroup_file"], 3000U);
  EXPECT_EQ(facts["cgroup_shmem"], 500U);
  EXPECT_EQ(facts["cgroup_limit"], std::nullopt);
}

// The hierarchical lines: a job's own children are part of it.
TEST(CgroupTest, VersionOneIsRead) {
  MemoryFacts facts;
  read_cgroup_texts(
      CgroupVersion::kOne,
      {.current = "5000\n",
       .peak = "9000\n",
       .events = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
       .stat = "cache 1\nrss 2\nshmem 0\ntotal_cache 3500\ntotal_rss 1000\ntotal_shmem 500\n",
       .limit = "9223372036854771712\n"},
      facts);
  EXPECT_EQ(facts["cgroup_current"], 5000U);
  EXPECT_EQ(facts["cgroup_peak"], 9000U);
  EXPECT_EQ(facts["cgroup_oom_kills"], 3U);
  EXPECT_EQ(facts["cgroup_anon"], 1000U);
  EXPECT_EQ(facts["cgroup_file"], 3000U);
  EXPECT_EQ(facts["cgroup_limit"], std::nullopt);
}

// memory.peak came with Linux 5.19.
TEST(CgroupTest, AFileThatIsNotThereIsNotObtained) {
  MemoryFacts facts;
  read_cgroup_texts(CgroupVersion::kTwo,
                    {.current = "1\n", .peak = "", .events = "", .stat = "", .limit = "4096\n"},
                    facts);
  EXPECT_EQ(facts["cgroup_current"], 1U);
  EXPECT_EQ(facts["cgroup_limit"], 4096U);
  EXPECT_EQ(facts["cgroup_peak"], std::nullopt);
  EXPECT_EQ(facts["cgroup_anon"], std::nullopt);
}

constexpr const char* kMounts =
    "24 1 0:22 / /proc rw - proc proc rw\n"
    "36 32 0:30 / /sys/fs/cgroup/memory rw,relatime shared:15 - cgroup cgroup rw,memory\n"
    "37 32 0:31 / /sys/fs/cgroup/unified rw shared:16 - cgroup2 cgroup2 rw\n";

TEST(CgroupTest, TheMemoryControllerOfVersionOneIsFoundBesideVersionTwo) {
  const auto found = find_memory_cgroup("9:name=systemd:/\n4:memory:/api/9\n0::/\n", kMounts);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, CgroupVersion::kOne);
  EXPECT_EQ(found->directory, "/sys/fs/cgroup/memory/api/9");
}

TEST(CgroupTest, AContainerSeesItsOwnPartOfTheHierarchy) {
  const auto found = find_memory_cgroup(
      "0::/docker/42/job\n", "30 25 0:26 /docker/42 /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->version, CgroupVersion::kTwo);
  EXPECT_EQ(found->directory, "/sys/fs/cgroup/job");
}

TEST(CgroupTest, WithoutAMountThereIsNone) {
  EXPECT_FALSE(find_memory_cgroup("0::/\n", "24 1 0:22 / /proc rw - proc proc rw\n"));
}

// Of another job, say, that runs in one of them.
TEST(CgroupTest, TheKernelsKillsInCgroupsBelowAreNotItsOwn) {
  const TestDirectory folder;
  const CgroupPlace place{CgroupVersion::kTwo, folder.path()};
  ASSERT_TRUE(write_file(folder.path() + "/memory.events", "oom 3\noom_kill 3\n"));
  EXPECT_EQ(oom_kills_in(place), 3U);
  ASSERT_TRUE(write_file(folder.path() + "/memory.events.local", "oom 1\noom_kill 0\n"));
  EXPECT_EQ(oom_kills_in(place), 0U);
}

}  // namespace
}  // namespace savegate::harness
