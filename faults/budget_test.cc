#include "faults/budget.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace savegate::faults {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr FileId kFileA = 11;
constexpr FileId kFileB = 12;

Budget budget_of(std::uint64_t limit) {
  BudgetSpec spec;
  spec.name = "quota";
  spec.limit = limit;
  return Budget(spec);
}

TEST(BudgetTest, WriteThatMeetsTheLimitGoesPartlyIn) {
  Budget budget = budget_of(8 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 0, 6 * kKiB), 6 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 6 * kKiB, 16 * kKiB), 2 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 8 * kKiB, 9 * kKiB), 0U);
  EXPECT_EQ(budget.free(), 0U);
}

TEST(BudgetTest, RewritingIsFreeAndFillingAHoleIsNot) {
  Budget budget = budget_of(16 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 12 * kKiB, 16 * kKiB), 4 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 12 * kKiB, 16 * kKiB), 4 * kKiB);
  EXPECT_EQ(budget.free(), 12 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 0, 4 * kKiB), 4 * kKiB);
  EXPECT_EQ(budget.free(), 8 * kKiB);
}

TEST(BudgetTest, FullBudgetStillTakesRewrites) {
  Budget budget = budget_of(4 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 0, 4 * kKiB), 4 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 100, 200), 100U);
  EXPECT_EQ(budget.charge(kFileA, 100, 8 * kKiB), 4 * kKiB - 100);
}

TEST(BudgetTest, OneByteCostsABlock) {
  Budget budget = budget_of(8 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 0, 1), 1U);
  EXPECT_EQ(budget.free(), 4 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 1, 4 * kKiB), 4 * kKiB - 1);
  EXPECT_EQ(budget.free(), 4 * kKiB);
}

