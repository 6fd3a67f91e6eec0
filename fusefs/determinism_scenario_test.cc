// The same seed and plan fire the same, rank by rank, however the ranks are scheduled.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <vector>

#include "fusefs/scenario_support.h"

namespace savegate::fusefs {
namespace {

constexpr int kRanks = 4;
constexpr int kSteps = 40;

constexpr const char* kRandomPlan = R"(
seed = 11
[[rule]]
name = "random write"
match = { op = "write", probability = 0.3, phase = "save *" }
action = { errno = "EIO" }
[[rule]]
name = "every seventh short"
match = { op = "write", every = 7 }
action = { short = "50%" }
[[rule]]
name = "random sync"
match = { op = "fsync", probability = 0.2 }
action = { errno = "ENOSPC" }
[[rule]]
name = "slow names"
match = { op = ["rename", "create"], probability = 0.4 }
action = { delay = "100us" }
[[rule]]
name = "commit is slow"
match = { op = "phase", phase = "commit", probability = 0.5 }
action = { delay = "50us" }
)";

// A rank's own work is always the same; when it is done is drawn.
int play_rank(const Mounted& mounted, int rank, std::uint64_t schedule) {
  std::mt19937_64 random(schedule * kRanks + static_cast<std::uint64_t>(rank));
  auto control = ControlClient::connect(mounted.control_path());
  if (!control) return 1;
  const auto mark = [&](const char* kind, const std::string& name) {
    return control->call(
        fmt::format(R"({{"cmd":"mark","rank":{},"kind":"{}","name":"{}"}})", rank, kind, name));
  };
  const std::string path = mounted.path(fmt::format("shard-{}", rank));
  const std::string bytes(512, 'x');
  for (int step = 0; step < kSteps; ++step) {
    for (std::uint64_t yields = random() % 8; yields > 0; --yields) ::sched_yield();
    if (step % 10 == 0 && !mark("enter", fmt::format("save {}", step / 10))) return 2;
    const int fd = ::open((path + ".tmp").c_str(), O_WRONLY | O_CREAT, 0644);
    if (fd < 0) return 3;
    for (int i = 0; i < 3; ++i) {
      if (::pwrite(fd, bytes.data(), bytes.size(), i * 512) < 0 && errno != EIO) return 4;
    }
    if (::fsync(fd) != 0 && errno != ENOSPC) return 5;
    ::close(fd);
    if (!mark("point", "commit")) return 6;
    if (::rename((path + ".tmp").c_str(), path.c_str()) != 0) return 7;
    if (step % 10 == 9 && !mark("leave", fmt::format("save {}", step / 10))) return 8;
  }
  return 0;
}

// What a rank met. Not compared: moments, process ids, the free space of the moment, and the number
// of the hit, which counts all ranks'.
using Met = std::map<int, std::vector<std::string>>;

Met play(std::uint64_t schedule) {
  Mounted mounted(kRandomPlan, "", Mounted::Trace::kNo);
  std::mt19937_64 random(schedule);
  std::array<int, kRanks> order = {0, 1, 2, 3};
  std::shuffle(order.begin(), order.end(), random);
  {
    std::vector<Child> ranks;
    ranks.reserve(kRanks);
    for (int rank : order)
      ranks.push_back(Child::fork([&, rank] { return play_rank(mounted, rank, schedule); }));
    for (Child& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  }
  Met met;
  for (const auto& record : mounted.fired()) {
    met[record.caller.rank].push_back(fmt::format(
        "{} {} life {} attempt {} phase `{}` {} {} `{}` {}+{} {} {}", record.rule, record.action,
        record.life, record.attempt, record.phase, op_name(record.op), record.path, record.path2,
        record.offset, record.requested, record.returned, record.error));
  }
  return met;
}

// SAVEGATE_DETERMINISM_RUNS asks for more.
int runs() {
  const char* text = std::getenv("SAVEGATE_DETERMINISM_RUNS");
  return text != nullptr ? std::atoi(text) : 5;
}

TEST(DeterminismScenarioTest, FourRanksMeetTheSameHoweverTheyAreScheduled) {
  if (auto why_not = enter_private_namespace(); !why_not.empty()) GTEST_SKIP() << why_not;
  const Met expected = play(0);
  ASSERT_EQ(expected.size(), std::size_t{kRanks}) << "not every rank met a fault";
  EXPECT_NE(expected.at(0).size(), 0U);
  for (int run = 1; run < runs(); ++run)
    ASSERT_EQ(play(static_cast<std::uint64_t>(run)), expected) << "schedule " << run;
}

}  // namespace
}  // namespace savegate::fusefs
