// Starting and ending: what is left behind, and what is said when it cannot start.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "fusefs/mount.h"
#include "fusefs/options.h"
#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

bool is_mounted(const std::string& path) {
  const std::string point = path.substr(0, path.find_last_not_of('/') + 1);
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find(" " + point + " ") != std::string::npos) return true;
  }
  return false;
}

class LifecycleTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
  }
  Mounted mounted_;
};

TEST_F(LifecycleTest, TermUnmountsAndEndsWithSuccess) {
  EXPECT_TRUE(is_mounted(mounted_.path()));
  mounted_.daemon().kill(SIGTERM);
  EXPECT_EQ(mounted_.daemon().wait(), 0);
  EXPECT_FALSE(is_mounted(mounted_.path()));
  EXPECT_FALSE(std::filesystem::exists(mounted_.control_path()));
}

TEST_F(LifecycleTest, TheStopCommandUnmounts) {
  EXPECT_EQ(mounted_.command(R"({"cmd":"stop"})"), R"({"ok":true})");
  EXPECT_EQ(mounted_.daemon().wait(), 0);
  EXPECT_FALSE(is_mounted(mounted_.path()));
}

TEST_F(LifecycleTest, AnOpenFileDoesNotKeepTheMount) {
  const int fd = ::open(mounted_.path("file").c_str(), O_RDWR | O_CREAT, 0644);
  mounted_.daemon().kill(SIGINT);
  EXPECT_EQ(mounted_.daemon().wait(), 0);
  EXPECT_FALSE(is_mounted(mounted_.path()));
  EXPECT_EQ(::pwrite(fd, "x", 1, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
  ::close(fd);
}

TEST_F(LifecycleTest, UnmountingFromOutsideEndsTheDaemon) {
  ASSERT_EQ(::umount2(mounted_.path().c_str(), MNT_DETACH), 0);
  EXPECT_EQ(mounted_.daemon().wait(), 0);
}

TEST_F(LifecycleTest, ADaemonThatIsKilledLeavesEnotconnAndASecondOneSaysTheWayOut) {
  mounted_.daemon().kill(SIGKILL);
  mounted_.daemon().wait();
  EXPECT_EQ(::open(mounted_.path("file").c_str(), O_RDWR | O_CREAT, 0644), -1);
  EXPECT_EQ(errno, ENOTCONN);
  Child second = Child::fork([this] {
    auto ended = run_daemon({.backing = mounted_.backing(),
                             .mount = mounted_.path(),
                             .control = mounted_.control_path()});
    if (ended) return 1;
    const std::string text = ended.error().to_string();
    const bool clear = text.find("ENOTCONN") != std::string::npos &&
                       text.find("umount -l") != std::string::npos &&
                       ended.error().code == Code::kUnavailable;
    return clear ? 0 : 2;
  });
  EXPECT_EQ(WEXITSTATUS(second.wait()), 0);
}

TEST_F(LifecycleTest, AHeldCallerOfADaemonThatIsKilledGoesOn) {
  mounted_.command(
      R"({"cmd":"arm","plan":"[[rule]]\nmatch = { op = \"write\" }\naction = { hang = true }\n"})");
  Child held = Child::fork([this] {
    const int fd = ::open(mounted_.path("file").c_str(), O_WRONLY | O_CREAT, 0644);
    if (::write(fd, "x", 1) != -1 || errno != ECONNABORTED) return 1;
    return ::write(fd, "x", 1) == -1 && errno == ENOTCONN ? 0 : 2;
  });
  ASSERT_TRUE(mounted_.wait_held(1));
  mounted_.daemon().kill(SIGKILL);
  const auto status = held.wait_for(10'000);
  ASSERT_TRUE(status) << "still held";
  EXPECT_EQ(WEXITSTATUS(*status), 0);
}

TEST_F(LifecycleTest, AMissingBackingDirectoryIsAClearError) {
  Child daemon = Child::fork([this] {
    auto ended = run_daemon({.backing = mounted_.backing("nothing"),
                             .mount = mounted_.path(),
                             .control = mounted_.control_path()});
    return !ended && ended.error().to_string().find("must exist") != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(WEXITSTATUS(daemon.wait()), 0);
}

TEST_F(LifecycleTest, ADevFuseThatIsSomethingElseIsAClearError) {
  Child other = Child::fork([this] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("/dev/null", "/dev/fuse", nullptr, MS_BIND, nullptr) != 0) {
      return 1;
    }
    const auto fd = mount_fuse(mounted_.path(), "x");
    if (fd || fd.error().code != Code::kUnavailable) return 2;
    return fd.error().to_string().find("no FUSE device") != std::string::npos ? 0 : 3;
  });
  EXPECT_EQ(WEXITSTATUS(other.wait()), 0);
}

TEST_F(LifecycleTest, TheControlSocketIsItsOwnersAlone) {
  struct stat attributes {};
  ASSERT_EQ(::stat(mounted_.control_path().c_str(), &attributes), 0);
  EXPECT_EQ(attributes.st_mode & 0777, 0600u);
}

TEST_F(LifecycleTest, GarbageOnTheControlSocketIsRefusedAndQuotedInPart) {
  auto client = ControlClient::connect(mounted_.control_path());
  ASSERT_TRUE(client);
  for (const std::string& line :
       {std::string("\xff\xfe garbage"), std::string(100'000, '['), std::string(10 << 20, 'x'),
        std::string(R"({"cmd":"arm"})"),
        std::string(R"({"cmd":"mark","kind":"enter","rank":4294967297})")}) {
    const auto reply = client->call(line);
    ASSERT_FALSE(reply) << line.substr(0, 100);
    EXPECT_LT(reply.error().to_string().size(), 1'000u);
  }
}

TEST_F(LifecycleTest, AnUnknownCommandIsRefused) {
  auto client = ControlClient::connect(mounted_.control_path());
  ASSERT_TRUE(client);
  EXPECT_FALSE(client->call(R"({"cmd":"nonsense"})"));
  EXPECT_FALSE(client->call("no json"));
  EXPECT_TRUE(client->call(R"({"cmd":"status"})"));
}

// The parent is a process of its own, so that its death is not the test's.
TEST(ParentTest, TheMountEndsWithItsParent) {
  if (auto why_not = enter_private_namespace(); !why_not.empty()) GTEST_SKIP() << why_not;
  std::string top = testing::TempDir() + "parentXXXXXX";
  ASSERT_NE(::mkdtemp(top.data()), nullptr);
  std::filesystem::create_directory(top + "/backing");
  std::filesystem::create_directory(top + "/mount");
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  Child parent = Child::fork([] { return ::pause(); });
  Child daemon = Child::fork([&] {
    return run_daemon({.backing = top + "/backing",
                       .mount = top + "/mount",
                       .control = top + "/control",
                       .ready_fd = ready[1],
                       .parent_pid = parent.pid()})
               ? 0
               : 1;
  });
  std::array<char, 6> word{};
  ASSERT_EQ(::read(ready[0], word.data(), word.size()), 6);
  EXPECT_TRUE(is_mounted(top + "/mount"));
  parent.kill(SIGKILL);
  EXPECT_EQ(daemon.wait_for(5000), 0);
  EXPECT_FALSE(is_mounted(top + "/mount"));
  std::filesystem::remove_all(top);
}

}  // namespace
}  // namespace savegate::fusefs
