// Held operations and marks: killable, released by name, and nobody else waits.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <thread>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

constexpr const char* kHang = R"(
[[rule]]
name = "hold"
match = { op = "write", path = "held*" }
action = { hang = true }
[[rule]]
name = "commit"
match = { op = "phase", phase = "commit" }
action = { hang = true }
required = false
)";

class StallsScenarioTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
  }
  Child writer(const std::string& name) {
    return Child::caller(1, {"write", mounted_.path(name), "5000", "main"});
  }
  Child marker() {
    return Child::fork([this] {
      auto client = ControlClient::connect(mounted_.control_path());
      return client && client->call(R"({"cmd":"mark","rank":1,"kind":"point","name":"commit"})")
                 ? 0
                 : 1;
    });
  }
  Mounted mounted_{kHang};
};

TEST_F(StallsScenarioTest, AHeldWriterDiesWithinASecondWhileOthersWrite) {
  Child held = writer("held");
  ASSERT_TRUE(mounted_.wait_held(1));
  EXPECT_EQ(mounted_.fired().size(), 1u);
  EXPECT_EQ(writer("free").wait(), 0);
  held.kill(SIGKILL);
  auto status = held.wait_for(1000);
  ASSERT_TRUE(status) << "still held";
  EXPECT_TRUE(WIFSIGNALED(*status));
  EXPECT_TRUE(mounted_.wait_held(0));
  EXPECT_EQ(read_all(mounted_.backing("held")), "");
}

TEST_F(StallsScenarioTest, ReleaseLetsTheWriteGoOn) {
  Child held = writer("held");
  ASSERT_TRUE(mounted_.wait_held(1));
  EXPECT_EQ(mounted_.command(R"({"cmd":"release","rule":"hold"})"), R"({"ok":true,"released":1})");
  EXPECT_EQ(held.wait(), 0);
  EXPECT_EQ(read_all(mounted_.backing("held")), std::string(5000, 'x'));
}

TEST_F(StallsScenarioTest, TwoHundredAreHeldAndTheRestGoesOn) {
  std::vector<Child> held;
  held.reserve(200);
  for (int i = 0; i < 200; i++) held.push_back(writer("held" + std::to_string(i)));
  ASSERT_TRUE(mounted_.wait_held(200));
  for (int i = 0; i < 20; i++) EXPECT_EQ(writer("free" + std::to_string(i)).wait(), 0);
  for (int i = 0; i < 100; i++) held[static_cast<std::size_t>(i)].kill(SIGKILL);
  for (int i = 0; i < 100; i++) EXPECT_TRUE(held[static_cast<std::size_t>(i)].wait_for(5000));
  ASSERT_TRUE(mounted_.wait_held(100));
  mounted_.command(R"({"cmd":"release"})");
  for (int i = 100; i < 200; i++) EXPECT_EQ(held[static_cast<std::size_t>(i)].wait(), 0);
}

// A signal that the program handles interrupts the request, but the write is a write.
TEST_F(StallsScenarioTest, AHandledSignalDoesNotEndAHold) {
  Child held = Child::fork([this] {
    ::signal(SIGUSR2, [](int) {});
    const int fd = ::open(mounted_.path("held").c_str(), O_WRONLY | O_CREAT, 0644);
    return ::write(fd, "abc", 3) == 3 ? 0 : errno;
  });
  ASSERT_TRUE(mounted_.wait_held(1));
  held.kill(SIGUSR2);
  EXPECT_FALSE(held.wait_for(100));
  mounted_.command(R"({"cmd":"release","rule":"hold"})");
  EXPECT_EQ(held.wait(), 0);
}

TEST_F(StallsScenarioTest, AHeldThatHandledASignalStillDies) {
  Child held = Child::fork([this] {
    ::signal(SIGUSR2, [](int) {});
    const int fd = ::open(mounted_.path("held").c_str(), O_WRONLY | O_CREAT, 0644);
    return ::write(fd, "abc", 3) == 3 ? 0 : errno;
  });
  ASSERT_TRUE(mounted_.wait_held(1));
  held.kill(SIGUSR2);
  EXPECT_FALSE(held.wait_for(50));
  held.kill(SIGKILL);
  EXPECT_TRUE(held.wait_for(1000));
}

TEST_F(StallsScenarioTest, AMarkIsHeldAndReleased) {
  Child mark = marker();
  ASSERT_TRUE(mounted_.wait_held(1));
  EXPECT_FALSE(mounted_.command(R"({"cmd":"statistics"})").empty());
  mounted_.command(R"({"cmd":"release","rule":"commit"})");
  EXPECT_EQ(mark.wait(), 0);
  auto fired = mounted_.fired();
  ASSERT_EQ(fired.size(), 1u);
  EXPECT_EQ(fired[0].op, faults::Op::kPhase);
  EXPECT_EQ(fired[0].path2, "commit");
  EXPECT_EQ(fired[0].caller.rank, 1);
}

TEST_F(StallsScenarioTest, AMarkWhoseSenderDiesIsDropped) {
  Child mark = marker();
  ASSERT_TRUE(mounted_.wait_held(1));
  mark.kill(SIGKILL);
  EXPECT_TRUE(mark.wait_for(1000));
  EXPECT_TRUE(mounted_.wait_held(0));
}

TEST_F(StallsScenarioTest, TheEndOfTheMountFreesTheHeld) {
  Child held = writer("held");
  ASSERT_TRUE(mounted_.wait_held(1));
  mounted_.stop();
  EXPECT_TRUE(held.wait_for(5000));
}

// Nobody releases it and nobody is killed: the caller still goes on.
TEST(HoldLimitTest, WhatIsHeldForTooLongAbortsTheMount) {
  Mounted mounted("[[rule]]\nmatch = { op = \"write\" }\naction = { hang = true }\n", "",
                  Mounted::Trace::kNo, {"--hold-limit", "0.2"});
  if (!mounted.ready()) GTEST_SKIP() << mounted.why_not();
  const int fd = ::open(mounted.path("file").c_str(), O_RDWR | O_CREAT, 0644);
  EXPECT_EQ(::write(fd, "x", 1), -1);
  EXPECT_THAT(errno, testing::AnyOf(ECONNABORTED, EINTR));
  ::close(fd);
  const int status = mounted.daemon().wait();
  EXPECT_EQ(WEXITSTATUS(status), 3) << status;
}

}  // namespace
}  // namespace savegate::fusefs
