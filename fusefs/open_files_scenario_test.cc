// Passthrough: the kernel reads and writes what no rule needs to see, and says so when it must not.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string arm_command(const std::string& plan, bool defer) {
  std::string text;
  for (char c : plan)
    text += c == '\n' ? std::string("\\n") : c == '"' ? "\\\"" : std::string(1, c);
  return R"({"cmd":"arm","plan":")" + text + R"(","defer":)" + (defer ? "true}" : "false}");
}

constexpr const char* kWritesFail =
    "[[rule]]\nmatch = { op = \"write\", path = \"file\" }\naction = { errno = \"EIO\" }\n";

class OpenFilesTest : public testing::Test {
 protected:
  void mount(const std::string& plan) {
    mounted_ = std::make_unique<Mounted>(plan, "", Mounted::Trace::kNo);
    if (!mounted_->ready()) GTEST_SKIP() << mounted_->why_not();
    const std::string status = mounted_->command(R"({"cmd":"status"})");
    if (status.find(R"("passthrough":"yes")") == std::string::npos) GTEST_SKIP() << status;
  }
  void TearDown() override {
    for (int fd : opened_) ::close(fd);
  }
  int open(const std::string& name, int flags = O_RDWR | O_CREAT) {
    const int fd = ::open(mounted_->path(name).c_str(), flags, 0644);
    EXPECT_GE(fd, 0) << name << ": " << errno;
    opened_.push_back(fd);
    return fd;
  }
  void close_all() {
    for (int fd : opened_) ::close(fd);
    opened_.clear();
  }
  std::string status() { return mounted_->command(R"({"cmd":"status"})"); }
  // The reply, whatever it says.
  std::string arm(const std::string& plan, bool defer = false) {
    auto client = ControlClient::connect(mounted_->control_path());
    auto reply = client->call(arm_command(plan, defer));
    return reply ? *reply : reply.error().to_string();
  }
  // A file is closed for the daemon once the kernel has told it so.
  std::string arm_once_closed(const std::string& plan) {
    while (files_are_being_closed()) {
    }
    return arm(plan);
  }
  bool files_are_being_closed() { return status().find(R"("path")") != std::string::npos; }

  std::unique_ptr<Mounted> mounted_;
  std::vector<int> opened_;
};

TEST_F(OpenFilesTest, AFileThatNoRuleMindsIsWrittenByTheKernelItself) {
  mount("");
  if (IsSkipped()) return;
  const int fd = open("file");
  EXPECT_EQ(::write(fd, "hello", 5), 5);
  EXPECT_EQ(read_all(mounted_->backing("file")), "hello");
  EXPECT_THAT(status(), HasSubstr(R"({"path":"file","passthrough":1})"));
  EXPECT_THAT(mounted_->command(R"({"cmd":"statistics"})"), Not(HasSubstr(R"("write")")));
}

