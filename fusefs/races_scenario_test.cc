// Another was there just before: what the racer did is real, and the operation comes too late.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

class RacesTest : public testing::Test {
 protected:
  void race(const std::string& op, const std::string& kind, const std::string& budget = "") {
    mounted_ = std::make_unique<Mounted>("[[rule]]\nname = \"r\"\nmatch = { op = \"" + op +
                                         "\", once = true }\naction = { race = \"" + kind +
                                         "\" }\n" + budget);
    if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  }
  std::string path(const std::string& name) { return mounted_->path(name); }
  void expect_lost(int result, int error) {
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, error);
    const auto fired = mounted_->fired();
    ASSERT_EQ(fired.size(), 1u);
    EXPECT_EQ(fired[0].error, error);
  }
  static bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

  std::unique_ptr<Mounted> mounted_;
};

TEST_F(RacesTest, AnExclusiveCreateFindsTheNameMade) {
  race("create", "made");
  if (IsSkipped()) return;
  write_all(path("unnoticed"), "x");  // without O_EXCL nobody minds
  expect_lost(::open(path("f").c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644), EEXIST);
  EXPECT_TRUE(exists(mounted_->backing("f")));
  EXPECT_TRUE(exists(path("f")));
}

TEST_F(RacesTest, AFolderIsThereAlready) {
  race("mkdir", "made");
  if (IsSkipped()) return;
  expect_lost(::mkdir(path("d").c_str(), 0755), EEXIST);
  struct stat made {};
  ASSERT_EQ(::stat(path("d").c_str(), &made), 0);
  EXPECT_TRUE(S_ISDIR(made.st_mode));
}

TEST_F(RacesTest, ALinkFindsItsNameMade) {
  race("link", "made");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  expect_lost(::link(path("f").c_str(), path("l").c_str()), EEXIST);
  EXPECT_EQ(read_all(path("l")), "");
}

TEST_F(RacesTest, AFileIsGoneWhenItIsOpened) {
  race("open", "removed");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  expect_lost(::open(path("f").c_str(), O_RDONLY), ENOENT);
  EXPECT_FALSE(exists(path("f")));
}

TEST_F(RacesTest, AnOpenThatMayCreateMakesAnotherFile) {
  race("open", "removed");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  const int fd = ::open(path("f").c_str(), O_WRONLY | O_CREAT, 0644);
  EXPECT_GE(fd, 0) << errno;
  ::close(fd);
  EXPECT_EQ(read_all(path("f")), "");
}

TEST_F(RacesTest, AnUnlinkFindsNothing) {
  race("unlink", "removed");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  expect_lost(::unlink(path("f").c_str()), ENOENT);
  EXPECT_FALSE(exists(mounted_->backing("f")));
}

TEST_F(RacesTest, ARenamedFolderWasRemovedWithAllThatIsInIt) {
  race("rename", "removed");
  if (IsSkipped()) return;
  ASSERT_EQ(::mkdir(path("d").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(path("d/e").c_str(), 0755), 0);
  write_all(path("d/e/f"), "content");
  expect_lost(::rename(path("d").c_str(), path("final").c_str()), ENOENT);
  EXPECT_FALSE(exists(mounted_->backing("d")));
  EXPECT_FALSE(exists(path("d/e/f")));
}

// All ranks publish the same folder: the second finds that the first has done it.
TEST_F(RacesTest, ARenameWasDoneByAnother) {
  race("rename", "moved");
  if (IsSkipped()) return;
  ASSERT_EQ(::mkdir(path("tmp").c_str(), 0755), 0);
  write_all(path("tmp/f"), "content");
  expect_lost(::rename(path("tmp").c_str(), path("final").c_str()), ENOENT);
  EXPECT_EQ(read_all(path("final/f")), "content");
  EXPECT_FALSE(exists(path("tmp")));
}

TEST_F(RacesTest, WhatARacerRemovesGivesItsSpaceBack) {
  race("unlink", "removed", "[[budget]]\nlimit = \"64KiB\"\nrequired = false\n");
  if (IsSkipped()) return;
  write_all(path("f"), std::string(65'536, 'x'));
  while (mounted_->command(R"({"cmd":"statistics"})").find("\"release\":1") == std::string::npos) {
  }
  expect_lost(::unlink(path("f").c_str()), ENOENT);
  const int fd = ::open(path("g").c_str(), O_WRONLY | O_CREAT, 0644);
  EXPECT_EQ(::write(fd, "x", 1), 1);
  ::close(fd);
}

}  // namespace
}  // namespace savegate::fusefs
