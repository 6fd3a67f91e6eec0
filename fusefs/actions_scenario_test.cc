// Each action of a plan, seen as a program sees it: bytes, errno, and the fired record.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

using faults::Op;

// A mount with one rule, and a file of it open.
class ActionsTest : public testing::Test {
 protected:
  void TearDown() override {
    if (fd_ >= 0) ::close(fd_);
  }
  // False where this machine cannot mount.
  bool arm(const std::string& plan) {
    mounted_ = std::make_unique<Mounted>(plan);
    return mounted_->ready();
  }
  void rule(const std::string& match, const std::string& action) {
    if (!arm("[[rule]]\nname = \"r\"\nmatch = { " + match + " }\naction = { " + action + " }\n")) {
      GTEST_SKIP() << mounted_->why_not();
    }
    open("file");
  }
  void open(const std::string& name) {
    fd_ = ::open(mounted_->path(name).c_str(), O_RDWR | O_CREAT, 0644);
    ASSERT_GE(fd_, 0) << errno;
  }
  std::string backing() { return read_all(mounted_->backing("file")); }

  std::unique_ptr<Mounted> mounted_;
  int fd_ = -1;
};

TEST_F(ActionsTest, AnErrnoWritesNothing) {
  rule("op = \"write\"", "errno = \"EDQUOT\"");
  if (IsSkipped()) return;
  EXPECT_EQ(::write(fd_, "abcd", 4), -1);
  EXPECT_EQ(errno, EDQUOT);
  EXPECT_EQ(backing(), "");
  auto fired = mounted_->fired();
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].rule, "r");
  EXPECT_EQ(fired[0].op, Op::kWrite);
  EXPECT_EQ(fired[0].path, "file");
  EXPECT_EQ(fired[0].requested, 4u);
  EXPECT_EQ(fired[0].returned, 0u);
  EXPECT_EQ(fired[0].error, EDQUOT);
  EXPECT_EQ(fired[0].caller.pid, ::getpid());
  EXPECT_GT(fired[0].fs_free, 0u);
}

TEST_F(ActionsTest, PartialEffectThenErrnoLeavesTheBytesBefore) {
  rule("op = \"write\"", "errno = \"ENOSPC\", after = 3");
  if (IsSkipped()) return;
  EXPECT_EQ(::write(fd_, "abcdef", 6), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(backing(), "abc");
  EXPECT_EQ(mounted_->fired().at(0).returned, 3u);
}

TEST_F(ActionsTest, AShortWriteSaysHowMuch) {
  rule("op = \"write\"", "short = \"50%\"");
  if (IsSkipped()) return;
  EXPECT_EQ(::write(fd_, "abcdef", 6), 3);
  EXPECT_EQ(backing(), "abc");
  EXPECT_EQ(::lseek(fd_, 0, SEEK_CUR), 3);
}

TEST_F(ActionsTest, AShortReadSaysHowMuch) {
  rule("op = \"read\"", "short = 2");
  if (IsSkipped()) return;
  ASSERT_EQ(::pwrite(fd_, "abcdef", 6, 0), 6);
  std::array<char, 6> bytes{};
  EXPECT_EQ(::pread(fd_, bytes.data(), 6, 0), 2);
}

// A mapping is read in pages, which a file system gives whole: half of one would end the program.
TEST_F(ActionsTest, AMappingSeesNoShortRead) {
  rule("op = \"read\"", "short = \"50%\"");
  if (IsSkipped()) return;
  const std::string written(64 * 1024, 'a');
  ASSERT_EQ(::pwrite(fd_, written.data(), written.size(), 0), 64 * 1024);
  void* map = ::mmap(nullptr, written.size(), PROT_READ, MAP_PRIVATE, fd_, 0);
  ASSERT_NE(map, MAP_FAILED) << errno;
  EXPECT_EQ(std::string(static_cast<const char*>(map), written.size()), written);
  ::munmap(map, written.size());
  EXPECT_TRUE(mounted_->fired().empty());
}

// Nobody could go on with the rest of a page that the kernel has written back.
TEST_F(ActionsTest, AMappingIsWrittenBackWhole) {
  rule("op = \"write\"", "short = \"50%\"");
  if (IsSkipped()) return;
  const std::size_t size = 64 * 1024;
  ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(size)), 0);
  void* map = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  ASSERT_NE(map, MAP_FAILED) << errno;
  std::memset(map, 'a', size);
  EXPECT_EQ(::msync(map, size, MS_SYNC), 0) << errno;
  ::munmap(map, size);
  EXPECT_EQ(backing(), std::string(size, 'a'));
  EXPECT_TRUE(mounted_->fired().empty());
}

