// Rank 1 is behind: what it sees is what was there, and the others see what is there.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

class ViewsTest : public testing::Test {
 protected:
  // Without a window, so that nothing depends on time; release() ends it.
  void stale(const std::string& aspects, const std::string& more = "") {
    mounted_ = std::make_unique<Mounted>(
        "[[rule]]\nname = \"r\"\nmatch = { rank = 1 }\n"
        "action = { stale = " +
        aspects + more + " }\n");
    if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  }
  std::string path(const std::string& name) { return mounted_->path(name); }
  // What rank 1's shell prints; it works in the mount.
  std::string rank1(const std::string& command) {
    const std::string out = testing::TempDir() + "views-" + std::to_string(::getpid());
    Child child =
        Child::shell(1, "cd " + mounted_->path() + " && { " + command + "; } > " + out + " 2>&1");
    child.wait();
    std::string text = read_all(out);
    std::filesystem::remove(out);
    return text;
  }
  void release() {
    EXPECT_NE(mounted_->command(R"({"cmd":"release","rule":"r"})").find("\"released\":1"),
              std::string::npos);
  }
  void expect_fired(bool yes = true) { EXPECT_EQ(!mounted_->fired().empty(), yes); }

  std::unique_ptr<Mounted> mounted_;
};

TEST_F(ViewsTest, ANewNameIsSeenLate) {
  stale("\"name\"");
  if (IsSkipped()) return;
  write_all(path("marker"), "done");
  EXPECT_EQ(read_all(path("marker")), "done");
  EXPECT_EQ(rank1("test -e marker || echo none"), "none\n");
  EXPECT_EQ(mounted_->fired().at(0).error, ENOENT);
  release();
  EXPECT_EQ(rank1("cat marker"), "done");
}

// mkdir says EEXIST while stat says ENOENT.
TEST_F(ViewsTest, AFolderThatIsNotSeenCannotBeMadeAgain) {
  stale("\"name\"");
  if (IsSkipped()) return;
  ASSERT_EQ(::mkdir(path("step_1").c_str(), 0755), 0);
  const std::string said = rank1("test -d step_1 || mkdir step_1");
  EXPECT_NE(said.find("File exists"), std::string::npos) << said;
}

TEST_F(ViewsTest, ARemovedFileIsStillThereWithItsBytes) {
  stale("\"name\"");
  if (IsSkipped()) return;
  write_all(mounted_->backing("old"), "old bytes");
  ASSERT_EQ(::unlink(path("old").c_str()), 0);
  EXPECT_EQ(::access(path("old").c_str(), F_OK), -1);
  EXPECT_EQ(rank1("cat old"), "old bytes");
  release();
  EXPECT_NE(rank1("cat old").find("No such file"), std::string::npos);
}

TEST_F(ViewsTest, AReplacedPointerIsReadAsItWas) {
  stale("\"name\"");
  if (IsSkipped()) return;
  write_all(mounted_->backing("latest"), "step 1");
  write_all(path("latest.tmp"), "step 2");
  ASSERT_EQ(::rename(path("latest.tmp").c_str(), path("latest").c_str()), 0);
  EXPECT_EQ(read_all(path("latest")), "step 2");
  EXPECT_EQ(rank1("cat latest"), "step 1");
  release();
  EXPECT_EQ(rank1("cat latest"), "step 2");
}

TEST_F(ViewsTest, ARenamedFolderIsSeenUnderItsOldName) {
  stale("\"name\"");
  if (IsSkipped()) return;
  std::filesystem::create_directory(mounted_->backing("tmp"));
  write_all(mounted_->backing("tmp/f"), "content");
  ASSERT_EQ(::rename(path("tmp").c_str(), path("final").c_str()), 0);
  EXPECT_EQ(rank1("cat tmp/f; test -e final || echo none"), "contentnone\n");
  EXPECT_EQ(read_all(path("final/f")), "content");
}

TEST_F(ViewsTest, ARankSeesItsOwnChangesAtOnce) {
  stale("[\"name\", \"size\", \"listing\", \"attributes\"]");
  if (IsSkipped()) return;
  EXPECT_EQ(rank1("echo mine > f; cat f; mv f g; ls; chmod 600 g; stat -c %a:%s g; rm g; ls"),
            "mine\ng\n600:5\n");
  expect_fired(false);
}