TEST(BudgetTest, LimitIsRoundedDownToBlocks) { EXPECT_EQ(budget_of(10'000).limit(), 8 * kKiB); }

TEST(BudgetTest, TruncatingGivesBackWhatLiesBehindTheNewEnd) {
  Budget budget = budget_of(16 * kKiB);
  budget.charge(kFileA, 0, 16 * kKiB);
  budget.shrink(kFileA, 4 * kKiB + 1);
  EXPECT_EQ(budget.free(), 8 * kKiB);
  budget.shrink(kFileA, 64 * kKiB);
  EXPECT_EQ(budget.free(), 8 * kKiB);
}

// A file that is unlinked while open still holds its blocks: space comes back at the last close.
TEST(BudgetTest, PunchingAHoleGivesBackTheBlocksThatLieInItWhole) {
  Budget budget = budget_of(16 * kKiB);
  budget.charge(kFileA, 0, 16 * kKiB);
  budget.punch(kFileA, 1, 12 * kKiB + 1);
  EXPECT_EQ(budget.free(), 8 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 0, 4 * kKiB), 4 * kKiB);
  EXPECT_EQ(budget.free(), 8 * kKiB);
}

TEST(BudgetTest, UnlinkedOpenFileKeepsItsChargeUntilItIsReleased) {
  Budget budget = budget_of(8 * kKiB);
  EXPECT_EQ(budget.charge(kFileA, 0, 8 * kKiB), 8 * kKiB);
  EXPECT_EQ(budget.charge(kFileB, 0, 4 * kKiB), 0U);
  budget.release(kFileA);
  EXPECT_EQ(budget.charge(kFileB, 0, 4 * kKiB), 4 * kKiB);
}

TEST(BudgetTest, AdoptedFilesAreChargedEvenBeyondTheLimit) {
  Budget budget = budget_of(8 * kKiB);
  budget.adopt(kFileA, 12 * kKiB);
  EXPECT_EQ(budget.free(), 0U);
  EXPECT_EQ(budget.charge(kFileA, 0, 4 * kKiB), 4 * kKiB);
  EXPECT_EQ(budget.charge(kFileB, 0, 1), 0U);
  budget.shrink(kFileA, 4 * kKiB);
  EXPECT_EQ(budget.free(), 4 * kKiB);
}

// Against the plainest model: a set of charged blocks.
TEST(BudgetTest, AgreesWithASetOfBlocks) {
  std::mt19937_64 random(7);
  constexpr std::uint64_t kBlocks = 40;
  BudgetSpec spec;
  spec.block = 10;
  spec.limit = kBlocks * spec.block;
  Budget budget(spec);
  std::set<std::pair<FileId, std::uint64_t>> charged;
  for (int step = 0; step < 20'000; ++step) {
    const FileId file = random() % 3;
    const std::uint64_t from = random() % 300;
    if (random() % 8 == 0) {
      const std::uint64_t to = from + random() % 120;
      budget.punch(file, from, to);
      std::erase_if(charged, [&](const auto& block) {
        return block.first == file && block.second * 10 >= from && (block.second + 1) * 10 <= to;
      });
    } else if (random() % 8 == 0) {
      budget.shrink(file, from);
      const std::uint64_t end = (from + 9) / 10;
      std::erase_if(charged,
                    [&](const auto& block) { return block.first == file && block.second >= end; });
    } else {
      const std::uint64_t to = from + 1 + random() % 120;
      std::uint64_t granted = 0;
      for (std::uint64_t byte = from; byte < to; ++byte, ++granted) {
        if (charged.contains({file, byte / 10})) continue;
        if (charged.size() == kBlocks) break;
        charged.insert({file, byte / 10});
      }
      ASSERT_EQ(budget.charge(file, from, to), granted) << step;
    }
    ASSERT_EQ(budget.free(), (kBlocks - charged.size()) * 10) << step;
  }
}

TEST(AccountsTest, TightestOfSeveralBudgetsDecidesAndNoneIsOvercharged) {
  BudgetSpec wide;
  wide.limit = 64 * kKiB;
  BudgetSpec narrow;
  narrow.limit = 8 * kKiB;
  Accounts accounts({wide, narrow});
  const Accounts::Grant grant = accounts.charge({0, 1}, kFileA, 0, 32 * kKiB, /*whole=*/false);
  EXPECT_EQ(grant.bytes, 8 * kKiB);
  EXPECT_EQ(grant.refused_by, 1U);
  EXPECT_EQ(accounts.tightest({0})->free, 56 * kKiB);
  EXPECT_EQ(accounts.tightest({0, 1})->free, 0U);
  EXPECT_FALSE(accounts.tightest({}));
}

TEST(AccountsTest, WholeOrNothingChargesNothingWhenRefused) {
  BudgetSpec spec;
  spec.limit = 8 * kKiB;
  Accounts accounts({spec});
  EXPECT_EQ(accounts.charge({0}, kFileA, 0, 12 * kKiB, /*whole=*/true).bytes, 0U);
  EXPECT_EQ(accounts.tightest({0})->free, 8 * kKiB);
}

TEST(InodeBudgetTest, CountsWhatIsMadeUntilItIsReleased) {
  BudgetSpec spec;
  spec.inodes = 2;
  Accounts accounts({spec});
  accounts.adopt({0}, kFileA, 100);
  EXPECT_FALSE(accounts.take_inode({0}));
  EXPECT_EQ(accounts.take_inode({0}), 0U) << "one is on its way";
  accounts.settle_inode({0}, kFileB);
  EXPECT_EQ(accounts.tightest({0})->inodes->free, 0U);
  accounts.release(kFileA);
  EXPECT_EQ(accounts.tightest({0})->inodes->free, 1U);
  EXPECT_FALSE(accounts.take_inode({0}));
}

TEST(InodeBudgetTest, AnInodeOfWhichNothingWasMadeComesBack) {
  BudgetSpec spec;
  spec.inodes = 1;
  Accounts accounts({spec});
  EXPECT_FALSE(accounts.take_inode({0}));
  accounts.settle_inode({0}, 0);
  EXPECT_EQ(accounts.tightest({0})->inodes->free, 1U);
}

TEST(InodeBudgetTest, TheTightestRefusesAndTakesNoneOfTheOthers) {
  BudgetSpec wide;
  wide.inodes = 10;
  BudgetSpec none;
  none.inodes = 0;
  Accounts accounts({wide, none});
  EXPECT_EQ(accounts.take_inode({0, 1}), 1U);
  EXPECT_EQ(accounts.tightest({0})->inodes->free, 10U);
}

TEST(InodeBudgetTest, OfInodesAloneLimitsNoBytes) {
  BudgetSpec spec;
  spec.inodes = 1;
  Accounts accounts({spec});
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 50;
  EXPECT_EQ(accounts.charge({0}, kFileA, 0, kMuch, true).bytes, kMuch);
}

}  // namespace
}  // namespace savegate::faults
