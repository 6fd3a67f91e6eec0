// `savegate mount` and `ctl` by hand, and that nothing stays mounted whoever dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MountTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
    if (geteuid() != 0) GTEST_SKIP() << "mounting where the host sees it needs root";
    fs::create_directory(backing());
    fs::create_directory(mount());
  }
  std::string backing() const { return savegate_.folder() + "/backing"; }
  std::string mount() const { return savegate_.folder() + "/mount"; }
  Ran mount_in_background(const std::string& more = "") {
    return savegate_.run("mount " + backing() + " " + mount() + " --background " + more);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::string path = savegate_.folder() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string no_links() {
    return write("plan.toml",
                 "[[rule]]\nname = \"no links\"\nmatch = { op = \"symlink\" }\n"
                 "action = { errno = \"EPERM\" }\n");
  }
  bool is_mounted() const {
    std::ifstream mounts("/proc/self/mounts");
    for (std::string line; std::getline(mounts, line);)
      if (line.find(" " + mount() + " ") != std::string::npos) return true;
    return false;
  }
  // Ends when the kernel and the watcher have done their part; a defect makes it run into the
  // test's own time limit.
  void wait_until_unmounted() const {
    while (is_mounted() || !savegate_.processes().empty()) sched_yield();
  }

  SavegateProgram savegate_;
};

TEST_F(MountTest, FilesPassThroughAndStopUnmounts) {
  ASSERT_EQ(mount_in_background().status, 0);
  EXPECT_TRUE(is_mounted());
  std::ofstream(mount() + "/file") << "content";
  EXPECT_EQ(fs::file_size(backing() + "/file"), 7U);
  EXPECT_EQ(savegate_.run("ctl " + mount() + " stop").status, 0);
  wait_until_unmounted();
}

TEST_F(MountTest, ARuleIsArmedSeenFiringAndDisarmed) {
  ASSERT_EQ(mount_in_background().status, 0);
  const std::string plan = write("plan.toml",
                                 "[[rule]]\nname = \"no links\"\nmatch = { op = \"symlink\" }\n"
                                 "action = { errno = \"EPERM\" }\n");
  ASSERT_EQ(savegate_.run("ctl " + mount() + " arm " + plan).status, 0);
  const Ran refused = savegate_.shell("ln -s a " + mount() + "/link");
  EXPECT_THAT(refused.output, HasSubstr("not permitted"));
  EXPECT_THAT(savegate_.run("ctl " + mount() + " fired").output, HasSubstr("no links"));
  ASSERT_EQ(savegate_.run("ctl " + mount() + " disarm").status, 0);
  EXPECT_EQ(savegate_.shell("ln -s a " + mount() + "/link").status, 0);
  EXPECT_EQ(savegate_.run("ctl " + mount() + " stop").status, 0);
  wait_until_unmounted();
}

TEST_F(MountTest, APresetIsArmedAtOnce) {
  ASSERT_EQ(mount_in_background("--preset full-disk:limit=64KiB").status, 0);
  const Ran full = savegate_.shell("head -c 100000 /dev/zero > " + mount() + "/f");
  EXPECT_THAT(full.output, HasSubstr("No space left"));
  EXPECT_EQ(fs::file_size(backing() + "/f"), 65536U);
  EXPECT_EQ(savegate_.run("ctl " + mount() + " stop").status, 0);
  wait_until_unmounted();
}

TEST_F(MountTest, NothingStaysBesideTheSocketOnceItIsStopped) {
  const std::string socket = savegate_.folder() + "/control/socket";
  ASSERT_EQ(mount_in_background("--preset full-disk:limit=64KiB --control " + socket).status, 0);
  EXPECT_TRUE(fs::exists(socket + ".log"));
  EXPECT_EQ(savegate_.run("ctl " + socket + " stop").status, 0);
  wait_until_unmounted();
  EXPECT_TRUE(fs::is_empty(savegate_.folder() + "/control"));
}

TEST_F(MountTest, WhatIsHeldForTooLongAbortsTheMount) {
  const std::string plan =
      write("plan.toml", "[[rule]]\nmatch = { op = \"symlink\" }\naction = { hang = true }\n");
  ASSERT_EQ(mount_in_background("--hold-limit 0.2 --plan " + plan).status, 0);
  EXPECT_NE(savegate_.shell("ln -s a " + mount() + "/link").status, 0);
  wait_until_unmounted();
}

TEST_F(MountTest, AnUnknownPresetIsNamedAndNothingIsMounted) {
  const Ran ran = mount_in_background("--preset full-dsk");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("did you mean `full-disk`?"));
  EXPECT_FALSE(is_mounted());
}

