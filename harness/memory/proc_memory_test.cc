#include "harness/memory/proc_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/run/unique_fd.h"

namespace savegate::harness {
namespace {

TEST(ProcMemoryTest, StatusIsReadInBytes) {
  MemoryFacts facts;
  read_status_text(
      "Name:\tpython\nVmPeak:\t 9 kB\nVmLck:\t      64 kB\nVmPin:\t       0 kB\nVmHWM:\t    1760 "
      "kB\nVmRSS:\t    1740 kB\nRssAnon:\t     112 kB\nRssFile:\t    1628 kB\nRssShmem:\t       0 "
      "kB\nThreads:\t12\n",
      facts);
  EXPECT_EQ(facts["rss"], 1740U * 1024);
  EXPECT_EQ(facts["rss_peak"], 1760U * 1024);
  EXPECT_EQ(facts["rss_anon"], 112U * 1024);
  EXPECT_EQ(facts["locked"], 64U * 1024);
  EXPECT_EQ(facts["pinned"], 0U);
  EXPECT_EQ(facts["threads"], 12U);
}

// Else a kernel without the line would look like a process without pinned memory.
TEST(ProcMemoryTest, ALineThatIsNotThereIsNotObtained) {
  MemoryFacts facts;
  read_status_text("VmRSS:\t 8 kB\nVmPin:\t kB\n", facts);
  EXPECT_EQ(facts["rss"], 8192U);
  EXPECT_TRUE(facts.contains("pinned"));
  EXPECT_EQ(facts["pinned"], std::nullopt);
  EXPECT_EQ(facts["threads"], std::nullopt);
}

TEST(ProcMemoryTest, TheRollupTellsAnonymousFromFilePages) {
  MemoryFacts facts;
  read_smaps_rollup_text(
      "556a1fd23000-7ffe178e4000 ---p 00000000 00:00 0                          [rollup]\n"
      "Rss:                1808 kB\nPss:                 194 kB\nPss_Dirty:           116 kB\n"
      "Pss_Anon:            116 kB\nPss_File:             70 kB\nPss_Shmem:             8 kB\n"
      "Anonymous:           120 kB\n",
      facts);
  EXPECT_EQ(facts["pss"], 194U * 1024);
  EXPECT_EQ(facts["pss_anon"], 116U * 1024);
  EXPECT_EQ(facts["pss_file"], 70U * 1024);
  EXPECT_EQ(facts["pss_shmem"], 8U * 1024);
  EXPECT_EQ(facts["anonymous"], 120U * 1024);
}

TEST(ProcMemoryTest, ANamelessOpenFileOfThisProcessIsCounted) {
  const MemoryFacts before = measure_process(::getpid(), Pages::kCounted).facts;
  const UniqueFd nameless(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  ASSERT_TRUE(nameless);
  const MemoryFacts after = measure_process(::getpid(), Pages::kCounted).facts;
  EXPECT_EQ(*fact_of(after, "open_files"), *fact_of(before, "open_files") + 1);
  EXPECT_EQ(*fact_of(after, "deleted_files"), *fact_of(before, "deleted_files") + 1);
  EXPECT_FALSE(after.contains("pss"));
}

TEST(ProcMemoryTest, AProcessThatIsGoneTellsNothing) {
  EXPECT_TRUE(measure_process(1 << 30, Pages::kWalked).facts.empty());
}

}  // namespace
}  // namespace savegate::harness
