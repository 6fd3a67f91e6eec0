// Faults of data that show later or elsewhere, as a program sees them: what comes undone, what a
// reader is shown, and how long an operation takes.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

using faults::Op;
using std::chrono::steady_clock;

class DataFaultsTest : public testing::Test {
 protected:
  void TearDown() override { close(); }
  void rule(const std::string& match, const std::string& action, const std::string& before = "") {
    arm("[[rule]]\nname = \"r\"\nmatch = { " + match + " }\naction = { " + action + " }\n", before);
  }
  void arm(const std::string& plan, const std::string& before = "") {
    mounted_ = std::make_unique<Mounted>(plan);
    if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
    if (!before.empty()) write_all(mounted_->backing("file"), before);
    fd_ = ::open(mounted_->path("file").c_str(), O_RDWR | O_CREAT, 0644);
    ASSERT_GE(fd_, 0) << errno;
  }
  void put(off_t offset, const std::string& bytes) {
    ASSERT_EQ(::pwrite(fd_, bytes.data(), bytes.size(), offset),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string seen() {
    std::string bytes(64, '?');
    const ssize_t got = ::pread(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }
  std::string backing() { return read_all(mounted_->backing("file")); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  std::unique_ptr<Mounted> mounted_;
  int fd_ = -1;
};

TEST_F(DataFaultsTest, AnFsyncThatFailsDropsWhatWasWrittenSinceTheLast) {
  rule("op = \"fsync\", nth = 2", "errno = \"EIO\", drop = true");
  if (IsSkipped()) return;
  put(0, "synced--");
  ASSERT_EQ(::fsync(fd_), 0);
  put(4, "dropped");
  ASSERT_EQ(::ftruncate(fd_, 9), 0);
  EXPECT_EQ(seen(), "syncdropp");
  EXPECT_EQ(::fsync(fd_), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(backing(), "synced--");
  EXPECT_EQ(seen(), "synced--");
  EXPECT_EQ(::fsync(fd_), 0) << "the next one succeeds, and saves nothing";
  EXPECT_EQ(backing(), "synced--");
  EXPECT_EQ(mounted_->fired().at(0).op, Op::kFsync);
}

TEST_F(DataFaultsTest, ALateErrorAtFsyncDropsToo) {
  rule("op = \"write\", once = true", "errno = \"EIO\", late = \"fsync\", drop = true", "old");
  if (IsSkipped()) return;
  put(0, "new one");
  EXPECT_EQ(::fsync(fd_), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(backing(), "old");
  put(0, "new two");
  EXPECT_EQ(::fsync(fd_), 0);
  EXPECT_EQ(backing(), "new two");
}

TEST_F(DataFaultsTest, ALateErrorAtTheNextWriteIsSeenThereAlone) {
  rule("op = \"write\", nth = 1", "errno = \"ENOSPC\", late = \"write\"");
  if (IsSkipped()) return;
  put(0, "one");
  EXPECT_EQ(::pwrite(fd_, "two", 3, 3), -1);
  EXPECT_EQ(errno, ENOSPC);
  put(3, "two");
  EXPECT_EQ(backing(), "onetwo");
  EXPECT_EQ(mounted_->fired().at(0).offset, 3u);
}

TEST_F(DataFaultsTest, LostWritesAreSeenInThisMountAndGoneAfterIt) {
  rule("op = \"write\", nth = 2", "lose = true", "0123456789");
  if (IsSkipped()) return;
  put(0, "AA");
  put(2, "BBBBBBBBBBBB");
  put(4, "CC");
  EXPECT_EQ(seen(), "AABBCCBBBBBBBB");
  EXPECT_EQ(backing(), "AABBCCBBBBBBBB");
  close();
  mounted_->stop();
  EXPECT_EQ(backing(), "AA23CC6789");
  const auto fired = mounted_->fired();
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].action, "lose");
  EXPECT_EQ(fired[0].op, Op::kWrite);
  EXPECT_EQ(fired[0].path, "file");
  EXPECT_EQ(fired[0].offset, 2u);
  EXPECT_EQ(fired[0].requested, 10u);
}

TEST_F(DataFaultsTest, WhatWasSyncedIsNotLostAndFiresNothing) {
  rule("op = \"write\"", "lose = true");
  if (IsSkipped()) return;
  put(0, "kept");
  ASSERT_EQ(::fsync(fd_), 0);
  close();
  mounted_->stop();
  EXPECT_EQ(backing(), "kept");
  EXPECT_TRUE(mounted_->fired().empty());
}

// The rule knows the temporary name alone; the fsync comes after the rename.
TEST_F(DataFaultsTest, AFileRenamedAwayFromItsRuleIsStillSynced) {
  rule("op = \"write\", path = \"file\"", "lose = true");
  if (IsSkipped()) return;
  put(0, "kept");
  ASSERT_EQ(::rename(mounted_->path("file").c_str(), mounted_->path("final").c_str()), 0);
  ASSERT_EQ(::fsync(fd_), 0);
  close();
  mounted_->stop();
  EXPECT_EQ(read_all(mounted_->backing("final")), "kept");
}

TEST_F(DataFaultsTest, WithAnFsyncThatLiesSyncedWritesAreLostToo) {
  arm("[[rule]]\nmatch = { op = \"write\" }\naction = { lose = true }\n"
      "[[rule]]\nmatch = { op = \"fsync\" }\naction = { lie = true }\n");
  if (IsSkipped()) return;
  put(0, "lost");
  ASSERT_EQ(::fsync(fd_), 0);
  close();
  mounted_->stop();
  EXPECT_EQ(backing(), "");
}

TEST_F(DataFaultsTest, AStaleBlockOnTheWayInKeepsItsOldContent) {
  rule("op = \"write\"", "corrupt = \"stale\", at = 2, length = 4", "0123");
  if (IsSkipped()) return;
  put(0, "abcdefgh");
  EXPECT_EQ(backing(), std::string("ab23\0\0gh", 8));
  EXPECT_EQ(mounted_->fired().size(), 1u);
}

TEST_F(DataFaultsTest, AStaleBlockOnTheWayOutIsWhatWasOverwritten) {
  rule("op = \"read\", once = true", "corrupt = \"stale\", on = \"out\", at = 0, length = 4",
       "0123456789");
  if (IsSkipped()) return;
  EXPECT_EQ(seen(), "0123456789") << "nothing was overwritten yet: the rule does not act";
  put(2, "XXXX");
  ASSERT_EQ(::fsync(fd_), 0);
  EXPECT_EQ(seen(), "0123XX6789");
  EXPECT_EQ(seen(), "01XXXX6789");
  EXPECT_EQ(backing(), "01XXXX6789");
  EXPECT_EQ(mounted_->fired().size(), 1u);
}

TEST_F(DataFaultsTest, TwoBlocksChangePlacesOnTheWayIn) {
  rule("op = \"write\"", "corrupt = \"swap\", at = 1, length = 2, with = 5");
  if (IsSkipped()) return;
  put(0, "01234567");
  EXPECT_EQ(backing(), "05634127");
}

TEST_F(DataFaultsTest, TwoBlocksChangePlacesOnTheWayOut) {
  rule("op = \"read\"", "corrupt = \"swap\", on = \"out\", at = 0, length = 4");
  if (IsSkipped()) return;
  put(0, "aaaabbbbcc");
  EXPECT_EQ(seen(), "bbbbaaaacc");
  EXPECT_EQ(backing(), "aaaabbbbcc");
}

// Eight writes through the link against one: wide margins, for noise only ever adds to both.
TEST_F(DataFaultsTest, ABandwidthIsSharedByAllWrites) {
  rule("op = \"write\"", "bandwidth = \"1MB/s\"");
  if (IsSkipped()) return;
  const std::string bytes(10'000, 'x');
  const auto from = steady_clock::now();
  for (int i = 0; i < 8; ++i) put(i, bytes);
  EXPECT_GE(steady_clock::now() - from, std::chrono::milliseconds(80));
  EXPECT_EQ(mounted_->fired().size(), 8u);
}

TEST_F(DataFaultsTest, ADrawnDelayWaitsAtLeastItsLeast) {
  rule("op = \"write\"", "delay = { uniform = [\"30ms\", \"40ms\"] }");
  if (IsSkipped()) return;
  const auto from = steady_clock::now();
  put(0, "x");
  EXPECT_GE(steady_clock::now() - from, std::chrono::milliseconds(30));
  EXPECT_EQ(mounted_->fired().at(0).action, "delay uniform 30ms to 40ms");
}

TEST_F(DataFaultsTest, SinceAMarkTheRuleActsAndBeforeItDoesNot) {
  rule("op = \"write\", since = { mark = \"save 1\" }", "errno = \"EIO\"");
  if (IsSkipped()) return;
  put(0, "x");
  mounted_->command(R"({"cmd":"mark","rank":-1,"kind":"enter","name":"save 1"})");
  EXPECT_EQ(::pwrite(fd_, "x", 1, 0), -1);
  EXPECT_EQ(errno, EIO);
}

class FullTest : public DataFaultsTest {};

TEST_F(FullTest, EachOperationOnNamesCanFindNoSpace) {
  arm("[[rule]]\nname = \"full\"\n"
      "match = { op = [\"create\", \"mkdir\", \"rename\", \"link\", \"setxattr\"], path = \"new*\" "
      "}\n"
      "action = { errno = \"ENOSPC\" }\n");
  if (IsSkipped()) return;
  const std::string file = mounted_->path("file");
  const auto is_full = [](int result) { return result == -1 && errno == ENOSPC; };
  EXPECT_TRUE(is_full(::open(mounted_->path("new").c_str(), O_CREAT | O_WRONLY, 0644)));
  EXPECT_TRUE(is_full(::mkdir(mounted_->path("new").c_str(), 0755)));
  EXPECT_TRUE(is_full(::rename(file.c_str(), mounted_->path("new").c_str())));
  EXPECT_TRUE(is_full(::link(file.c_str(), mounted_->path("new").c_str())));
  write_all(mounted_->backing("newest"), "");
  EXPECT_TRUE(is_full(::setxattr(mounted_->path("newest").c_str(), "user.a", "1", 1, 0)));
  EXPECT_EQ(mounted_->fired().size(), 5u);
}

TEST_F(FullTest, ABudgetOfInodesRefusesWhatIsMadeAndGivesBackAtTheLastNameAndHandle) {
  arm("[[budget]]\nname = \"inodes\"\ninodes = 3\n");
  if (IsSkipped()) return;  // one is `file`
  const auto make = [this](const std::string& name) {
    return ::mkdir(mounted_->path(name).c_str(), 0755) == 0 ? 0 : errno;
  };
  EXPECT_EQ(make("d"), 0);
  EXPECT_EQ(make("d"), EEXIST) << "which takes none";
  EXPECT_EQ(::symlink("x", mounted_->path("s").c_str()), 0);
  EXPECT_EQ(make("e"), ENOSPC);
  EXPECT_EQ(::open(mounted_->path("e").c_str(), O_CREAT | O_WRONLY, 0644), -1);
  EXPECT_EQ(errno, ENOSPC);
  EXPECT_EQ(::link(mounted_->path("file").c_str(), mounted_->path("l").c_str()), 0);
  struct statvfs space {};
  ASSERT_EQ(::statvfs(mounted_->path().c_str(), &space), 0);
  EXPECT_EQ(space.f_files, 3u);
  EXPECT_EQ(space.f_favail, 0u);

  ASSERT_EQ(::rmdir(mounted_->path("d").c_str()), 0);
  EXPECT_EQ(make("e"), 0);
  ASSERT_EQ(::unlink(mounted_->path("file").c_str()), 0);
  ASSERT_EQ(::unlink(mounted_->path("l").c_str()), 0);
  EXPECT_EQ(make("f"), ENOSPC) << "a handle is open";
  close();
  // The kernel sends the release after close(2) has returned.
  while (make("f") != 0) ASSERT_EQ(errno, ENOSPC);
  EXPECT_EQ(mounted_->fired().at(0).action, "budget ENOSPC inodes 3");
}

}  // namespace
}  // namespace savegate::fusefs
