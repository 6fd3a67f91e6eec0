#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <set>
#include <vector>

#include "harness/run/rendezvous_port.h"

namespace savegate::harness {
namespace {

TEST(RendezvousPortTest, NoTwoLeasesShareAPort) {
  std::vector<RendezvousPort> leases;
  std::set<int> numbers;
  for (int i = 0; i < 100; ++i) {
    auto lease = RendezvousPort::lease();
    ASSERT_TRUE(lease) << lease.error().to_string();
    numbers.insert(lease->number());
    leases.push_back(std::move(*lease));
  }
  EXPECT_EQ(numbers.size(), 100U);
}

TEST(RendezvousPortTest, ItIsNoneThatTheKernelGivesOutByItself) {
  int first = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> first;
  const auto lease = RendezvousPort::lease();
  ASSERT_TRUE(lease) << lease.error().to_string();
  EXPECT_LT(lease->number(), first);
}

// The same process asks from the same start after a fork, as another run might.
TEST(RendezvousPortTest, AnotherProcessLeasesAnother) {
  const auto mine = RendezvousPort::lease();
  ASSERT_TRUE(mine) << mine.error().to_string();
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<RendezvousPort> leases;
    bool shared = false;
    for (int i = 0; i < 200; ++i) {
      auto lease = RendezvousPort::lease();
      if (!lease || lease->number() == mine->number()) shared = true;
      if (lease) leases.push_back(std::move(*lease));
    }
    const char answer = shared ? 's' : 'o';
    ::_exit(::write(pipe[1], &answer, 1) == 1 ? 0 : 1);
  }
  char answer = 0;
  ASSERT_EQ(::read(pipe[0], &answer, 1), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(answer, 'o');
}

TEST(RendezvousPortTest, WhereSomebodyListensIsPassedOver) {
  auto lease = RendezvousPort::lease();
  ASSERT_TRUE(lease) << lease.error().to_string();
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  const int next = lease->number() + 1;
  address.sin_port = htons(static_cast<std::uint16_t>(next));
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (int i = 0; i < 5; ++i) {
    const auto other = RendezvousPort::lease();
    ASSERT_TRUE(other) << other.error().to_string();
    EXPECT_NE(other->number(), next);
  }
  ::close(socket);
}

}  // namespace
}  // namespace savegate::harness
