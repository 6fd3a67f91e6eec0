// The interleaving of ranks changes nothing: what a rank meets depends on its own operations alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "faults/injector_testing.h"

namespace savegate::faults {
namespace {

constexpr int kRanks = 4;
constexpr std::size_t kOperations = 200;

constexpr const char* kPlan = R"(
seed = 11
[[rule]]
name = "random"
match = { op = "write", probability = 0.3 }
action = { errno = "EIO" }
[[rule]]
name = "random slow"
match = { probability = 0.2, path = "**/shard-*" }
action = { delay = "1ms" }
[[rule]]
name = "every"
match = { op = "write", every = 7 }
action = { short = "50%" }
[[rule]]
name = "after bytes"
match = { op = "fsync", nth = 5 }
action = { errno = "ENOSPC" }
[[rule]]
name = "drawn"
match = { op = "write" }
action = { delay = { exponential = "1ms" } }
[[rule]]
name = "late"
match = { op = "write", every = 11 }
action = { errno = "EIO", late = "write" }
)";

// The n-th operation of any rank, on its own file.
std::string step(TestMount& mount, int rank, std::size_t n) {
  const std::string path = "step_1/shard-" + std::to_string(rank);
  const Op op = n % 5 == 4 ? Op::kFsync : Op::kWrite;
  const Decision decision = mount.op(op, path, rank, n * 100, 100);
  std::string seen = std::to_string(decision.error) + ":" + std::to_string(decision.delay_ns);
  for (const Hit& hit : decision.hits) seen += ":" + hit.rule;
  return seen;
}

using Seen = std::array<std::vector<std::string>, kRanks>;

Seen run_in_order(const std::vector<int>& order) {
  TestMount mount(kPlan);
  Seen seen;
  for (int rank : order) {
    auto& own = seen.at(static_cast<std::size_t>(rank));
    own.push_back(step(mount, rank, own.size()));
  }
  return seen;
}

std::vector<int> rank_by_rank() {
  std::vector<int> order;
  for (int rank = 0; rank < kRanks; ++rank) order.insert(order.end(), kOperations, rank);
  return order;
}

TEST(DeterminismTest, ShuffledRanksMeetTheSameFaults) {
  std::vector<int> order = rank_by_rank();
  const Seen expected = run_in_order(order);
  std::mt19937_64 random(3);
  for (int i = 0; i < 100; ++i) {
    std::shuffle(order.begin(), order.end(), random);
    ASSERT_EQ(run_in_order(order), expected) << "shuffle " << i;
  }
}

// Each rank on a thread that gives way at moments drawn from the seed.
Seen run_on_threads(std::uint64_t schedule) {
  TestMount mount(kPlan);
  Seen seen;
  std::array<int, kRanks> order{};
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 starts(schedule);
  std::shuffle(order.begin(), order.end(), starts);
  std::vector<std::thread> threads;
  threads.reserve(kRanks);
  for (int rank : order) {
    auto& own = seen.at(static_cast<std::size_t>(rank));
    threads.emplace_back([&mount, &own, rank, schedule] {
      std::mt19937_64 random(schedule * kRanks + static_cast<std::uint64_t>(rank));
      for (std::size_t n = 0; n < kOperations; ++n) {
        if (random() % 8 == 0) std::this_thread::yield();
        own.push_back(step(mount, rank, n));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return seen;
}

TEST(DeterminismTest, RanksOnThreadsMeetTheSameFaultsInAHundredRuns) {
  const Seen expected = run_in_order(rank_by_rank());
  for (std::uint64_t run = 0; run < 100; ++run)
    ASSERT_EQ(run_on_threads(run), expected) << "schedule " << run;
}

TEST(DeterminismTest, RanksDrawDifferentNumbers) {
  const Seen seen = run_in_order(rank_by_rank());
  EXPECT_NE(seen[0], seen[1]);
}

TEST(DeterminismTest, AnotherSeedDrawsOthers) {
  auto hits = [](const std::string& seed) {
    TestMount mount("seed = " + seed +
                    "\n[[rule]]\nmatch = { probability = 0.5 }\naction = { errno = 'EIO' }\n");
    std::string seen;
    for (int i = 0; i < 64; ++i) seen += mount.write("a", 0, 1).acts() ? 'x' : '.';
    return seen;
  };
  EXPECT_EQ(hits("1"), hits("1"));
  EXPECT_NE(hits("1"), hits("2"));
}

TEST(DeterminismTest, AnotherRuleInThePlanChangesNothing) {
  const std::string rule =
      "[[rule]]\nname = 'r'\nmatch = { probability = 0.5 }\naction = { errno = 'EIO' }\n";
  TestMount alone(rule);
  TestMount second("[[rule]]\nname = 'q'\naction = { delay = '1ms' }\n" + rule);
  for (int i = 0; i < 64; ++i) {
    ASSERT_EQ(alone.write("a", 0, 1).error, second.write("a", 0, 1).error) << i;
  }
}

// Marks, re-arming and accounts race with decisions; the sanitizer judges, and no count is lost.
TEST(ThreadsTest, DecisionsMarksAndAccountsRunTogether) {
  TestMount mount(
      "[[rule]]\nname = 'r'\nmatch = { op = 'write', phase = 'save *' }\naction = { delay = '1ns' "
      "}\n"
      "[[rule]]\nname = 'l'\nmatch = { op = 'write' }\naction = { errno = 'EIO', late = 'fsync' }\n"
      "[[budget]]\nname = 'b'\nlimit = '1MiB'\n");
  constexpr int kEach = 500;
  std::vector<std::thread> threads;
  threads.reserve(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&mount, rank] {
      const std::string path = "shard-" + std::to_string(rank);
      mount.injector.enter(rank, "save 1");
      for (int i = 0; i < kEach; ++i) {
        mount.write(path, static_cast<std::uint64_t>(i) * 4096, 4096, rank);
        mount.injector.point(rank, "write");
        mount.op(Op::kFsync, path, rank);
        if (i % 50 == 0) mount.injector.truncated(TestMount::file_of(path), 0);
        mount.injector.space(path);
      }
      mount.injector.released(TestMount::file_of(path));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto counts = mount.injector.counts();
  EXPECT_EQ(counts.at(0).hits, static_cast<std::uint64_t>(kRanks * kEach));
  EXPECT_EQ(counts.at(1).hits, static_cast<std::uint64_t>(kRanks * kEach));
  EXPECT_EQ(mount.injector.space("x")->free, std::uint64_t{1} << 20);
}

}  // namespace
}  // namespace savegate::faults