TEST_F(OpenFilesTest, ARuleOnFsyncActsWithoutSeeingTheWrites) {
  mount("[[rule]]\nmatch = { op = \"fsync\" }\naction = { errno = \"EIO\" }\n");
  if (IsSkipped()) return;
  const int fd = open("file");
  EXPECT_EQ(::write(fd, "hello", 5), 5);
  EXPECT_EQ(::fsync(fd), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_THAT(mounted_->command(R"({"cmd":"statistics"})"), Not(HasSubstr(R"("write")")));
}

TEST_F(OpenFilesTest, ARuleOnWritesSendsThatFileAloneToTheDaemon) {
  mount(kWritesFail);
  if (IsSkipped()) return;
  open("file");
  open("other");
  EXPECT_THAT(status(), HasSubstr(R"({"path":"file","daemon":1,"why":"a rule)"));
  EXPECT_THAT(status(), HasSubstr(R"({"path":"other","passthrough":1})"));
}

TEST_F(OpenFilesTest, ABudgetSeesAllWrites) {
  mount("[[budget]]\nname = \"b\"\npath = \"**\"\nlimit = \"4KiB\"\n");
  if (IsSkipped()) return;
  const int fd = open("file");
  EXPECT_EQ(::write(fd, std::string(8192, 'x').data(), 8192), 4096);
  EXPECT_THAT(status(), HasSubstr(R"("daemon":1)"));
}

TEST_F(OpenFilesTest, AKillOfTheWholeJobSeesEveryCaller) {
  mount(
      "[[rule]]\nmatch = { op = \"fsync\" }\naction = { kill = \"SIGKILL\", target = \"job\" }\n");
  if (IsSkipped()) return;
  open("file");
  EXPECT_THAT(status(), HasSubstr("reaches the whole job"));
}

TEST_F(OpenFilesTest, ARuleThatAnOpenFileWouldNotSeeIsRefusedUntilItIsClosed) {
  mount("");
  if (IsSkipped()) return;
  open("file");
  EXPECT_THAT(arm(kWritesFail), HasSubstr("on what is open already: file; close it"));
  EXPECT_THAT(status(), HasSubstr(R"("armed":false)"));
  close_all();
  EXPECT_EQ(arm_once_closed(kWritesFail), R"({"ok":true})");
  EXPECT_EQ(::write(open("file"), "x", 1), -1);
  EXPECT_EQ(errno, EIO);
}

TEST_F(OpenFilesTest, ARuleOnOtherFilesOrOperationsIsArmedBesideOpenFiles) {
  mount("");
  if (IsSkipped()) return;
  open("other");
  EXPECT_EQ(arm(kWritesFail), R"({"ok":true})");
}

TEST_F(OpenFilesTest, ARuleOnCloseIsRefusedWhereTheKernelSendsNone) {
  mount("");
  if (IsSkipped()) return;
  open("file");
  EXPECT_THAT(arm("[[rule]]\nmatch = { op = \"close\" }\naction = { errno = \"EIO\" }\n"),
              HasSubstr("on what is open already: file"));
}

TEST_F(OpenFilesTest, ADeferredRuleActsOnLaterOpensAndBothSeeOneFile) {
  mount("");
  if (IsSkipped()) return;
  const int before = open("file");
  ASSERT_EQ(::pwrite(before, "aaaa", 4, 0), 4);
  EXPECT_EQ(arm("[[rule]]\nmatch = { op = \"write\", path = \"file\" }\n"
                "action = { short = 1 }\n",
                /*defer=*/true),
            R"({"ok":true,"deferred":["file"]})");
  const int after = open("file");
  EXPECT_EQ(::pwrite(before, "bbbb", 4, 0), 4);
  EXPECT_EQ(::pwrite(after, "cccc", 4, 0), 1);
  std::array<char, 4> seen{};
  EXPECT_EQ(::pread(before, seen.data(), 4, 0), 4);
  EXPECT_EQ(std::string(seen.data(), 4), "cbbb");
  EXPECT_EQ(::pread(after, seen.data(), 4, 0), 4);
  EXPECT_EQ(std::string(seen.data(), 4), "cbbb");
  EXPECT_THAT(status(), HasSubstr(R"({"path":"file","passthrough":1,"daemon":1,"why":"a rule)"));
}

TEST_F(OpenFilesTest, AFileThatGetsTheNameOfARuleWhileItIsOpenIsSaidToBeMissed) {
  mount(kWritesFail);
  if (IsSkipped()) return;
  open("other");
  EXPECT_THAT(status(), Not(HasSubstr("missed")));
  ASSERT_EQ(::rename(mounted_->path("other").c_str(), mounted_->path("file").c_str()), 0);
  EXPECT_THAT(status(), HasSubstr(R"("missed":"a rule acts on later opens only")"));
}

// A reader needs no rule on writes to see it; a writer beside it is sent to the daemon all the
// same.
TEST_F(OpenFilesTest, AReaderPassesThroughBesideAWriterThatARuleSees) {
  mount(kWritesFail);
  if (IsSkipped()) return;
  write_all(mounted_->backing("file"), "0123");
  const int reader = open("file", O_RDONLY);
  const int writer = open("file", O_WRONLY);
  EXPECT_EQ(::write(writer, "x", 1), -1);
  EXPECT_EQ(errno, EIO);
  std::array<char, 4> seen{};
  EXPECT_EQ(::pread(reader, seen.data(), 4, 0), 4);
  EXPECT_EQ(std::string(seen.data(), 4), "0123");
  EXPECT_THAT(status(), HasSubstr(R"({"path":"file","passthrough":1,"daemon":1)"));
}

TEST_F(OpenFilesTest, AnotherUsersWritesTakeSetIdBitsAway) {
  mount("");
  if (IsSkipped()) return;
  write_all(mounted_->path("file"), "0123");
  ::chmod(mounted_->path("file").c_str(), 06777);
  ::chmod(mounted_->path().c_str(), 0777);
  Child user = Child::fork([this] {
    if (::setgid(1234) != 0 || ::setuid(1234) != 0) return 1;
    const int fd = ::open(mounted_->path("file").c_str(), O_WRONLY);
    return ::write(fd, "x", 1) == 1 ? 0 : 2;
  });
  EXPECT_EQ(user.wait(), 0);
  struct stat now {};
  ::stat(mounted_->path("file").c_str(), &now);
  EXPECT_EQ(now.st_mode & 07777, 0777u);
}

TEST(NoPassthroughTest, ItCanBeTurnedOff) {
  Mounted mounted("", "", Mounted::Trace::kNo, {"--no-passthrough"});
  if (!mounted.ready()) GTEST_SKIP() << mounted.why_not();
  const int fd = ::open(mounted.path("file").c_str(), O_RDWR | O_CREAT, 0644);
  EXPECT_EQ(::write(fd, "x", 1), 1);
  EXPECT_THAT(mounted.command(R"({"cmd":"status"})"), HasSubstr("no: it was not asked for"));
  EXPECT_THAT(mounted.command(R"({"cmd":"statistics"})"), HasSubstr(R"("write":1)"));
  ::close(fd);
}

}  // namespace
}  // namespace savegate::fusefs
