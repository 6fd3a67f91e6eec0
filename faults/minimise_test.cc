#include "faults/minimise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace savegate::faults {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Set = std::vector<std::size_t>;

bool holds(const Set& items, std::size_t item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

TEST(MinimiseTest, OneGuiltyItemOfTwelveIsFoundWhereverItIs) {
  for (std::size_t guilty = 0; guilty < 12; ++guilty) {
    int tries = 0;
    const auto kept = fewest(12, [&](const Set& items) -> Result<bool> {
      ++tries;
      return holds(items, guilty);
    });
    ASSERT_TRUE(kept);
    EXPECT_THAT(*kept, ElementsAre(guilty));
    EXPECT_LE(tries, 10);
  }
}

TEST(MinimiseTest, ItemsThatFailOnlyTogetherAreAllKept) {
  const auto kept = fewest(12, [](const Set& items) -> Result<bool> {
    return holds(items, 1) && holds(items, 6) && holds(items, 11);
  });
  ASSERT_TRUE(kept);
  EXPECT_THAT(*kept, ElementsAre(1, 6, 11));
}

// An item that excuses another: of what is left, none can be left out.
TEST(MinimiseTest, NothingThatIsKeptCanBeLeftOut) {
  const auto fails = [](const Set& items) -> Result<bool> {
    return (holds(items, 2) && !holds(items, 3)) || (holds(items, 3) && holds(items, 7));
  };
  const auto kept = fewest(9, fails);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(*fails(*kept));
  for (const std::size_t item : *kept) {
    Set others = *kept;
    std::erase(others, item);
    EXPECT_FALSE(*fails(others)) << item;
  }
}

TEST(MinimiseTest, WhatFailsWithoutAnyItemNeedsNone) {
  const auto kept = fewest(3, [](const Set&) -> Result<bool> { return true; });
  ASSERT_TRUE(kept);
  EXPECT_THAT(*kept, IsEmpty());
}

TEST(MinimiseTest, NoSetIsTriedTwice) {
  std::set<Set> tried;
  const auto kept = fewest(10, [&](const Set& items) -> Result<bool> {
    EXPECT_TRUE(tried.insert(items).second);
    return holds(items, 0) && holds(items, 4) && holds(items, 9);
  });
  ASSERT_TRUE(kept);
}

TEST(MinimiseTest, AnErrorOfAPredicateEndsTheSearch) {
  int tries = 0;
  const auto kept = fewest(4, [&](const Set&) -> Result<bool> {
    ++tries;
    return fail(unavailable("gone"));
  });
  EXPECT_FALSE(kept);
  EXPECT_EQ(tries, 1);
}

TEST(MinimiseTest, TheSmallestChoiceThatFailsIsFound) {
  for (std::size_t least = 0; least < 9; ++least) {
    const auto found =
        smallest(9, [&](std::size_t choice) -> Result<bool> { return choice >= least; });
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, least);
  }
}

TEST(MinimiseTest, WhereAllSmallerChoicesAreCleanTheLastStays) {
  const auto found = smallest(5, [](std::size_t) -> Result<bool> { return false; });
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, 4u);
}

}  // namespace
}  // namespace savegate::faults
