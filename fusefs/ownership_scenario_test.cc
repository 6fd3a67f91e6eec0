// Files of other users: whose they are, and what keeps or loses its set-ID bits.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

constexpr uid_t kUser = 1234;
constexpr gid_t kGroup = 4321;

class OwnershipTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
    ::chmod(mounted_.backing().c_str(), 0777);
  }
  // Exit status of `body` in a process of another user.
  static int as_user(const std::function<int()>& body) {
    Child user = Child::fork([&body] {
      if (::setgid(kGroup) != 0 || ::setuid(kUser) != 0) return 250;
      ::umask(0);
      return body();
    });
    return WEXITSTATUS(user.wait());
  }
  struct stat attributes(const std::string& name) const {
    struct stat found {};
    EXPECT_EQ(::stat(mounted_.path(name).c_str(), &found), 0) << name << ": " << errno;
    return found;
  }
  std::string root_file(const std::string& name, mode_t mode) const {
    write_all(mounted_.path(name), "0123456789");
    ::chmod(mounted_.path(name).c_str(), mode);
    return mounted_.path(name);
  }
  mode_t mode(const std::string& name) const { return attributes(name).st_mode & 07777; }

  Mounted mounted_;
};

TEST_F(OwnershipTest, WhatAnotherUserMakesIsHisOwn) {
  EXPECT_EQ(as_user([this] {
              ::umask(022);
              return ::mkdir(mounted_.path("his").c_str(), 0777);
            }),
            0);
  const struct stat made = attributes("his");
  EXPECT_EQ(made.st_uid, kUser);
  EXPECT_EQ(made.st_gid, kGroup);
  EXPECT_EQ(made.st_mode & 0777, 0755u);
}

TEST_F(OwnershipTest, WhatIsMadeWithSetIdBitsKeepsThem) {
  EXPECT_EQ(as_user([this] {
              const int fd = ::open(mounted_.path("file").c_str(), O_RDWR | O_CREAT, 06755);
              return fd >= 0 && ::mkfifo(mounted_.path("fifo").c_str(), 06755) == 0 ? 0 : errno;
            }),
            0);
  EXPECT_EQ(mode("file"), 06755u);
  EXPECT_EQ(mode("fifo"), 06755u);
  EXPECT_EQ(attributes("file").st_uid, kUser);
}

TEST_F(OwnershipTest, EachKindOfWriteByAnotherUserDropsSetIdBits) {
  const auto opened = [](const std::string& path, int flags, const std::function<bool(int)>& act) {
    const int fd = ::open(path.c_str(), flags);
    const bool done = fd >= 0 && act(fd);
    return done ? 0 : errno;
  };
  struct Case {
    const char* name;
    std::function<int(const std::string&)> act;
  };
  const std::string source = root_file("source", 0644);
  const std::vector<Case> cases = {
      {"write",
       [&](auto& path) {
         return opened(path, O_WRONLY, [](int fd) { return ::write(fd, "x", 1) == 1; });
       }},
      {"append",
       [&](auto& path) {
         return opened(path, O_WRONLY | O_APPEND, [](int fd) { return ::write(fd, "x", 1) == 1; });
       }},
      {"truncate", [&](auto& path) { return ::truncate(path.c_str(), 3) == 0 ? 0 : errno; }},
      {"open with O_TRUNC",
       [&](auto& path) { return opened(path, O_WRONLY | O_TRUNC, [](int) { return true; }); }},
      {"fallocate",
       [&](auto& path) {
         return opened(path, O_WRONLY, [](int fd) { return ::fallocate(fd, 0, 0, 99) == 0; });
       }},
      {"copy_file_range",
       [&](auto& path) {
         const int from = ::open(source.c_str(), O_RDONLY);
         return opened(path, O_WRONLY, [from](int fd) {
           return ::copy_file_range(from, nullptr, fd, nullptr, 5, 0) == 5;
         });
       }},
  };
  for (const Case& write : cases) {
    const std::string path = root_file(write.name, 06777);
    EXPECT_EQ(as_user([&] { return write.act(path); }), 0) << write.name;
    EXPECT_EQ(mode(write.name), 0777u) << write.name;
  }
}

TEST_F(OwnershipTest, RootsWritesKeepSetIdBitsAsTheKernelDoes) {
  const int fd = ::open(root_file("file", 06777).c_str(), O_WRONLY);
  EXPECT_EQ(::write(fd, "x", 1), 1);
  ::close(fd);
  EXPECT_EQ(mode("file"), 06777u);
}

TEST_F(OwnershipTest, AnotherUserIsHeldToTheModeBits) {
  const std::string path = root_file("private", 0600);
  EXPECT_EQ(as_user([&] { return ::open(path.c_str(), O_RDONLY) < 0 ? errno : 0; }), EACCES);
  EXPECT_EQ(as_user([&] { return ::chmod(path.c_str(), 0777) < 0 ? errno : 0; }), EPERM);
  EXPECT_EQ(as_user([&] { return ::truncate(path.c_str(), 0) < 0 ? errno : 0; }), EACCES);
}

}  // namespace
}  // namespace savegate::fusefs