TEST_F(ActionsTest, CorruptionOnTheWayInIsOnTheDisk) {
  rule("op = \"write\"", "corrupt = \"zero\", on = \"in\", at = 2, length = 2");
  if (IsSkipped()) return;
  EXPECT_EQ(::write(fd_, "abcdef", 6), 6);
  EXPECT_EQ(backing(), std::string("ab\0\0ef", 6));
  EXPECT_EQ(read_all(mounted_->path("file")), std::string("ab\0\0ef", 6));
}

TEST_F(ActionsTest, CorruptionOnTheWayOutIsNotOnTheDisk) {
  rule("op = \"read\"", "corrupt = \"flip\", on = \"out\", at = 0, length = 1");
  if (IsSkipped()) return;
  ASSERT_EQ(::pwrite(fd_, "abc", 3, 0), 3);
  std::array<char, 3> bytes{};
  EXPECT_EQ(::pread(fd_, bytes.data(), 3, 0), 3);
  EXPECT_NE(bytes[0], 'a');
  EXPECT_EQ(bytes[1], 'b');
  EXPECT_EQ(backing(), "abc");
}

TEST_F(ActionsTest, AReadAtTheEndOfTheFileSpendsNoDamage) {
  rule("op = \"read\", once = true", "corrupt = \"swap\", on = \"out\", at = 0, length = 1");
  if (IsSkipped()) return;
  ASSERT_EQ(::pwrite(fd_, "abc", 3, 0), 3);
  std::array<char, 8> bytes{};
  ASSERT_EQ(::pread(fd_, bytes.data(), bytes.size(), 3), 0);
  ASSERT_EQ(::pread(fd_, bytes.data(), bytes.size(), 0), 3);
  EXPECT_EQ(std::string(bytes.data(), 3), "bac");
}

TEST_F(ActionsTest, ALieSaysSuccessAndWritesNothing) {
  rule("op = \"write\"", "lie = true");
  if (IsSkipped()) return;
  EXPECT_EQ(::write(fd_, "abcdef", 6), 6);
  EXPECT_EQ(backing(), "");
  for (const auto& record : mounted_->trace()) {
    if (record.op != Op::kWrite) continue;
    EXPECT_EQ(record.returned, 6u);
    EXPECT_EQ(record.effective, 0u);
    EXPECT_TRUE(record.faulted);
  }
}

TEST_F(ActionsTest, ARenameThatWasALieIsSeenAtOnceNotToHaveHappened) {
  rule("op = \"rename\"", "lie = true");
  if (IsSkipped()) return;
  write_all(mounted_->path("new"), "new");
  write_all(mounted_->path("old"), "old");
  EXPECT_EQ(::rename(mounted_->path("new").c_str(), mounted_->path("old").c_str()), 0);
  EXPECT_EQ(read_all(mounted_->path("old")), "old");
  EXPECT_EQ(read_all(mounted_->path("new")), "new");
}

TEST_F(ActionsTest, AnUnlinkThatWasALieLeavesTheName) {
  rule("op = \"unlink\"", "lie = true");
  if (IsSkipped()) return;
  EXPECT_EQ(::unlink(mounted_->path("file").c_str()), 0);
  EXPECT_EQ(::access(mounted_->path("file").c_str(), F_OK), 0);
}

