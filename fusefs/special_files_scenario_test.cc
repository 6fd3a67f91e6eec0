// What is no regular file, and names and depths at the limits.
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <set>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

class SpecialFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
  }
  Mounted mounted_;
};

TEST_F(SpecialFilesTest, AFifoCarriesBytesBetweenProcesses) {
  const std::string path = mounted_.path("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  Child writer = Child::fork([&path] {
    const int fd = ::open(path.c_str(), O_WRONLY);
    return ::write(fd, "through", 7) == 7 ? 0 : 1;
  });
  const int fd = ::open(path.c_str(), O_RDONLY);
  std::array<char, 16> got{};
  EXPECT_EQ(::read(fd, got.data(), got.size()), 7);
  EXPECT_STREQ(got.data(), "through");
  ::close(fd);
  EXPECT_EQ(writer.wait(), 0);
}

TEST_F(SpecialFilesTest, AUnixSocketIsBoundMovedAndConnectedTo) {
  const auto address_of = [](const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return address;
  };
  const auto as_generic = [](const sockaddr_un& address) {
    return reinterpret_cast<const sockaddr*>(&address);
  };
  const sockaddr_un first = address_of(mounted_.path("s"));
  const sockaddr_un second = address_of(mounted_.path("t"));
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(listener, as_generic(first), sizeof first), 0) << errno;
  ASSERT_EQ(::listen(listener, 1), 0);
  ASSERT_EQ(::rename(first.sun_path, second.sun_path), 0);
  const int client = ::socket(AF_UNIX, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(client, as_generic(second), sizeof second), 0) << errno;
  EXPECT_EQ(::open(second.sun_path, O_RDWR), -1);
  EXPECT_EQ(errno, ENXIO);
  ::close(client);
  ::close(listener);
}

TEST_F(SpecialFilesTest, AnUnnamedTemporaryFileIsRefusedSoThatCallersFallBack) {
  EXPECT_EQ(::open(mounted_.path().c_str(), O_TMPFILE | O_RDWR, 0600), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(SpecialFilesTest, NamesAreBytesUpToTheirLongest) {
  for (const std::string& name : {std::string(255, 'n'), std::string("\xff\xfe\x80"),
                                  std::string("line\nbreak"), std::string("\"quote\\")}) {
    write_all(mounted_.path(name), "x");
    EXPECT_EQ(read_all(mounted_.backing(name)), "x");
  }
  EXPECT_EQ(::mkdir(mounted_.path(std::string(256, 'n')).c_str(), 0755), -1);
  EXPECT_EQ(errno, ENAMETOOLONG);
}

TEST_F(SpecialFilesTest, TheTraceNamesAFileThreeHundredDirectoriesDeepInFull) {
  std::string path;
  int folder = ::open(mounted_.path().c_str(), O_RDONLY | O_DIRECTORY);
  for (int i = 0; i < 300; i++) {
    const std::string name = fmt::format("d{}", i);
    ASSERT_EQ(::mkdirat(folder, name.c_str(), 0755), 0) << errno;
    const int below = ::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY);
    ::close(folder);
    folder = below;
    path += name + '/';
  }
  const int fd = ::openat(folder, "file", O_WRONLY | O_CREAT, 0644);
  EXPECT_EQ(::write(fd, "x", 1), 1);
  ::close(fd);
  ::close(folder);
  const auto trace = mounted_.trace();
  const auto written = std::find_if(trace.begin(), trace.end(), [](const auto& record) {
    return record.op == faults::Op::kWrite;
  });
  ASSERT_NE(written, trace.end());
  EXPECT_EQ(written->path, path + "file");
}

TEST_F(SpecialFilesTest, ReadingADirectoryMeetsEachNameOnceWhileOthersComeAndGo) {
  constexpr int kNames = 2'000;
  for (int i = 0; i < kNames; i++) write_all(mounted_.path(fmt::format("old{}", i)), "");
  DIR* directory = ::opendir(mounted_.path().c_str());
  std::set<std::string> seen;
  std::size_t old = 0;
  for (int i = 0; const dirent* entry = ::readdir(directory); i++) {
    const std::string name = entry->d_name;
    EXPECT_TRUE(seen.insert(name).second) << name;
    if (!name.starts_with("old")) continue;
    old++;
    if (i % 3 != 0) continue;
    EXPECT_EQ(::unlink(mounted_.path(name).c_str()), 0);
    write_all(mounted_.path(fmt::format("new{}", i)), "");
  }
  ::closedir(directory);
  EXPECT_EQ(old, static_cast<std::size_t>(kNames));
}

}  // namespace
}  // namespace savegate::fusefs