// What is printed last is what fired last, however soon the mount ended after it.
TEST_F(MountTest, FollowPrintsRecordsUntilTheMountEnds) {
  const std::string plan = no_links();
  ASSERT_EQ(mount_in_background("--plan " + plan).status, 0);
  const std::string lines = savegate_.folder() + "/followed";
  const std::string fire = "ln -s a " + mount() + "/link; ";
  const std::string ctl = savegate_.bin() + "/savegate ctl " + mount();
  const Ran followed = savegate_.shell(
      fire + ctl + " fired --follow > " + lines + " & follower=$!; while [ ! -s " + lines +
      " ]; do :; done; " + fire + fire + fire + fire + ctl + " stop; wait $follower");
  EXPECT_EQ(followed.status, 0) << followed.output;
  EXPECT_EQ(savegate_.shell("grep -c 'no links' " + lines).output, "5\n");
  wait_until_unmounted();
}

TEST_F(MountTest, CtrlCEndsAFollowerBetweenTwoRecords) {
  const std::string plan = no_links();
  ASSERT_EQ(mount_in_background("--plan " + plan).status, 0);
  const std::string pipe = savegate_.folder() + "/pipe";
  // A shell lets what it starts in the background ignore Ctrl-C.
  const Ran followed =
      savegate_.shell("ln -s a " + mount() + "/link; mkfifo " + pipe +
                      "; env --default-signal=INT " + savegate_.bin() + "/savegate ctl " + mount() +
                      " fired --follow > " + pipe + " & follower=$!; read line < " + pipe +
                      "; kill -INT $follower; wait $follower; echo \"status $?: $line\"");
  EXPECT_THAT(followed.output, HasSubstr("status 130: {"));
  EXPECT_EQ(savegate_.run("ctl " + mount() + " status").status, 0);
  EXPECT_EQ(savegate_.run("ctl " + mount() + " stop").status, 0);
  wait_until_unmounted();
}

TEST_F(MountTest, TwoMountsHaveTheirOwnPlans) {
  const std::string plan = no_links();
  const std::string other = savegate_.folder() + "/other";
  fs::create_directory(other);
  ASSERT_EQ(mount_in_background("--plan " + plan).status, 0);
  ASSERT_EQ(savegate_.run("mount " + backing() + " " + other + " --background").status, 0);
  EXPECT_NE(savegate_.shell("ln -s a " + mount() + "/link").status, 0);
  EXPECT_EQ(savegate_.shell("ln -s a " + other + "/link").status, 0);
  EXPECT_THAT(savegate_.run("ctl " + mount() + " fired").output, HasSubstr("no links"));
  EXPECT_EQ(savegate_.run("ctl " + other + " fired").output, "");
  EXPECT_EQ(savegate_.run("ctl " + other + " stop").status, 0);
  EXPECT_TRUE(is_mounted());
  EXPECT_EQ(savegate_.run("ctl " + mount() + " stop").status, 0);
  wait_until_unmounted();
}

TEST_F(MountTest, AFolderOfSocketsThatOthersCouldWriteIsRefused) {
  const std::string runtime = savegate_.folder() + "/runtime";
  fs::create_directories(runtime + "/savegate");
  fs::permissions(runtime + "/savegate", fs::perms::all);
  for (const std::string& command :
       {"mount " + backing() + " " + mount() + " --background", "ctl " + mount() + " status"}) {
    const Ran ran = savegate_.shell("XDG_RUNTIME_DIR=" + runtime + " " + savegate_.bin() +
                                    "/savegate " + command);
    EXPECT_EQ(ran.status, 3) << ran.output;
    EXPECT_THAT(ran.output, HasSubstr("mode 0700"));
  }
  EXPECT_FALSE(is_mounted());
}

TEST_F(MountTest, AKilledDaemonLeavesNoMount) {
  ASSERT_EQ(mount_in_background().status, 0);
  ASSERT_EQ(savegate_.shell("pkill -KILL -f '[s]avegate-fs .*" + mount() + "'").status, 0);
  wait_until_unmounted();
}

TEST_F(MountTest, AKilledWatcherLeavesNoMount) {
  ASSERT_EQ(mount_in_background().status, 0);
  ASSERT_EQ(savegate_.shell("pkill -KILL -f '[s]avegate mount .*" + mount() + "'").status, 0);
  wait_until_unmounted();
}

TEST_F(MountTest, AMalformedPlanIsNamedAndNothingIsMounted) {
  const std::string plan =
      write("plan.toml", "[[rule]]\nmatch = { opp = \"write\" }\naction = { errno = \"EIO\" }\n");
  const Ran ran = mount_in_background("--plan " + plan);
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("plan.toml:2:"));
  EXPECT_THAT(ran.output, HasSubstr("`op`"));
  EXPECT_FALSE(is_mounted());
}

TEST_F(MountTest, AMissingBackingFolderExitsWithThree) {
  fs::remove(backing());
  const Ran ran = mount_in_background();
  EXPECT_EQ(ran.status, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr(backing()));
}

TEST_F(MountTest, CtlSaysWhenNothingIsMounted) {
  const Ran ran = savegate_.run("ctl " + mount() + " status");
  EXPECT_EQ(ran.status, 3);
  EXPECT_THAT(ran.output, HasSubstr("savegate mount"));
}

}  // namespace
}  // namespace savegate::cli
