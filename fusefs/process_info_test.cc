#include "fusefs/process_info.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace savegate::fusefs {
namespace {

using std::string_view_literals::operator""sv;

TEST(ProcessInfoTest, StatusGivesProcessAndParent) {
  auto status = parse_status("Name:\tx\nTgid:\t41\nNgid:\t0\nPid:\t42\nPPid:\t7\nVmSize:\t1 kB\n");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->tgid, 41);
  EXPECT_EQ(status->ppid, 7);
  EXPECT_FALSE(status->dying);
}

TEST(ProcessInfoTest, PendingSigkillMeansDying) {
  const std::string head = "Name:\tx\nTgid:\t41\nPPid:\t7\nVmSize:\t1 kB\n";
  EXPECT_TRUE(parse_status(head + "SigPnd:\t0000000000000100\nShdPnd:\t0000000000000000\n")->dying);
  EXPECT_TRUE(parse_status(head + "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n")->dying);
  EXPECT_FALSE(
      parse_status(head + "SigPnd:\t0000000000004000\nShdPnd:\t0000000000000002\n")->dying);
}

// What a process closes as it exits comes after its signals were taken and its memory was given
// back.
TEST(ProcessInfoTest, AProcessWithoutMemoryIsExiting) {
  EXPECT_TRUE(parse_status("Name:\tx\nTgid:\t41\nPPid:\t7\n")->dying);
}

TEST(ProcessInfoTest, StatusWithoutItsFieldsIsNothing) {
  EXPECT_FALSE(parse_status(""));
  EXPECT_FALSE(parse_status("Name:\tx\nTgid:\tabc\n"));
}

// The program's name stands in parentheses and may itself hold them, and spaces.
TEST(ProcessInfoTest, StartTimeIsFoundBehindAnyProgramName) {
  EXPECT_EQ(parse_start_ticks("7 (a) b (c) S 1 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 98765 0"),
            98765u);
  EXPECT_FALSE(parse_start_ticks("7 (a) S 1 7"));
  EXPECT_FALSE(parse_start_ticks("nothing"));
}

TEST(ProcessInfoTest, RankComesBeforeTheOtherVariables) {
  EXPECT_EQ(rank_from_environment("PMI_RANK=3\0SLURM_PROCID=2\0RANK=1\0"sv), 1);
  EXPECT_EQ(rank_from_environment("PMI_RANK=3\0SLURM_PROCID=2\0"sv), 2);
  EXPECT_EQ(rank_from_environment("OMPI_COMM_WORLD_RANK=5\0PMI_RANK=3"sv), 5);
  EXPECT_EQ(rank_from_environment("PMI_RANK=3"sv), 3);
}

TEST(ProcessInfoTest, OtherVariablesAndBadNumbersAreNoRank) {
  EXPECT_FALSE(rank_from_environment("LOCAL_RANK=1\0RANKS=4\0HOME=/RANK=2\0"sv));
  EXPECT_FALSE(rank_from_environment("RANK=\0"sv));
  EXPECT_FALSE(rank_from_environment("RANK=-1\0"sv));
  EXPECT_FALSE(rank_from_environment("RANK=x\0"sv));
  EXPECT_FALSE(rank_from_environment(""sv));
}

TEST(ProcessInfoTest, AReadOutsideOfACallThatReadsFillsPages) {
  const std::string read = std::to_string(SYS_pread64) + " 0x3 0x7ffc 0x1000\n";
  const std::string map = std::to_string(SYS_mmap) + " 0x0 0x1000\n";
  EXPECT_EQ(parse_fills_pages(read), false);
  EXPECT_EQ(parse_fills_pages(map), true);
  EXPECT_EQ(parse_fills_pages("-1 0x7ffd2f0 0x401000\n"), true);  // a page fault
  EXPECT_FALSE(parse_fills_pages("running\n"));
  EXPECT_FALSE(parse_fills_pages(""));
}

TEST(ProcessInfoTest, ReadsThisProcess) {
  auto status = process_status(::getpid());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->tgid, ::getpid());
  EXPECT_EQ(status->ppid, ::getppid());
  EXPECT_TRUE(start_ticks(::getpid()));
}

}  // namespace
}  // namespace savegate::fusefs
