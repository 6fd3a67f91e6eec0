#include "faults/rank_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace savegate::faults {
namespace {

struct Counter {
  explicit Counter(int of) : rank(of) {}
  const int rank;
  std::atomic<int> count{0};
};

TEST(RankTableTest, FindsWhatWasMadeAndNothingElse) {
  RankTable<Counter> table;
  EXPECT_EQ(table.find(0), nullptr);
  for (int rank = -1; rank < 1000; ++rank) EXPECT_EQ(table.of(rank).rank, rank);
  for (int rank = -1; rank < 1000; ++rank) EXPECT_EQ(table.find(rank), &table.of(rank));
  EXPECT_EQ(table.find(1000), nullptr);
}

TEST(RankTableTest, ThreadsThatMakeTheSameRankMeetInOne) {
  RankTable<Counter> table;
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&table] {
      for (int rank = 0; rank < 600; ++rank) ++table.of(rank).count;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < 600; ++rank) ASSERT_EQ(table.find(rank)->count, 4);
}

}  // namespace
}  // namespace savegate::faults
