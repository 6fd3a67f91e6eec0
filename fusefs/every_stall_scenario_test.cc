// Whatever operation is held, its caller can be killed at once.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

constexpr int kPromptly = 2000;  // milliseconds; a caller that cannot be killed never ends

// What a program calls to have the operation done. `file`, `link`, `folder` and `folder/in` are
// there; it runs in the mount's root.
struct Call {
  const char* op;
  int (*make)();
};

int with_file(int flags, int (*then)(int)) {
  const int fd = ::open("file", flags | O_CLOEXEC);
  return fd < 0 ? 1 : then(fd);
}

const std::array<Call, 31> kCalls = {{
    {"lookup", [] { return ::access("nothing", F_OK); }},
    {"getattr",
     [] {
       struct stat stat {};
       return ::stat("file", &stat);
     }},
    {"readlink",
     [] {
       std::array<char, 16> target{};
       return static_cast<int>(::readlink("link", target.data(), target.size()));
     }},
    {"statfs",
     [] {
       struct statvfs space {};
       return ::statvfs(".", &space);
     }},
    {"opendir", [] { return ::opendir("folder") == nullptr ? 1 : 0; }},
    {"readdir",
     [] {
       DIR* folder = ::opendir("folder");
       return folder == nullptr || ::readdir(folder) == nullptr ? 1 : 0;
     }},
    {"create", [] { return ::open("new", O_CREAT | O_WRONLY, 0644); }},
    {"open", [] { return ::open("file", O_RDONLY); }},
    {"read",
     [] {
       return with_file(O_RDONLY, [](int fd) {
         char byte = 0;
         return static_cast<int>(::read(fd, &byte, 1));
       });
     }},
    {"write",
     [] {
       return with_file(O_WRONLY, [](int fd) { return static_cast<int>(::write(fd, "x", 1)); });
     }},
    {"truncate", [] { return ::truncate("file", 1); }},
    {"fallocate",
     [] { return with_file(O_WRONLY, [](int fd) { return ::fallocate(fd, 0, 0, 9000); }); }},
    {"copy_file_range",
     [] {
       return with_file(O_RDWR, [](int fd) {
         off_t from = 0;
         off_t to = 8192;
         return static_cast<int>(::copy_file_range(fd, &from, fd, &to, 4, 0));
       });
     }},
    {"lseek",
     [] {
       return with_file(O_RDONLY,
                        [](int fd) { return static_cast<int>(::lseek(fd, 0, SEEK_HOLE)); });
     }},
    {"close", [] { return with_file(O_RDONLY, [](int fd) { return ::close(fd); }); }},
    {"fsync", [] { return with_file(O_WRONLY, [](int fd) { return ::fsync(fd); }); }},
    {"fsyncdir",
     [] {
       const int fd = ::open("folder", O_RDONLY | O_DIRECTORY);
       return fd < 0 ? 1 : ::fsync(fd);
     }},
    {"mkdir", [] { return ::mkdir("new", 0755); }},
    {"mknod", [] { return ::mknod("new", S_IFIFO | 0600, 0); }},
    {"rmdir", [] { return ::rmdir("empty"); }},
    {"unlink", [] { return ::unlink("file"); }},
    {"rename", [] { return ::rename("file", "new"); }},
    {"link", [] { return ::link("file", "new"); }},
    {"symlink", [] { return ::symlink("file", "new"); }},
    {"chmod", [] { return ::chmod("file", 0600); }},
    {"chown", [] { return ::chown("file", 1, 1); }},
    {"utimens", [] { return ::utimensat(AT_FDCWD, "file", nullptr, 0); }},
    {"getxattr",
     [] {
       std::array<char, 16> value{};
       return static_cast<int>(::getxattr("file", "user.a", value.data(), value.size()));
     }},
    {"setxattr", [] { return ::setxattr("file", "user.b", "1", 1, 0); }},
    {"listxattr",
     [] {
       std::array<char, 64> names{};
       return static_cast<int>(::listxattr("file", names.data(), names.size()));
     }},
    {"removexattr", [] { return ::removexattr("file", "user.a"); }},
}};

// The name of a test's parameter in its output.
void PrintTo(const Call& call, std::ostream* stream) { *stream << call.op; }

class EveryStall : public testing::TestWithParam<Call> {
 protected:
  EveryStall()
      : mounted_("[[rule]]\nname = \"hold\"\nmatch = { op = \"" + std::string(GetParam().op) +
                 "\" }\naction = { hang = true }\n") {}
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
    write_all(mounted_.backing("file"), "content");
    ASSERT_EQ(::symlink("file", mounted_.backing("link").c_str()), 0);
    for (const char* folder : {"folder", "folder/in", "empty"})
      ASSERT_EQ(::mkdir(mounted_.backing(folder).c_str(), 0755), 0);
    if (::setxattr(mounted_.backing("file").c_str(), "user.a", "1", 1, 0) != 0)
      GTEST_SKIP() << "the backing file system has no extended attributes";
  }
  Mounted mounted_;
};

TEST_P(EveryStall, IsKillable) {
  Child caller = Child::fork([this] {
    if (::chdir(mounted_.path().c_str()) != 0) return 99;
    return GetParam().make();
  });
  ASSERT_TRUE(mounted_.wait_held(1)) << "never held";
  caller.kill(SIGKILL);
  const auto status = caller.wait_for(kPromptly);
  ASSERT_TRUE(status) << "held in the kernel, and not killable";
  EXPECT_TRUE(WIFSIGNALED(*status));
  mounted_.command(R"({"cmd":"release"})");
}

INSTANTIATE_TEST_SUITE_P(Operations, EveryStall, testing::ValuesIn(kCalls),
                         [](const auto& call) { return std::string(call.param.op); });

}  // namespace
}  // namespace savegate::fusefs
