// Without rules the mount is the directory below it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

enum class Way : std::uint8_t { kPassthrough, kDaemon, kTraced };

std::vector<std::string> arguments(Way way) {
  if (way == Way::kDaemon) return {"--no-passthrough"};
  return {};
}

// However the kernel reaches the files.
class PassthroughTest : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
  }
  Mounted mounted_{"", "", GetParam() == Way::kTraced ? Mounted::Trace::kYes : Mounted::Trace::kNo,
                   arguments(GetParam())};
};

std::string name_of(const testing::TestParamInfo<Way>& way) {
  switch (way.param) {
    case Way::kPassthrough:
      return "passthrough";
    case Way::kDaemon:
      return "daemon";
    default:
      return "traced";
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, PassthroughTest,
                         testing::Values(Way::kPassthrough, Way::kDaemon, Way::kTraced), name_of);

// What has nothing to do with how files are read and written.
class MountedTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
  }
  Mounted mounted_;
};

TEST_P(PassthroughTest, BytesWrittenAreInTheBackingFile) {
  const std::string bytes(3'500'001, 'q');
  write_all(mounted_.path("file"), bytes);
  EXPECT_EQ(read_all(mounted_.backing("file")), bytes);
  EXPECT_EQ(read_all(mounted_.path("file")), bytes);
}

TEST_P(PassthroughTest, AnUnlinkedOpenFileStaysUsable) {
  const int fd = ::open(mounted_.path("file").c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::unlink(mounted_.path("file").c_str()), 0);
  EXPECT_EQ(::pwrite(fd, "abc", 3, 0), 3);
  std::array<char, 3> back{};
  EXPECT_EQ(::pread(fd, back.data(), 3, 0), 3);
  struct stat attributes {};
  EXPECT_EQ(::fstat(fd, &attributes), 0);
  EXPECT_EQ(attributes.st_nlink, 0u);
  EXPECT_EQ(attributes.st_size, 3);
  EXPECT_EQ(::ftruncate(fd, 1), 0);
  ::close(fd);
  EXPECT_TRUE(std::filesystem::is_empty(mounted_.backing()));
}

TEST_P(PassthroughTest, RenameOverReplacesAndKeepsTheOpenVictim) {
  write_all(mounted_.path("old"), "old");
  write_all(mounted_.path("new"), "new");
  const int victim = ::open(mounted_.path("old").c_str(), O_RDONLY);
  ASSERT_EQ(::rename(mounted_.path("new").c_str(), mounted_.path("old").c_str()), 0);
  EXPECT_EQ(read_all(mounted_.path("old")), "new");
  std::array<char, 3> back{};
  EXPECT_EQ(::read(victim, back.data(), 3), 3);
  EXPECT_EQ(std::string(back.data(), 3), "old");
  ::close(victim);
}

