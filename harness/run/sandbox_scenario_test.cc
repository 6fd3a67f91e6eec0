#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "harness/run/files.h"
#include "harness/run/interrupt.h"
#include "harness/run/proc.h"
#include "harness/run/process.h"
#include "harness/run/sandbox.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

// A process that runs a sandbox, as the command line would; `ready()` is what the body says when it
// has started its own processes.
class Outer {
 public:
  explicit Outer(const std::function<int(const std::function<void()>&)>& body) {
    int ends[2];
    if (::pipe(ends) != 0) ::abort();
    reading_ = UniqueFd(ends[0]);
    UniqueFd writing(ends[1]);
    pid_ = ::fork();
    if (pid_ != 0) return;
    const auto ready = [&writing] {
      if (::write(writing.get(), "r", 1) != 1) ::_exit(99);
    };
    const auto code = run_in_sandbox([&] { return body(ready); });
    ::_exit(code ? *code : 5);
  }
  Outer(const Outer&) = delete;
  Outer& operator=(const Outer&) = delete;
  ~Outer() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  void await_ready() const {
    char byte = 0;
    ASSERT_EQ(::read(reading_.get(), &byte, 1), 1);
  }
  // Every process of the sandbox holds the pipe: end of file means that none is left.
  bool all_gone() const {
    pollfd waited{.fd = reading_.get(), .events = POLLIN, .revents = 0};
    char byte = 0;
    return ::poll(&waited, 1, 20'000) > 0 && ::read(reading_.get(), &byte, 1) == 0;
  }
  pid_t inner() const {
    for (const ProcStatus& process : list_processes()) {
      if (process.parent == pid_) return process.pid;
    }
    return -1;
  }
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return status;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  UniqueFd reading_;
};

// Forks a child that escapes into a session of its own, mounts something, and never ends.
int start_things_and_wait(const std::string& mount_point, const std::function<void()>& ready) {
  if (::mount("tmpfs", mount_point.c_str(), "tmpfs", 0, nullptr) != 0) return 98;
  if (::fork() == 0) {
    ::setsid();
    while (true) ::pause();
  }
  ready();
  while (true) ::pause();
}

std::string mounts() { return read_file("/proc/self/mounts").value_or(""); }

class SandboxTest : public ::testing::Test {
 protected:
  TestDirectory directory_;
};

TEST_F(SandboxTest, GivesTheExitCodeOfItsBody) {
  const auto code = run_in_sandbox([] { return 17; });
  ASSERT_TRUE(code) << code.error().to_string();
  EXPECT_EQ(*code, 17);
}

TEST_F(SandboxTest, TheBodyIsTheFirstProcessAndSeesOnlyItsOwn) {
  const auto code = run_in_sandbox(
      [] { return ::getpid() == 1 && list_processes().size() == 1 && in_sandbox() ? 0 : 1; });
  EXPECT_EQ(code.value_or(-1), 0);
  EXPECT_FALSE(in_sandbox());
}

TEST_F(SandboxTest, ItsDirectoryIsPrivate) {
  const auto code = run_in_sandbox(
      [] { return write_file(sandbox_directory() + "/seen-inside-only", "x") ? 0 : 1; });
  EXPECT_EQ(code.value_or(-1), 0);
  const auto again =
      run_in_sandbox([] { return read_file(sandbox_directory() + "/seen-inside-only") ? 1 : 0; });
  EXPECT_EQ(again.value_or(-1), 0);
}

TEST_F(SandboxTest, KillingTheOuterProcessLeavesNoProcessAndNoMount) {
  const std::string before = mounts();
  Outer outer([&](const auto& ready) { return start_things_and_wait(directory_.path(), ready); });
  outer.await_ready();
  ::kill(outer.pid(), SIGKILL);
  EXPECT_TRUE(outer.all_gone());
  EXPECT_EQ(mounts(), before);
}

TEST_F(SandboxTest, KillingTheInnerProcessLeavesNoProcessAndNoMount) {
  const std::string before = mounts();
  Outer outer([&](const auto& ready) { return start_things_and_wait(directory_.path(), ready); });
  outer.await_ready();
  const pid_t inner = outer.inner();
  ASSERT_GT(inner, 0);
  ::kill(inner, SIGKILL);
  EXPECT_TRUE(outer.all_gone());
  const int status = outer.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
  EXPECT_EQ(mounts(), before);
}

// Ctrl-C: the body is told, may finish what it has, and the exit code is 130.
TEST_F(SandboxTest, AnInterruptReachesTheBodyAndGives130) {
  Outer outer([](const auto& ready) {
    ready();
    pollfd waited{.fd = interrupt_fd(), .events = POLLIN, .revents = 0};
    while (!interrupted()) ::poll(&waited, 1, -1);
    return 0;
  });
  outer.await_ready();
  ::kill(outer.pid(), SIGINT);
  const int status = outer.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
}

TEST_F(SandboxTest, OrphansAreReapedAndOwnChildrenAreNot) {
  const auto code = run_in_sandbox([] {
    SpawnRequest request;
    request.command = {"sh", "-c", "(exec true) & exit 3"};
    auto process = Process::spawn(request);
    if (!process) return 1;
    siginfo_t ended{};
    ::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT);
    reap_orphans();
    const auto status = process->wait_for(60'000'000'000);
    return status && status->code == 3 ? 0 : 2;
  });
  EXPECT_EQ(code.value_or(-1), 0);
}

}  // namespace
}  // namespace savegate::harness