TEST_F(ActionsTest, AnErrorThatComesAtFsyncFailsThatFsyncAlone) {
  rule("op = \"write\", once = true", "errno = \"EIO\", late = \"fsync\"");
  if (IsSkipped()) return;
  EXPECT_EQ(::write(fd_, "abc", 3), 3);
  EXPECT_EQ(::fsync(fd_), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(::fsync(fd_), 0);
  EXPECT_EQ(mounted_->fired().at(0).op, Op::kFsync);
}

TEST_F(ActionsTest, AnErrorThatComesAtCloseFailsClose) {
  rule("op = \"write\"", "errno = \"EDQUOT\", late = \"close\"");
  if (IsSkipped()) return;
  EXPECT_EQ(::write(fd_, "abc", 3), 3);
  EXPECT_EQ(::fsync(fd_), 0);
  EXPECT_EQ(::close(std::exchange(fd_, -1)), -1);
  EXPECT_EQ(errno, EDQUOT);
}

TEST_F(ActionsTest, ErrnosStrikeAtOperationsOnNames) {
  rule("op = [\"rename\", \"unlink\", \"mkdir\", \"fsyncdir\"], path = \"**\"", "errno = \"EIO\"");
  if (IsSkipped()) return;
  const std::string file = mounted_->path("file");
  EXPECT_EQ(::rename(file.c_str(), mounted_->path("other").c_str()), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(::unlink(file.c_str()), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(::mkdir(mounted_->path("d").c_str(), 0755), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(::access(mounted_->backing("file").c_str(), F_OK), 0);
}

TEST_F(ActionsTest, ARenameIsMatchedByItsNewNameToo) {
  rule("op = \"rename\", path = \"final\"", "errno = \"EXDEV\"");
  if (IsSkipped()) return;
  EXPECT_EQ(::rename(mounted_->path("file").c_str(), mounted_->path("final").c_str()), -1);
  EXPECT_EQ(errno, EXDEV);
}

// Rules follow the name that a file has now, not the one it was opened by.
TEST_F(ActionsTest, RulesFollowARenamedFileAndItsFolder) {
  rule("op = \"write\", path = \"step_2/final\"", "errno = \"EIO\"");
  if (IsSkipped()) return;
  ASSERT_EQ(::mkdir(mounted_->path("tmp").c_str(), 0755), 0);
  ASSERT_EQ(::rename(mounted_->path("file").c_str(), mounted_->path("tmp/final").c_str()), 0);
  EXPECT_EQ(::write(fd_, "x", 1), 1);
  ASSERT_EQ(::rename(mounted_->path("tmp").c_str(), mounted_->path("step_2").c_str()), 0);
  EXPECT_EQ(::write(fd_, "x", 1), -1);
  EXPECT_EQ(errno, EIO);
}

TEST_F(ActionsTest, ADelayDelaysAndThenDoes) {
  rule("op = \"write\"", "delay = \"50ms\"");
  if (IsSkipped()) return;
  const auto from = std::chrono::steady_clock::now();
  EXPECT_EQ(::write(fd_, "abc", 3), 3);
  EXPECT_GE(std::chrono::steady_clock::now() - from, std::chrono::milliseconds(50));
  EXPECT_EQ(backing(), "abc");
}

TEST_F(ActionsTest, ABudgetEndsAtTheVeryByteAndStatfsAgrees) {
  if (!arm("[[budget]]\nname = \"quota\"\nlimit = \"1MiB\"\n")) {
    GTEST_SKIP() << mounted_->why_not();
  }
  open("file");
  const std::string bytes(700'000, 'b');
  EXPECT_EQ(::write(fd_, bytes.data(), bytes.size()), 700'000);
  EXPECT_EQ(::write(fd_, bytes.data(), bytes.size()), (1 << 20) - 700'000);
  EXPECT_EQ(::write(fd_, "x", 1), -1);
  EXPECT_EQ(errno, ENOSPC);
  struct statvfs space {};
  ASSERT_EQ(::statvfs(mounted_->path().c_str(), &space), 0);
  EXPECT_EQ(space.f_blocks * space.f_frsize, 1u << 20);
  EXPECT_EQ(space.f_bavail, 0u);
  EXPECT_EQ(mounted_->fired().back().rule, "quota");
  EXPECT_EQ(mounted_->fired().back().fs_free, 0u);
}

TEST_F(ActionsTest, SpaceComesBackWhenTheLastHandleOfAnUnlinkedFileCloses) {
  if (!arm("[[budget]]\nname = \"quota\"\nlimit = \"64KiB\"\n")) {
    GTEST_SKIP() << mounted_->why_not();
  }
  open("file");
  const std::string bytes(65536, 'b');
  EXPECT_EQ(::write(fd_, bytes.data(), bytes.size()), 65536);
  ASSERT_EQ(::unlink(mounted_->path("file").c_str()), 0);
  const int other = ::open(mounted_->path("other").c_str(), O_WRONLY | O_CREAT, 0644);
  EXPECT_EQ(::write(other, "x", 1), -1);
  EXPECT_EQ(errno, ENOSPC);
  ::close(std::exchange(fd_, -1));
  // The kernel sends the release after close(2) has returned.
  while (mounted_->command(R"({"cmd":"statistics"})").find("\"release\":1") == std::string::npos) {
  }
  while (::write(other, "x", 1) != 1) ASSERT_EQ(errno, ENOSPC);
  EXPECT_EQ(::ftruncate(other, 0), 0);
  ::close(other);
}

TEST_F(ActionsTest, APunchedHoleIsFreeOfChargeAndGivesSpaceBack) {
  if (!arm("[[budget]]\nname = \"b\"\nlimit = \"16KiB\"\n")) GTEST_SKIP() << mounted_->why_not();
  open("file");
  const std::string bytes(16'384, 'x');
  ASSERT_EQ(::write(fd_, bytes.data(), bytes.size()), 16'384);
  constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  EXPECT_EQ(::fallocate(fd_, kPunch, 40'960, 4'096), 0) << "a hole behind the end takes no space";
  EXPECT_EQ(::pwrite(fd_, "y", 1, 16'384), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(::fallocate(fd_, kPunch, 4'096, 4'096), 0);
  EXPECT_EQ(::pwrite(fd_, "y", 1, 16'384), 1);
}

TEST_F(ActionsTest, FilesThatWereThereBeforeCountToo) {
  if (!arm("")) GTEST_SKIP() << mounted_->why_not();
  write_all(mounted_->backing("before"), std::string(65536, 'b'));
  mounted_->command(R"({"cmd":"arm","plan":"[[budget]]\nname = \"quota\"\nlimit = \"64KiB\"\n"})");
  open("file");
  EXPECT_EQ(::write(fd_, "x", 1), -1);
  EXPECT_EQ(errno, ENOSPC);
}

TEST_F(ActionsTest, DisarmEndsAllFaults) {
  rule("op = \"write\"", "errno = \"EIO\"");
  if (IsSkipped()) return;
  EXPECT_EQ(::write(fd_, "x", 1), -1);
  mounted_->command(R"({"cmd":"disarm"})");
  EXPECT_EQ(::write(fd_, "x", 1), 1);
}

TEST_F(ActionsTest, ARuleThatCanNeverActIsRefused) {
  if (!arm("")) GTEST_SKIP() << mounted_->why_not();
  auto client = ControlClient::connect(mounted_->control_path());
  ASSERT_TRUE(client);
  auto reply = client->call(
      R"({"cmd":"arm","plan":"[[rule]]\nmatch = { op = \"lock\" }\naction = { errno = \"EIO\" }\n"})");
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().text.find("can never act"), std::string::npos);
}

}  // namespace
}  // namespace savegate::fusefs
