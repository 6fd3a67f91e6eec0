// What a mount cannot do, and times that it tells wrongly, as a program meets them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

class FeaturesTest : public testing::Test {
 protected:
  void missing(const std::string& feature) {
    mount("", "missing = \"" + feature + "\"");
    if (IsSkipped()) return;
    write_all(path("f"), "content");
    write_all(path("g"), "other");
  }
  void mount(const std::string& match, const std::string& action) {
    mounted_ = std::make_unique<Mounted>("[[rule]]\nname = \"r\"\nmatch = { " + match +
                                         " }\naction = { " + action + " }\n");
    if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  }
  std::string path(const std::string& name) { return mounted_->path(name); }
  // The last operation failed so, and the rule says so.
  void expect_refused(int result, int error) {
    EXPECT_EQ(result, -1);
    EXPECT_EQ(errno, error);
    const auto fired = mounted_->fired();
    ASSERT_FALSE(fired.empty());
    EXPECT_EQ(fired.back().error, error);
  }

  std::unique_ptr<Mounted> mounted_;
};

TEST_F(FeaturesTest, NoRename) {
  missing("rename");
  if (IsSkipped()) return;
  expect_refused(::rename(path("f").c_str(), path("new").c_str()), ENOSYS);
  expect_refused(
      ::renameat2(AT_FDCWD, path("f").c_str(), AT_FDCWD, path("new").c_str(), RENAME_NOREPLACE),
      EINVAL);
  EXPECT_EQ(read_all(path("f")), "content");
}

TEST_F(FeaturesTest, NoRenameOverAnExistingName) {
  missing("rename-over");
  if (IsSkipped()) return;
  EXPECT_EQ(::rename(path("f").c_str(), path("new").c_str()), 0);
  expect_refused(::rename(path("new").c_str(), path("g").c_str()), EEXIST);
  EXPECT_EQ(read_all(path("g")), "other");
}

TEST_F(FeaturesTest, NoModesAndOwners) {
  mount("", "missing = [\"chmod\", \"chown\"]");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  expect_refused(::chmod(path("f").c_str(), 0600), EPERM);
  expect_refused(::chown(path("f").c_str(), 1, 1), EPERM);
}

TEST_F(FeaturesTest, NoLinks) {
  mount("", "missing = [\"hard-link\", \"symlink\"]");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  expect_refused(::link(path("f").c_str(), path("l").c_str()), EPERM);
  expect_refused(::symlink("f", path("l").c_str()), EPERM);
}

TEST_F(FeaturesTest, NoExtendedAttributes) {
  missing("xattr");
  if (IsSkipped()) return;
  expect_refused(::setxattr(path("f").c_str(), "user.a", "1", 1, 0), EOPNOTSUPP);
  std::array<char, 8> value{};
  EXPECT_EQ(::getxattr(path("f").c_str(), "user.a", value.data(), value.size()), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(FeaturesTest, NoDirectIo) {
  missing("direct-io");
  if (IsSkipped()) return;
  expect_refused(::open(path("f").c_str(), O_RDWR | O_DIRECT), EINVAL);
  expect_refused(::open(path("new").c_str(), O_RDWR | O_CREAT | O_DIRECT, 0644), EINVAL);
  const int fd = ::open(path("f").c_str(), O_RDWR);
  EXPECT_GE(fd, 0);
  ::close(fd);
}

TEST_F(FeaturesTest, NoSharedMmap) {
  mount("path = \"f\"", "missing = \"mmap\"");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  write_all(path("g"), "other");
  const int fd = ::open(path("f").c_str(), O_RDWR);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0), MAP_FAILED);
  EXPECT_EQ(errno, ENODEV);
  void* own = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
  EXPECT_NE(own, MAP_FAILED);
  ::munmap(own, 4096);
  ::close(fd);
  const int other = ::open(path("g").c_str(), O_RDONLY);
  void* shared = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, other, 0);
  EXPECT_NE(shared, MAP_FAILED) << "of another file";
  ::munmap(shared, 4096);
  ::close(other);
  EXPECT_FALSE(mounted_->fired().empty());
}

TEST_F(FeaturesTest, MmapCannotGoMissingLater) {
  mounted_ = std::make_unique<Mounted>("", "", Mounted::Trace::kNo);
  if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
  write_all(path("f"), "content");
  auto client = ControlClient::connect(mounted_->control_path());
  ASSERT_TRUE(client);
  auto reply =
      client->call(R"({"cmd":"arm","plan":"[[rule]]\naction = { missing = \"mmap\" }\n"})");
  ASSERT_FALSE(reply);
  EXPECT_NE(reply.error().text.find("start it with the plan"), std::string::npos);
}

TEST_F(FeaturesTest, NoFsyncOnDirectories) {
  missing("fsyncdir");
  if (IsSkipped()) return;
  const int fd = ::open(mounted_->path().c_str(), O_RDONLY | O_DIRECTORY);
  expect_refused(::fsync(fd), EINVAL);
  ::close(fd);
}

TEST_F(FeaturesTest, NoFallocate) {
  missing("fallocate");
  if (IsSkipped()) return;
  const int fd = ::open(path("f").c_str(), O_RDWR);
  expect_refused(::fallocate(fd, 0, 0, 4096), EOPNOTSUPP);
  ::close(fd);
}

TEST_F(FeaturesTest, AFeatureIsMissedByTheFilesAndRanksThatARuleMatches) {
  mount("rank = 1", "missing = \"chmod\"");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  EXPECT_EQ(::chmod(path("f").c_str(), 0600), 0);
  Child rank = Child::shell(1, "chmod 644 " + path("f"));
  EXPECT_NE(rank.wait(), 0);
  EXPECT_EQ(mounted_->fired().size(), 1u);
}

TEST_F(FeaturesTest, TimesAreSkewedAndCoarse) {
  mount("path = \"f\"", "timestamps = { skew = \"-1h\", granularity = \"10s\" }");
  if (IsSkipped()) return;
  write_all(path("f"), "content");
  const std::array<timespec, 2> times = {timespec{10'007, 5}, timespec{10'007, 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("f").c_str(), times.data(), 0), 0);
  struct stat shown {};
  ASSERT_EQ(::stat(path("f").c_str(), &shown), 0);
  EXPECT_EQ(shown.st_mtim.tv_sec, 6'400);
  EXPECT_EQ(shown.st_mtim.tv_nsec, 0);
  struct stat real {};
  ASSERT_EQ(::stat(mounted_->backing("f").c_str(), &real), 0);
  EXPECT_EQ(real.st_mtim.tv_sec, 10'007);
  EXPECT_EQ(mounted_->fired().back().action, "timestamps skew -1h granularity 10s");
}

}  // namespace
}  // namespace savegate::fusefs
