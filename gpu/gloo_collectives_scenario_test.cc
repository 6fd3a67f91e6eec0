#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "gpu/collectives.h"

namespace savegate::gpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Runs `body` in one process a rank; each returns whether it saw what it should have seen.
class GlooTest : public testing::Test {
 protected:
  using Body = std::function<bool(Collectives&)>;

  GlooTest() {
    std::string pattern = testing::TempDir() + "/gloo-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~GlooTest() override { std::filesystem::remove_all(directory_); }

  // The wait statuses, in rank order.
  std::vector<int> run(int world, milliseconds timeout, const Body& body) {
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < world; ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) {
        auto opened =
            open_gloo({.rank = rank, .world = world, .rendezvous = directory_, .timeout = timeout});
        ::_exit(opened && body(**opened) ? 0 : 1);
      }
      ranks.push_back(pid);
    }
    std::vector<int> statuses;
    for (pid_t pid : ranks) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      statuses.push_back(status);
    }
    return statuses;
  }

  std::string directory_;
};

TEST_F(GlooTest, EveryRankHearsEveryOtherInRankOrder) {
  const auto statuses = run(4, milliseconds(20000), [](Collectives& peers) {
    const std::string own(static_cast<std::size_t>(peers.rank()) * 1000, 'a');
    const auto varied = peers.all_gather_varied(own);
    const auto equal = peers.all_gather(std::to_string(peers.rank()));
    if (!varied || !equal || !peers.barrier()) return false;
    for (std::size_t i = 0; i < 4; ++i) {
      if ((*varied)[i] != std::string(i * 1000, 'a') || (*equal)[i] != std::to_string(i)) {
        return false;
      }
    }
    return true;
  });
  EXPECT_EQ(statuses, std::vector<int>(4, 0));
}

TEST_F(GlooTest, BroadcastGivesTheRootsBytes) {
  const auto statuses = run(3, milliseconds(20000), [](Collectives& peers) {
    const auto heard = peers.broadcast(peers.rank() == 1 ? "from one" : "ignored", 1);
    return heard && *heard == "from one";
  });
  EXPECT_EQ(statuses, std::vector<int>(3, 0));
}

// Death is noticed at once, not when a deadline is over.
TEST_F(GlooTest, AKilledPeerIsAnErrorLongBeforeTheDeadline) {
  const auto statuses = run(3, milliseconds(60000), [](Collectives& peers) {
    if (!peers.barrier()) return false;
    if (peers.rank() == 2) ::raise(SIGKILL);
    const auto began = steady_clock::now();
    const auto passed = peers.barrier();
    return !passed && steady_clock::now() - began < milliseconds(20000) &&
           passed.error().text.find("peer rank") != std::string::npos;
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_EQ(statuses[1], 0);
  EXPECT_TRUE(WIFSIGNALED(statuses[2]));
}

// A peer that lives but says nothing is given up at the deadline, and not before.
TEST_F(GlooTest, ASilentPeerIsAnErrorAtTheDeadline) {
  int released[2];
  ASSERT_EQ(::pipe(released), 0);
  const auto statuses = run(2, milliseconds(1000), [&](Collectives& peers) {
    if (!peers.barrier()) return false;
    if (peers.rank() == 1) {  // silent until rank 0 is done
      ::close(released[1]);
      char byte = 0;
      return ::read(released[0], &byte, 1) >= 0;
    }
    const auto began = steady_clock::now();
    const auto passed = peers.barrier();
    const bool waited = steady_clock::now() - began >= milliseconds(900);
    return !passed && waited && passed.error().text.find("peer rank 1") != std::string::npos &&
           ::write(released[1], "x", 1) == 1;
  });
  ::close(released[0]);
  ::close(released[1]);
  EXPECT_EQ(statuses, std::vector<int>(2, 0));
}

// A rank that leaves out an operation makes the others wait; their bytes never mix.
TEST_F(GlooTest, RanksOutOfStepDoNotTakeEachOthersBytes) {
  const auto statuses = run(2, milliseconds(1000), [](Collectives& peers) {
    if (peers.rank() == 0 && !peers.barrier()) return true;
    return !peers.all_gather("12345678");
  });
  EXPECT_EQ(statuses, std::vector<int>(2, 0));
}

TEST_F(GlooTest, ARendezvousWithoutPeersFailsAtTheDeadline) {
  const auto alone =
      open_gloo({.rank = 0, .world = 2, .rendezvous = directory_, .timeout = milliseconds(200)});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().operation, "rendezvous");
}

}  // namespace
}  // namespace savegate::gpu
