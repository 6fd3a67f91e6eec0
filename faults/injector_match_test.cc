// What each key of a rule's match lets through.
#include <gtest/gtest.h>

#include <algorithm>

#include "faults/injector_testing.h"

namespace savegate::faults {
namespace {

constexpr const char* kFail = "errno = 'EIO'";

TEST(MatchTest, OpMatchesItsWordsOnly) {
  auto mount = TestMount::with_rule("op = ['write', 'sync']", kFail);
  EXPECT_TRUE(mount.op(Op::kWrite, "a", 0, 0, 1).acts());
  EXPECT_TRUE(mount.op(Op::kFsync, "a").acts());
  EXPECT_FALSE(mount.op(Op::kRead, "a", 0, 0, 1).acts());
}

TEST(MatchTest, WithoutOpLookupGetattrReleaseAndPhaseNeverMatch) {
  auto mount = TestMount::with_rule("", kFail);
  for (Op op : {Op::kLookup, Op::kGetattr, Op::kRelease}) EXPECT_FALSE(mount.op(op, "a").acts());
  EXPECT_FALSE(mount.mark("save 1").acts());
  EXPECT_TRUE(mount.op(Op::kStatfs, "a").acts());
}

TEST(MatchTest, NamedLookupMatches) {
  auto mount = TestMount::with_rule("op = 'lookup'", "errno = 'ENOENT'");
  EXPECT_EQ(mount.op(Op::kLookup, "a").error, ENOENT);
}

TEST(MatchTest, PathIsAGlob) {
  auto mount = TestMount::with_rule("path = '**/shard-*'", kFail);
  EXPECT_TRUE(mount.write("step_1/shard-0", 0, 1).acts());
  EXPECT_FALSE(mount.write("step_1/other", 0, 1).acts());
  EXPECT_EQ(mount.injector.rules_for("step_1/other"), nullptr);
}

TEST(MatchTest, RoleOfATemporaryFileIsThatOfWhatItBecomes) {
  auto mount = TestMount::with_rule("role = 'marker'", kFail);
  EXPECT_TRUE(mount.write("step_1/.metadata.tmp", 0, 1).acts());
  EXPECT_TRUE(mount.write("step_1/.metadata", 0, 1).acts());
  EXPECT_FALSE(mount.write("step_1/shard-0.tmp", 0, 1).acts());
}

TEST(MatchTest, TemporaryNarrows) {
  auto mount = TestMount::with_rule("role = 'marker', temporary = false", kFail);
  EXPECT_FALSE(mount.write("step_1/.metadata.tmp", 0, 1).acts());
  EXPECT_TRUE(mount.write("step_1/.metadata", 0, 1).acts());
}

TEST(MatchTest, RankMatchesItsRanksOnly) {
  auto mount = TestMount::with_rule("rank = [1, 3]", kFail);
  EXPECT_FALSE(mount.write("a", 0, 1, -1).acts());
  EXPECT_FALSE(mount.write("a", 0, 1, 0).acts());
  EXPECT_TRUE(mount.write("a", 0, 1, 1).acts());
  EXPECT_TRUE(mount.write("a", 0, 1, 3).acts());
}

TEST(MatchTest, WithoutRankACallerOfNoRankMatchesToo) {
  auto mount = TestMount::with_rule("", kFail);
  EXPECT_TRUE(mount.write("a", 0, 1, -1).acts());
}

TEST(MatchTest, ProcessTellsMainThreadAndChildApart) {
  auto mount = TestMount::with_rule("process = ['thread', 'child']", kFail);
  EXPECT_FALSE(mount.op(Op::kWrite, "a", 0, 0, 1, Relation::kProcess).acts());
  EXPECT_TRUE(mount.op(Op::kWrite, "a", 0, 0, 1, Relation::kThread).acts());
  EXPECT_TRUE(mount.op(Op::kWrite, "a", 0, 0, 1, Relation::kChild).acts());
}

TEST(MatchTest, LifeMatchesTheInjectorsLife) {
  const char* plan = "[[rule]]\nmatch = { life = 2 }\naction = { errno = 'EIO' }\n";
  EXPECT_FALSE(TestMount(plan, 1).write("a", 0, 1).acts());
  EXPECT_TRUE(TestMount(plan, 2).write("a", 0, 1).acts());
}

TEST(MatchTest, PhaseMatchesTheSpanAndItsPoints) {
  auto mount = TestMount::with_rule("phase = 'save 2'", kFail);
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
  mount.injector.enter(0, "save 1");
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
  mount.injector.enter(0, "save 2");
  EXPECT_TRUE(mount.write("a", 0, 1).acts());
  EXPECT_FALSE(mount.write("a", 0, 1, /*rank=*/1).acts());
  mount.injector.point(0, "commit");
  const Decision decision = mount.write("a", 0, 1);
  ASSERT_TRUE(decision.acts());
  EXPECT_EQ(decision.hits.at(0).phase, "save 2/commit");
  mount.injector.leave(0, "save 2");
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
}

TEST(MatchTest, PhaseMayNameOnePoint) {
  auto mount = TestMount::with_rule("phase = 'save */commit'", kFail);
  mount.injector.enter(0, "save 2");
  mount.injector.point(0, "write");
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
  mount.injector.point(0, "commit");
  EXPECT_TRUE(mount.write("a", 0, 1).acts());
}

TEST(MatchTest, AttemptCountsTheSpansOfARank) {
  auto mount = TestMount::with_rule("phase = 'save 2', attempt = 2", kFail);
  mount.injector.enter(0, "save 2");
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
  mount.injector.leave(0, "save 2");
  mount.injector.enter(0, "save 2");
  EXPECT_EQ(mount.injector.attempt(0), 2);
  EXPECT_EQ(mount.write("a", 0, 1).hits.at(0).attempt, 2);
}

TEST(MatchTest, PhaseOperationMatchesAMarkByNameOrPlace) {
  auto mount = TestMount::with_rule("op = 'phase', phase = 'save 2/commit'", "hang = true");
  mount.injector.enter(0, "save 2");
  EXPECT_FALSE(mount.mark("save 2").acts());
  mount.injector.point(0, "write");
  EXPECT_FALSE(mount.mark("write").acts());
  mount.injector.point(0, "commit");
  EXPECT_TRUE(mount.mark("commit").hang);
  EXPECT_FALSE(mount.write("a", 0, 1).acts());

  auto by_name = TestMount::with_rule("op = 'phase', phase = 'commit'", "hang = true");
  by_name.injector.enter(0, "save 7");
  by_name.injector.point(0, "commit");
  EXPECT_TRUE(by_name.mark("commit").hang);
}

TEST(MatchTest, PhaseOperationOfASpanIsItsOwnMarkOnly) {
  auto mount = TestMount::with_rule("op = 'phase', phase = 'save 2'", "delay = '1s'");
  mount.injector.enter(0, "save 2");
  EXPECT_TRUE(mount.mark("save 2").acts());
  mount.injector.point(0, "commit");
  EXPECT_FALSE(mount.mark("commit").acts());
}

TEST(MatchTest, OffsetHoldsTheFirstByte) {
  auto mount = TestMount::with_rule("offset = ['4KiB', '8KiB']", kFail);
  EXPECT_FALSE(mount.write("a", 4095, 10).acts());
  EXPECT_TRUE(mount.write("a", 4096, 10).acts());
  EXPECT_FALSE(mount.write("a", 8192, 10).acts());
  EXPECT_FALSE(mount.op(Op::kFsync, "a", 0, 4096).acts());
}

TEST(MatchTest, SizeIsTheBytesAskedFor) {
  auto mount = TestMount::with_rule("size = ['4KiB']", kFail);
  EXPECT_FALSE(mount.write("a", 0, 4095).acts());
  EXPECT_TRUE(mount.write("a", 0, 4096).acts());
}

std::string pattern(TestMount& mount, int count, std::string_view path = "a", int rank = 0) {
  std::string hits;
  for (int i = 0; i < count; ++i) hits += mount.write(path, 0, 100, rank).acts() ? 'x' : '.';
  return hits;
}

TEST(MatchTest, NthIsCountedByRank) {
  auto mount = TestMount::with_rule("op = 'write', nth = 2", kFail);
  EXPECT_EQ(pattern(mount, 3), ".x.");
  EXPECT_EQ(pattern(mount, 3, "b", /*rank=*/1), ".x.");
}

TEST(MatchTest, NthMayBeCountedByFileOrForTheWholeRule) {
  auto by_file = TestMount::with_rule("op = 'write', nth = 2, per = 'file'", kFail);
  EXPECT_EQ(pattern(by_file, 3, "a"), ".x.");
  EXPECT_EQ(pattern(by_file, 3, "b"), ".x.");
  auto by_rule = TestMount::with_rule("op = 'write', nth = 2, per = 'rule'", kFail);
  EXPECT_EQ(pattern(by_rule, 1, "a", 0), ".");
  EXPECT_EQ(pattern(by_rule, 2, "b", 1), "x.");
}

TEST(MatchTest, EveryIsEachSoManieth) {
  auto mount = TestMount::with_rule("op = 'write', every = 3", kFail);
  EXPECT_EQ(pattern(mount, 7), "..x..x.");
  auto from = TestMount::with_rule("op = 'write', nth = 2, every = 3", kFail);
  EXPECT_EQ(pattern(from, 9), ".x..x..x.");
}

TEST(MatchTest, AfterBytesMatchesOnceSoManyWentBy) {
  auto mount = TestMount::with_rule("op = 'write', after_bytes = 200", kFail);
  EXPECT_EQ(pattern(mount, 5), "..xxx");
}

TEST(MatchTest, OnceHitsOnceInALife) {
  auto mount = TestMount::with_rule("op = 'write', once = true", kFail);
  EXPECT_EQ(pattern(mount, 3), "x..");
  EXPECT_EQ(pattern(mount, 3, "b", 1), "...");
}

TEST(MatchTest, ProbabilityHitsItsShare) {
  auto mount = TestMount::with_rule("op = 'write', probability = 0.25", kFail);
  const std::string hits = pattern(mount, 4000);
  const auto count = std::count(hits.begin(), hits.end(), 'x');
  EXPECT_GT(count, 850);
  EXPECT_LT(count, 1150);
  auto never = TestMount::with_rule("op = 'write', probability = 0", kFail);
  EXPECT_EQ(pattern(never, 5), ".....");
  auto always = TestMount::with_rule("op = 'write', probability = 1", kFail);
  EXPECT_EQ(pattern(always, 5), "xxxxx");
}

TEST(MatchTest, AllKeysMustHold) {
  auto mount = TestMount::with_rule("op = 'write', rank = 1, path = 'a', nth = 2", kFail);
  EXPECT_EQ(pattern(mount, 3, "a", 0), "...");
  EXPECT_EQ(pattern(mount, 3, "b", 1), "...");
  EXPECT_EQ(pattern(mount, 3, "a", 1), ".x.");
}

TEST(SinceTest, TheWindowCountsFromTheRanksOwnMark) {
  auto mount = TestMount::with_rule("since = { mark = 'save 1', from = '100ns', to = '200ns' }",
                                    "errno = 'EIO'");
  const auto hits_at = [&mount](std::uint64_t now_ns, int rank = 0) {
    mount.now_ns = now_ns;
    return mount.write("a", 0, 1, rank).acts();
  };
  EXPECT_FALSE(hits_at(1000));
  mount.injector.enter(0, "save 1", 1000);
  EXPECT_FALSE(hits_at(1099));
  EXPECT_TRUE(hits_at(1100));
  EXPECT_TRUE(hits_at(1199));
  EXPECT_FALSE(hits_at(1150, /*rank=*/1));
  EXPECT_FALSE(hits_at(1200));
  EXPECT_TRUE(hits_at(1150)) << "an operation that took its time earlier";
}

TEST(SinceTest, TheLatestMarkCountsAndLeavingItsSpanEndsNothing) {
  auto mount = TestMount::with_rule("since = { mark = '*/commit', to = '100ns' }", "errno = 'EIO'");
  mount.injector.enter(0, "save 1", 1000);
  mount.injector.point(0, "commit", 1050);
  mount.injector.leave(0, "save 1");
  mount.now_ns = 1149;
  EXPECT_TRUE(mount.write("a", 0, 1).acts());
  mount.now_ns = 2000;
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
  mount.injector.enter(0, "save 2", 2001);
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
  mount.injector.point(0, "commit", 2000);
  EXPECT_TRUE(mount.write("a", 0, 1).acts());
}

TEST(SinceTest, AMarkItselfCanBeMet) {
  auto mount = TestMount::with_rule("op = 'phase', since = { mark = 'save 1', from = '5ns' }",
                                    "delay = '1ms'");
  mount.injector.enter(0, "save 1", 1000);
  mount.now_ns = 1000;
  EXPECT_FALSE(mount.mark("save 1").acts());
  mount.now_ns = 1005;
  EXPECT_TRUE(mount.mark("commit").acts());
}

// One word of the index is 64 rules.
TEST(ManyRulesTest, EachActsOnItsOwnOperationAlone) {
  std::string plan;
  for (int i = 0; i < 200; ++i) {
    const std::string n = std::to_string(i);
    plan += "[[rule]]\nname = '" + n +
            "'\nmatch = { op = 'write', rank = " + std::to_string(i % 3) + ", offset = [" + n +
            ", " + std::to_string(i + 1) + "] }\naction = { errno = 'EIO' }\n";
  }
  TestMount mount(plan);
  for (std::uint64_t i = 0; i < 200; ++i) {
    const Decision decision = mount.write("a", i, 1, static_cast<int>(i % 3));
    ASSERT_EQ(decision.hits.size(), 1U) << i;
    EXPECT_EQ(decision.hits[0].rule, std::to_string(i));
    EXPECT_FALSE(mount.write("a", i, 1, static_cast<int>((i + 1) % 3)).acts());
  }
  EXPECT_FALSE(mount.write("a", 200, 1, 0).acts());
}

TEST(ManyRulesTest, ARuleThatIsOverForARankGoesOnForTheOthers) {
  auto mount = TestMount::with_rule("op = 'write', nth = 2", "errno = 'EIO'");
  std::string seen;
  for (int i = 0; i < 4; ++i) seen += mount.write("a", 0, 1, 0).acts() ? 'x' : '.';
  for (int i = 0; i < 4; ++i) seen += mount.write("a", 0, 1, 1).acts() ? 'x' : '.';
  EXPECT_EQ(seen, ".x...x..");
  EXPECT_EQ(mount.injector.counts().at(0).candidates, 4U)
      << "what came after the 2nd is not counted";
}

TEST(ManyRulesTest, ARuleThatIsOverForAFileGoesOnForTheOthers) {
  auto mount = TestMount::with_rule("op = 'write', nth = 2, per = 'file'", "errno = 'EIO'");
  std::string seen;
  for (int i = 0; i < 4; ++i) seen += mount.write("a", 0, 1).acts() ? 'x' : '.';
  for (int i = 0; i < 4; ++i) seen += mount.write("b", 0, 1).acts() ? 'x' : '.';
  EXPECT_EQ(seen, ".x...x..");
}

}  // namespace
}  // namespace savegate::faults
