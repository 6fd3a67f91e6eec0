// The control socket of a real mount: who may speak, and who is told that a rule fired.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <future>
#include <string_view>

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

int connected_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool there =
      ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  return there ? fd : -1;
}

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

// A process whose exec is held, so that its environment cannot be read. Its child sends a mark in
// its name.
TEST_F(ControlScenarioTest, AProcessThatCannotBeLookedAtHoldsUpItsOwnMarkAlone) {
  mounted_.command(
      R"({"cmd":"arm","plan":"[[rule]]\nname='held'\nmatch={op='close',nth=1}\naction={hang=true}"})");
  std::array<int, 2> go{};
  std::array<int, 2> told{};
  ASSERT_EQ(::pipe2(go.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(told.data(), O_CLOEXEC), 0);
  Child stuck = Child::fork([&] {
    const int socket = connected_to(mounted_.control_path());
    const int file = ::open(mounted_.path("file").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (socket < 0 || file < 0) return 1;
    if (::fork() == 0) {
      char byte = 0;
      std::array<char, 64> reply{};
      constexpr std::string_view kMark = "{\"cmd\":\"mark\",\"kind\":\"point\",\"name\":\"p\"}\n";
      const bool sent = ::read(go[0], &byte, 1) == 1 &&
                        ::write(socket, kMark.data(), kMark.size()) == std::ssize(kMark) &&
                        ::write(told[1], "s", 1) == 1;
      const bool answered = sent && ::read(socket, reply.data(), reply.size()) > 0 &&
                            std::string_view(reply.data()).starts_with("{\"ok\":true");
      return ::write(told[1], answered ? "a" : "n", 1) == 1 ? 0 : 2;
    }
    ::execl("/bin/true", "true", nullptr);
    return 3;
  });
  ASSERT_TRUE(mounted_.wait_held(1));
  ASSERT_EQ(::write(go[1], "g", 1), 1);
  char byte = 0;
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_EQ(byte, 's');
  EXPECT_THAT(mounted_.command(R"({"cmd":"status"})"), HasSubstr("\"held\":1"));
  mounted_.command(R"({"cmd":"release","rule":"held"})");
  ASSERT_EQ(::read(told[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'a');
  EXPECT_EQ(stuck.wait(), 0);
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