TEST_F(MountedTest, RenameFlagsArePassedOn) {
  write_all(mounted_.path("a"), "a");
  write_all(mounted_.path("b"), "b");
  EXPECT_EQ(::renameat2(AT_FDCWD, mounted_.path("a").c_str(), AT_FDCWD, mounted_.path("b").c_str(),
                        RENAME_NOREPLACE),
            -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(::renameat2(AT_FDCWD, mounted_.path("a").c_str(), AT_FDCWD, mounted_.path("b").c_str(),
                        RENAME_EXCHANGE),
            0);
  EXPECT_EQ(read_all(mounted_.path("a")), "b");
  EXPECT_EQ(read_all(mounted_.path("b")), "a");
}

TEST_P(PassthroughTest, HardLinksAreOneFile) {
  write_all(mounted_.path("a"), "one");
  ASSERT_EQ(::link(mounted_.path("a").c_str(), mounted_.path("b").c_str()), 0);
  struct stat first {};
  struct stat second {};
  ::stat(mounted_.path("a").c_str(), &first);
  ::stat(mounted_.path("b").c_str(), &second);
  EXPECT_EQ(first.st_ino, second.st_ino);
  EXPECT_EQ(second.st_nlink, 2u);
  write_all(mounted_.path("b"), "two");
  EXPECT_EQ(read_all(mounted_.path("a")), "two");
  ::unlink(mounted_.path("a").c_str());
  EXPECT_EQ(read_all(mounted_.path("b")), "two");
}

TEST_P(PassthroughTest, SharedMappingsWriteAndRead) {
  const int fd = ::open(mounted_.path("map").c_str(), O_RDWR | O_CREAT, 0644);
  ASSERT_EQ(::ftruncate(fd, 8192), 0);
  auto* bytes =
      static_cast<char*>(::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  ASSERT_NE(bytes, MAP_FAILED) << errno;
  bytes[5000] = 'm';
  ASSERT_EQ(::msync(bytes, 8192, MS_SYNC), 0);
  EXPECT_EQ(read_all(mounted_.backing("map"))[5000], 'm');
  EXPECT_EQ(::pwrite(fd, "w", 1, 100), 1);
  EXPECT_EQ(bytes[100], 'w');
  ::munmap(bytes, 8192);
  ::close(fd);
}

TEST_P(PassthroughTest, AppendersDoNotOverwriteEachOther) {
  auto append = [this](char letter) {
    return Child::fork([this, letter] {
      const int fd = ::open(mounted_.path("log").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
      for (int i = 0; i < 200; i++) {
        if (::write(fd, &letter, 1) != 1) return 1;
      }
      return 0;
    });
  };
  Child first = append('a');
  Child second = append('b');
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
  const std::string log = read_all(mounted_.backing("log"));
  EXPECT_EQ(log.size(), 400u);
  EXPECT_EQ(std::count(log.begin(), log.end(), 'a'), 200);
}

TEST_P(PassthroughTest, DirectIoWorks) {
  const int fd = ::open(mounted_.path("direct").c_str(), O_RDWR | O_CREAT | O_DIRECT, 0644);
  if (fd < 0 && errno == EINVAL) GTEST_SKIP() << "the backing file system has no O_DIRECT";
  ASSERT_GE(fd, 0);
  auto* block = static_cast<char*>(std::aligned_alloc(4096, 8192));
  std::memset(block, 'd', 8192);
  EXPECT_EQ(::pwrite(fd, block, 8192, 4096), 8192);
  std::memset(block, 0, 8192);
  EXPECT_EQ(::pread(fd, block, 8192, 4096), 8192);
  EXPECT_EQ(block[8191], 'd');
  std::free(block);
  ::close(fd);
}

TEST_F(MountedTest, AllOfABigDirectoryIsListedOnce) {
  constexpr int kEntries = 100'000;
  std::filesystem::create_directory(mounted_.backing("big"));
  for (int i = 0; i < kEntries; i++) {
    const auto name = mounted_.backing(fmt::format("big/entry-{}", i));
    ::close(::open(name.c_str(), O_WRONLY | O_CREAT, 0644));
  }
  std::set<std::string> seen;
  for (const auto& entry : std::filesystem::directory_iterator(mounted_.path("big"))) {
    EXPECT_TRUE(seen.insert(entry.path().filename().string()).second);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kEntries));
}

TEST_P(PassthroughTest, ExtendedAttributesAreKept) {
  write_all(mounted_.path("x"), "x");
  const std::string file = mounted_.path("x");
  if (::setxattr(file.c_str(), "user.sg", "value", 5, 0) != 0) {
    ASSERT_EQ(errno, ENOTSUP);
    GTEST_SKIP() << "the backing file system has no user attributes";
  }
  std::array<char, 16> value{};
  EXPECT_EQ(::getxattr(file.c_str(), "user.sg", nullptr, 0), 5);
  EXPECT_EQ(::getxattr(file.c_str(), "user.sg", value.data(), value.size()), 5);
  EXPECT_EQ(std::string(value.data(), 5), "value");
  EXPECT_GT(::listxattr(file.c_str(), nullptr, 0), 0);
  EXPECT_EQ(::removexattr(file.c_str(), "user.sg"), 0);
  EXPECT_EQ(::getxattr(file.c_str(), "user.sg", nullptr, 0), -1);
  EXPECT_EQ(errno, ENODATA);
}

TEST_P(PassthroughTest, ALockOfOneProcessExcludesAnother) {
  write_all(mounted_.path("lock"), "x");
  const int fd = ::open(mounted_.path("lock").c_str(), O_RDWR);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(fd, F_SETLK, &whole), 0);
  auto try_it = [this] {
    return Child::fork([this] {
      struct flock mine {};
      mine.l_type = F_WRLCK;
      const int other = ::open(mounted_.path("lock").c_str(), O_RDWR);
      return ::fcntl(other, F_SETLK, &mine) == 0 ? 0 : errno;
    });
  };
  EXPECT_EQ(WEXITSTATUS(try_it().wait()), EAGAIN);
  whole.l_type = F_UNLCK;
  ASSERT_EQ(::fcntl(fd, F_SETLK, &whole), 0);
  EXPECT_EQ(WEXITSTATUS(try_it().wait()), 0);
  ::close(fd);
}

TEST_P(PassthroughTest, HolesBeyondFourGiBAreFound) {
  const int fd = ::open(mounted_.path("sparse").c_str(), O_RDWR | O_CREAT, 0644);
  constexpr off_t kFar = (off_t{5} << 30) + 4096;
  ASSERT_EQ(::pwrite(fd, "far", 3, kFar), 3);
  EXPECT_EQ(::lseek(fd, 0, SEEK_DATA), ::lseek(fd, kFar / 4096 * 4096, SEEK_SET));
  std::array<char, 3> back{};
  EXPECT_EQ(::pread(fd, back.data(), 3, kFar), 3);
  EXPECT_EQ(std::string(back.data(), 3), "far");
  EXPECT_EQ(::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, kFar, 3), 0);
  EXPECT_EQ(::pread(fd, back.data(), 3, kFar), 3);
  EXPECT_EQ(back[0], '\0');
  ::close(fd);
}

