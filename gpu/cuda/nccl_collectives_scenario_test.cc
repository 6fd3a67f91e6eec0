// NCCL between the processes of two ranks, and what a peer's death or silence does to the other.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>

#include "gpu/backend.h"

namespace savegate::gpu {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kRounds = 20;
constexpr int kTogether = 5;  // rounds at the same time
constexpr milliseconds kTimeout{1000};
constexpr milliseconds kPatience{20000};  // for a machine that is busy; a hang lasts for ever

class NcclTest : public testing::Test {
 protected:
  using Body = std::function<bool(Collectives& side, Collectives& devices)>;

  NcclTest() {
    std::string pattern = testing::TempDir() + "/nccl-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~NcclTest() override { std::filesystem::remove_all(directory_); }

  // Two GPUs, asked for in a process of its own: this one must not have a context when it forks.
  void SetUp() override {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(open_backend("cuda:1", 1) ? 0 : 1);
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status != 0) GTEST_SKIP() << "fewer than two GPUs are there";
  }

  // How many of `rounds` jobs, each of two ranks in processes of their own, end as rank 0 expects.
  int run(int rounds, const Body& body) {
    int as_expected = 0;
    for (int first = 0; first < rounds; first += kTogether) {
      std::vector<std::array<pid_t, 2>> jobs;
      for (int round = first; round < std::min(rounds, first + kTogether); ++round) {
        jobs.push_back({start_rank(0, round, body), start_rank(1, round, body)});
      }
      for (const auto& [one, other] : jobs) {
        int status = 0;
        ::waitpid(one, &status, 0);
        if (status == 0) ++as_expected;
        ::kill(other, SIGKILL);  // it may be stopped
        ::waitpid(other, &status, 0);
      }
    }
    return as_expected;
  }

  std::string directory_;

 private:
  pid_t start_rank(int rank, int round, const Body& body) {
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(run_rank(rank, directory_ + "/" + std::to_string(round), body) ? 0 : 1);
    return pid;
  }

  static bool run_rank(int rank, const std::string& meeting, const Body& body) {
    std::filesystem::create_directories(meeting);
    auto side = open_gloo(
        {.rank = rank, .world = 2, .rendezvous = meeting, .timeout = milliseconds(60000)});
    auto backend = open_backend("cuda", rank);
    if (!side || !backend) return false;
    auto devices = (*backend)->open_collectives(**side, kTimeout);
    if (!devices) {
      std::fprintf(stderr, "%s\n", devices.error().to_string().c_str());
      return false;
    }
    return body(**side, **devices);
  }
};

TEST_F(NcclTest, EveryRankHearsEveryOtherInRankOrder) {
  const int heard_all = run(1, [](Collectives& side, Collectives& devices) {
    const std::string own(static_cast<std::size_t>(devices.rank() + 1) * 100000, 'a');
    const auto equal = devices.all_gather(std::to_string(devices.rank()));
    const auto varied = devices.all_gather_varied(own);
    const auto sent = devices.broadcast(devices.rank() == 1 ? "from one" : "ignored", 1);
    const bool heard = equal && *equal == std::vector<std::string>{"0", "1"} && varied &&
                       (*varied)[0].size() == 100000 && (*varied)[1].size() == 200000 && sent &&
                       *sent == "from one" && devices.barrier();
    return side.barrier() && heard;
  });
  EXPECT_EQ(heard_all, 1);
}

// Rank 1 is lost while rank 0 is inside the collective; rank 0 must come out of it.
class LostPeerTest : public NcclTest, public testing::WithParamInterface<int> {};

TEST_P(LostPeerTest, EndsTheCollectiveWithinTheDeadlineEveryTime) {
  const int ended = run(kRounds, [](Collectives& side, Collectives& devices) {
    if (!devices.barrier() || !side.barrier()) return false;
    if (side.rank() == 1) ::raise(GetParam());
    const auto began = steady_clock::now();
    const auto passed = devices.all_gather("12345678");
    const auto took = steady_clock::now() - began;
    if (!passed) std::fprintf(stderr, "%s\n", passed.error().to_string().c_str());
    return !passed && took < kPatience && !devices.barrier();
  });
  EXPECT_EQ(ended, kRounds);
}

INSTANTIATE_TEST_SUITE_P(NcclTest, LostPeerTest, testing::Values(SIGKILL, SIGSTOP, SIGABRT),
                         [](const auto& each) {
                           return std::string(each.param == SIGKILL   ? "Killed"
                                              : each.param == SIGSTOP ? "Stopped"
                                                                      : "Aborted");
                         });

}  // namespace
}  // namespace savegate::gpu
