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

TEST_F(MountTest, AnUnknownPresetIsNamedAndNothingIsMounted) {
  const Ran ran = mount_in_background("--preset full-dsk");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("did you mean `full-disk`?"));
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
