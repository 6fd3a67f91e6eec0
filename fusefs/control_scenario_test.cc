// The control socket of a real mount: who may speak, and who is told that a rule fired.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

using testing::HasSubstr;

constexpr const char* kPlan = R"(
[[rule]]
name = "no links"
match = { op = "symlink" }
action = { errno = "EPERM" }
)";

constexpr uid_t kNobody = 65534;

class ControlScenarioTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!mounted_.ready()) GTEST_SKIP() << mounted_.why_not();
  }
  std::future<std::string> ask(const std::string& request) {
    auto client = ControlClient::connect(mounted_.control_path());
    EXPECT_TRUE(client);
    return std::async(std::launch::async, [request, to = std::move(*client)]() mutable {
      auto reply = to.call(request);
      return reply ? *reply : reply.error().to_string();
    });
  }
  Mounted mounted_{kPlan};
};

TEST_F(ControlScenarioTest, AnotherUserIsRefusedEvenWhereTheSocketLetsHimIn) {
  ASSERT_EQ(::chmod(mounted_.control_path().c_str(), 0666), 0);
  Child other = Child::fork([this] {
    if (::setuid(kNobody) != 0) return 1;
    auto client = ControlClient::connect(mounted_.control_path());
    if (!client) return 2;
    const auto reply = client->call(R"({"cmd":"stop"})");
    return !reply && reply.error().to_string().find("another user") != std::string::npos ? 0 : 3;
  });
  EXPECT_EQ(WEXITSTATUS(other.wait()), 0);
  EXPECT_FALSE(mounted_.command(R"({"cmd":"status"})").empty());
}

TEST_F(ControlScenarioTest, WhoWaitsIsToldWhenARuleFires) {
  auto told = ask(R"({"cmd":"fired","from":0,"wait":true})");
  EXPECT_EQ(::symlink("a", mounted_.path("link").c_str()), -1);
  EXPECT_THAT(told.get(), HasSubstr("\"no links\""));
}

TEST_F(ControlScenarioTest, WhoWaitsIsToldAtOnceOfWhatFiredBefore) {
  EXPECT_EQ(::symlink("a", mounted_.path("link").c_str()), -1);
  EXPECT_THAT(ask(R"({"cmd":"fired","from":0,"wait":true})").get(), HasSubstr("\"next\":1"));
}

// Even where the next question comes when the mount is ending already.
TEST_F(ControlScenarioTest, WhoWaitsIsToldThatTheMountEnds) {
  EXPECT_EQ(::symlink("a", mounted_.path("link").c_str()), -1);
  auto client = ControlClient::connect(mounted_.control_path());
  ASSERT_TRUE(client);
  ASSERT_TRUE(client->call(R"({"cmd":"fired","from":0,"wait":true})"));
  auto stopped = std::async(std::launch::async, [this] { mounted_.stop(); });
  const auto told = client->call(R"({"cmd":"fired","from":1,"wait":true})");
  ASSERT_TRUE(told) << told.error().to_string();
  EXPECT_THAT(*told, HasSubstr("\"over\":true"));
  { const ControlClient gone = std::move(*client); }
  stopped.get();
}

TEST_F(ControlScenarioTest, WhoStopsWaitingIsForgotten) {
  { auto client = ControlClient::connect(mounted_.control_path()); }
  Child waiter = Child::fork([this] {
    auto client = ControlClient::connect(mounted_.control_path());
    return client && client->call(R"({"cmd":"fired","from":0,"wait":true})") ? 0 : 1;
  });
  waiter.kill(SIGKILL);
  waiter.wait();
  EXPECT_EQ(::symlink("a", mounted_.path("link").c_str()), -1);
  EXPECT_EQ(mounted_.fired().size(), 1U);
}

}  // namespace
}  // namespace savegate::fusefs