TEST_P(PassthroughTest, CopyFileRangeCopies) {
  write_all(mounted_.path("from"), "0123456789");
  const int from = ::open(mounted_.path("from").c_str(), O_RDONLY);
  const int to = ::open(mounted_.path("to").c_str(), O_RDWR | O_CREAT, 0644);
  off_t at = 2;
  EXPECT_EQ(::copy_file_range(from, &at, to, nullptr, 5, 0), 5);
  ::close(from);
  ::close(to);
  EXPECT_EQ(read_all(mounted_.path("to")), "23456");
}

TEST_P(PassthroughTest, AttributesAreSet) {
  const std::string file = mounted_.path("file");
  write_all(file, "12345");
  EXPECT_EQ(::chmod(file.c_str(), 0640), 0);
  EXPECT_EQ(::chown(file.c_str(), 12, 34), 0);
  EXPECT_EQ(::truncate(file.c_str(), 2), 0);
  const std::array<timespec, 2> times = {timespec{100, 5}, timespec{200, 7}};
  EXPECT_EQ(::utimensat(AT_FDCWD, file.c_str(), times.data(), 0), 0);
  struct stat attributes {};
  ASSERT_EQ(::stat(mounted_.backing("file").c_str(), &attributes), 0);
  EXPECT_EQ(attributes.st_mode & 07777, 0640u);
  EXPECT_EQ(attributes.st_uid, 12u);
  EXPECT_EQ(attributes.st_gid, 34u);
  EXPECT_EQ(attributes.st_size, 2);
  EXPECT_EQ(attributes.st_mtim.tv_sec, 200);
  EXPECT_EQ(attributes.st_mtim.tv_nsec, 7);
}

TEST_F(MountedTest, LinksAndSpecialFilesAreMade) {
  ASSERT_EQ(::symlink("where/ever", mounted_.path("link").c_str()), 0);
  EXPECT_EQ(std::filesystem::read_symlink(mounted_.path("link")), "where/ever");
  ASSERT_EQ(::mkfifo(mounted_.path("fifo").c_str(), 0600), 0);
  EXPECT_TRUE(std::filesystem::is_fifo(mounted_.backing("fifo")));
  EXPECT_EQ(::rmdir(mounted_.path("nothing").c_str()), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(MountedTest, TheTraceShowsWhatWasDone) {
  write_all(mounted_.path("a.tmp"), std::string(2'000'000, 'x'));
  ::rename(mounted_.path("a.tmp").c_str(), mounted_.path("a").c_str());
  std::uint64_t written = 0;
  bool renamed = false;
  for (const auto& record : mounted_.trace()) {
    EXPECT_LT(record.begin_seq, record.end_seq);
    if (record.op == faults::Op::kWrite && record.path == "a.tmp") {
      EXPECT_EQ(record.offset, written);
      EXPECT_EQ(record.caller.pid, ::getpid());
      written += record.effective;
    }
    renamed |= record.op == faults::Op::kRename && record.path == "a.tmp" && record.path2 == "a";
  }
  EXPECT_EQ(written, 2'000'000u);
  EXPECT_TRUE(renamed);
}

// The daemon holds two descriptors for each; where it may not raise its limit, fewer are tried.
TEST(ManyFilesTest, TenThousandFilesAreOpenAtOnce) {
  Mounted mounted("", "", Mounted::Trace::kNo);
  if (!mounted.ready()) GTEST_SKIP() << mounted.why_not();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const auto files = std::min<rlim_t>(10'000, (limit.rlim_max - 1'000) / 2);
  std::vector<int> open;
  for (rlim_t i = 0; i < files; i++) {
    const auto name = mounted.path(fmt::format("f{}", i));
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT, 0644);
    ASSERT_GE(fd, 0) << i << ": " << errno;
    open.push_back(fd);
  }
  EXPECT_EQ(::pwrite(open.back(), "x", 1, 0), 1);
  for (int fd : open) ::close(fd);
}

}  // namespace
}  // namespace savegate::fusefs