TEST_F(ViewsTest, SizeAndTimeAreAsTheyWereAndReadsEndThere) {
  stale("\"size\"");
  if (IsSkipped()) return;
  write_all(mounted_->backing("log"), "four");
  struct stat before {};
  ASSERT_EQ(::stat(path("log").c_str(), &before), 0);
  const std::array<timespec, 2> times = {timespec{1000, 0}, timespec{1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, mounted_->backing("log").c_str(), times.data(), 0), 0);
  // Opened before the change: close-to-open shows it to whoever opens the file after it.
  Child reader = Child::shell(1, "cd " + mounted_->path() +
                                     " && exec 3< log && read -r line < go; cat <&3 > " +
                                     mounted_->backing("read"));
  ASSERT_EQ(::mkfifo(mounted_->backing("go").c_str(), 0600), 0);
  const int go = ::open(path("go").c_str(), O_WRONLY);
  const int fd = ::open(path("log").c_str(), O_WRONLY);
  ASSERT_EQ(::pwrite(fd, "and more", 8, 4), 8);
  ::close(fd);
  EXPECT_EQ(rank1("stat -c '%s %Y' log"), "4 1000\n");
  struct stat now {};
  ASSERT_EQ(::stat(path("log").c_str(), &now), 0);
  EXPECT_EQ(now.st_size, 12);
  ASSERT_EQ(::write(go, "\n", 1), 1);
  ::close(go);
  EXPECT_EQ(reader.wait(), 0);
  EXPECT_EQ(read_all(mounted_->backing("read")), "four");
  expect_fired();
}

TEST_F(ViewsTest, OpeningAFileShowsItsSize) {
  stale("[\"size\", \"attributes\"]");
  if (IsSkipped()) return;
  write_all(mounted_->backing("log"), "four");
  write_all(path("log"), "longer than four");
  EXPECT_EQ(rank1("stat -c %s log; cat log; echo; stat -c %s log"), "4\nlonger than four\n16\n");
}

TEST_F(ViewsTest, ModesAreSeenLate) {
  stale("\"attributes\"");
  if (IsSkipped()) return;
  write_all(mounted_->backing("f"), "content");
  ASSERT_EQ(::chmod(mounted_->backing("f").c_str(), 0644), 0);
  ASSERT_EQ(::chmod(path("f").c_str(), 0600), 0);
  EXPECT_EQ(rank1("stat -c %a f"), "644\n");
  release();
  EXPECT_EQ(rank1("stat -c %a f"), "600\n");
}

TEST_F(ViewsTest, AListingIsAsItWas) {
  stale("\"listing\"");
  if (IsSkipped()) return;
  write_all(mounted_->backing("stays"), "");
  write_all(mounted_->backing("goes"), "");
  write_all(path("comes"), "");
  ASSERT_EQ(::unlink(path("goes").c_str()), 0);
  EXPECT_EQ(rank1("ls | sort"), "goes\nstays\n");
  EXPECT_EQ(rank1("cat comes && echo found"), "found\n") << "names are not stale";
  expect_fired();
  release();
  EXPECT_EQ(rank1("ls | sort"), "comes\nstays\n");
}

TEST_F(ViewsTest, ALongListingIsAsItWasToItsEnd) {
  stale("\"listing\"");
  if (IsSkipped()) return;
  for (int i = 0; i < 1000; i++) write_all(mounted_->backing("old-" + std::to_string(i)), "");
  for (int i = 0; i < 1000; i++) write_all(path("new-" + std::to_string(i)), "");
  for (int i = 0; i < 500; i++) ::unlink(path("old-" + std::to_string(i)).c_str());
  EXPECT_EQ(rank1("ls | sort -u | wc -l; ls | grep -c old"), "1000\n1000\n");
}

TEST_F(ViewsTest, ANameThatWasMissedIsMissedOn) {
  stale("\"negative\"");
  if (IsSkipped()) return;
  EXPECT_EQ(rank1("test -e asked || echo none"), "none\n");
  expect_fired(false);
  write_all(path("asked"), "x");
  write_all(path("unasked"), "x");
  EXPECT_EQ(rank1("test -e asked || echo none; test -e unasked && echo there"), "none\nthere\n");
  expect_fired();
  release();
  EXPECT_EQ(rank1("test -e asked && echo there"), "there\n");
}

TEST_F(ViewsTest, ANameThatTheRankMadeItselfIsNotMissed) {
  stale("\"negative\"");
  if (IsSkipped()) return;
  EXPECT_EQ(rank1("test -e f || echo none > f"), "");
  write_all(path("f.tmp"), "another's");
  ASSERT_EQ(::rename(path("f.tmp").c_str(), path("f").c_str()), 0);
  EXPECT_EQ(rank1("cat f"), "another's");
}

TEST_F(ViewsTest, WhatWasHiddenShowsWhenItsTimeIsOver) {
  stale("\"name\"", ", for = \"300ms\"");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  EXPECT_EQ(rank1("until cat f 2>/dev/null; do :; done"), "content");
  expect_fired();
}

TEST_F(ViewsTest, AViewIsOfTheFilesThatTheRuleNamesAlone) {
  mounted_ = std::make_unique<Mounted>(
      "[[rule]]\nmatch = { rank = 1, path = \"latest\" }\naction = { stale = \"name\" }\n");
  if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  write_all(path("latest"), "x");
  write_all(path("other"), "x");
  EXPECT_EQ(rank1("test -e latest || echo none; test -e other && echo there"), "none\nthere\n");
}

}  // namespace
}  // namespace savegate::fusefs
