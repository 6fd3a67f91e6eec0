// What each action decides, how several act on one operation, and what the injector keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "faults/injector_testing.h"

namespace savegate::faults {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

TEST(ActionTest, ErrnoLetsNothingThrough) {
  auto mount = TestMount::with_rule("op = 'write'", "errno = 'ENOSPC'");
  const Decision decision = mount.write("a", 0, 4096, 2);
  EXPECT_EQ(decision.error, ENOSPC);
  EXPECT_EQ(decision.allowed, 0U);
  EXPECT_EQ(decision.hits.at(0).rule, "r");
  EXPECT_EQ(decision.hits.at(0).hit, 1U);
  EXPECT_EQ(decision.hits.at(0).action, "errno ENOSPC");
  EXPECT_EQ(mount.write("a", 0, 4096).hits.at(0).hit, 2U);
}

TEST(ActionTest, ErrnoAfterLetsItsBytesThroughFirst) {
  auto mount = TestMount::with_rule("op = 'write'", "errno = 'ENOSPC', after = '1KiB'");
  EXPECT_EQ(mount.write("a", 0, 4096).allowed, 1024U);
  EXPECT_EQ(mount.write("a", 0, 100).allowed, 100U);
  EXPECT_EQ(mount.write("a", 0, 100).error, ENOSPC);
  EXPECT_FALSE(mount.op(Op::kFsync, "a").acts());
}

TEST(ActionTest, ShortReplacesTheErrorByFewerBytes) {
  auto mount = TestMount::with_rule("", "short = '50%'");
  const Decision decision = mount.write("a", 0, 4096);
  EXPECT_EQ(decision.allowed, 2048U);
  EXPECT_TRUE(decision.allowed_is_short);
  EXPECT_EQ(decision.error, 0);
  EXPECT_TRUE(mount.op(Op::kRead, "a", 0, 0, 10).allowed_is_short);
}

// A program that continues short writes must get to the end.
TEST(ActionTest, ShareOfAShortWriteIsNeverNothing) {
  auto mount = TestMount::with_rule("", "short = '50%'");
  EXPECT_EQ(mount.write("a", 0, 2).allowed, 1U);
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
}

// No file system gives a page in part: the program that maps the file would be ended by SIGBUS.
TEST(ActionTest, AReadThatFillsThePagesOfAMappingIsNotShort) {
  TestMount mount = TestMount::with_rule("op = 'read'", "short = '50%'");
  mount.of_mapping = true;
  EXPECT_TRUE(mount.op(Op::kRead, "f", 0, 0, 4096).hits.empty());
  mount.of_mapping = false;
  EXPECT_EQ(mount.op(Op::kRead, "f", 0, 0, 4096).allowed, 2048u);
}

TEST(ActionTest, ShortOfMoreThanWasAskedIsNoHit) {
  auto mount = TestMount::with_rule("", "short = '1KiB'");
  EXPECT_FALSE(mount.write("a", 0, 1024).acts());
  EXPECT_EQ(mount.injector.counts().at(0).candidates, 1U);
  EXPECT_EQ(mount.injector.counts().at(0).hits, 0U);
}

TEST(ActionTest, DelaysAddUp) {
  TestMount mount("[[rule]]\naction = { delay = '200ms' }\n[[rule]]\naction = { delay = '1s' }\n");
  const Decision decision = mount.write("a", 0, 1);
  EXPECT_EQ(decision.delay_ns, 1'200'000'000U);
  EXPECT_EQ(decision.hits.size(), 2U);
  EXPECT_EQ(decision.allowed, UINT64_MAX);
}

TEST(ActionTest, HangNamesItsRule) {
  TestMount mount("[[rule]]\naction = { delay = '1s' }\n[[rule]]\naction = { hang = true }\n");
  const Decision decision = mount.write("a", 0, 1);
  EXPECT_TRUE(decision.hang);
  EXPECT_EQ(decision.hang_rule, 1U);
}

TEST(ActionTest, KillInTheMiddleSaysTheByte) {
  auto mount = TestMount::with_rule(
      "op = 'write'", "kill = 'SIGKILL', when = 'middle', at = '25%', target = 'job'");
  const Decision decision = mount.write("a", 0, 4096);
  ASSERT_TRUE(decision.kill);
  EXPECT_EQ(decision.kill->signal, SIGKILL);
  EXPECT_EQ(decision.kill->when, When::kMiddle);
  EXPECT_EQ(decision.kill->target, KillTarget::kJob);
  EXPECT_EQ(decision.allowed, 1024U);
  EXPECT_EQ(decision.hits.at(0).action, "kill SIGKILL middle 25% job");
}

TEST(ActionTest, KillBeforeAndAfterLeaveTheBytesAlone) {
  for (const char* when : {"before", "after"}) {
    auto mount = TestMount::with_rule("op = 'rename'",
                                      "kill = 'SIGTERM', when = '" + std::string(when) + "'");
    const Decision decision = mount.op(Op::kRename, "a");
    ASSERT_TRUE(decision.kill);
    EXPECT_EQ(decision.allowed, UINT64_MAX);
  }
}

TEST(ActionTest, CorruptSaysWhereAndHowMuch) {
  auto mount = TestMount::with_rule("op = 'write'", "corrupt = 'zero', at = '50%', length = 16");
  const Decision decision = mount.write("a", 0, 100);
  ASSERT_TRUE(decision.corrupt);
  EXPECT_EQ(decision.corrupt->kind, Corruption::kZero);
  EXPECT_EQ(decision.corrupt_at, 50U);
  EXPECT_EQ(decision.corrupt_length, 16U);
  EXPECT_EQ(mount.write("a", 0, 20).corrupt_length, 10U);
}

TEST(ActionTest, CorruptionBeyondTheOperationIsNoHit) {
  auto mount = TestMount::with_rule("op = 'write'", "corrupt = 'flip', at = 100");
  EXPECT_FALSE(mount.write("a", 0, 100).acts());
  EXPECT_TRUE(mount.write("a", 0, 101).acts());
}

// Else a `once` rule would be spent, and on record, by the read that only finds the end of the
// file.
TEST(ActionTest, AReadThatFindsNothingIsNeitherDamagedNorShort) {
  for (const char* action : {"corrupt = 'flip', on = 'out'", "corrupt = 'swap', on = 'out'",
                             "short = 1", "short = '50%'"}) {
    auto mount = TestMount::with_rule("op = 'read', once = true", action);
    mount.available = 0;
    EXPECT_FALSE(mount.op(Op::kRead, "a", 0, 100, 100).acts()) << action;
    mount.available = 100;
    EXPECT_TRUE(mount.op(Op::kRead, "a", 0, 0, 100).acts()) << action;
  }
}

TEST(ActionTest, AShareOfAReadIsOfTheBytesThatThereAre) {
  auto damaged =
      TestMount::with_rule("op = 'read'", "corrupt = 'zero', on = 'out', at = '50%', length = 16");
  damaged.available = 20;
  EXPECT_EQ(damaged.op(Op::kRead, "a", 0, 0, 100).corrupt_at, 10U);
  EXPECT_EQ(damaged.op(Op::kRead, "a", 0, 0, 100).corrupt_length, 10U);
  auto short_read = TestMount::with_rule("op = 'read'", "short = '50%'");
  short_read.available = 20;
  EXPECT_EQ(short_read.op(Op::kRead, "a", 0, 0, 100).allowed, 10U);
}

TEST(ActionTest, CorruptOutIsForReadsOnly) {
  auto mount = TestMount::with_rule("", "corrupt = 'flip', on = 'out'");
  EXPECT_FALSE(mount.write("a", 0, 100).acts());
  EXPECT_TRUE(mount.op(Op::kRead, "a", 0, 0, 100).corrupt);
}

TEST(ActionTest, LieIsSuccessWithoutEffect) {
  auto mount = TestMount::with_rule("op = 'fsync'", "lie = true");
  const Decision decision = mount.op(Op::kFsync, "a");
  EXPECT_TRUE(decision.lie);
  EXPECT_EQ(decision.error, 0);
}

TEST(LateErrorTest, ComesAtTheNextFsyncAndThenNoMore) {
  auto mount = TestMount::with_rule("op = 'write', nth = 1", "errno = 'EIO', late = 'fsync'");
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
  EXPECT_EQ(mount.injector.counts().at(0).hits, 0U);
  EXPECT_FALSE(mount.op(Op::kFsync, "b").acts());
  EXPECT_FALSE(mount.op(Op::kClose, "a").acts());
  const Decision decision = mount.op(Op::kFsync, "a", /*rank=*/1);
  EXPECT_EQ(decision.error, EIO);
  EXPECT_EQ(decision.hits.at(0).action, "errno EIO at the next fsync");
  EXPECT_EQ(mount.injector.counts().at(0).hits, 1U);
  EXPECT_FALSE(mount.op(Op::kFsync, "a").acts());
}

TEST(LateErrorTest, MayComeAtClose) {
  auto mount = TestMount::with_rule("role = 'shard'", "errno = 'EDQUOT', late = 'close'");
  EXPECT_FALSE(mount.write("shard-0", 0, 1).acts());
  EXPECT_FALSE(mount.op(Op::kFsync, "shard-0").acts());
  EXPECT_EQ(mount.op(Op::kClose, "shard-0").error, EDQUOT);
  EXPECT_FALSE(mount.op(Op::kClose, "shard-0").acts());
}

TEST(LateErrorTest, DiesWithItsFile) {
  auto mount = TestMount::with_rule("op = 'write'", "errno = 'EIO', late = 'fsync'");
  mount.write("a", 0, 1);
  mount.injector.released(TestMount::file_of("a"));
  EXPECT_FALSE(mount.op(Op::kFsync, "a").acts());
}

TEST(LateErrorTest, OnceMarksOneFile) {
  auto mount = TestMount::with_rule("op = 'write', once = true", "errno = 'EIO', late = 'fsync'");
  mount.write("a", 0, 1);
  mount.write("b", 0, 1);
  EXPECT_FALSE(mount.op(Op::kFsync, "b").acts());
  EXPECT_TRUE(mount.op(Op::kFsync, "a").acts());
}

TEST(LateErrorTest, MayComeAtTheNextWriteWhichIsNotAcceptedItself) {
  auto mount = TestMount::with_rule("op = 'write'", "errno = 'EIO', late = 'write'");
  std::string seen;
  for (int i = 0; i < 4; ++i) seen += mount.write("a", 0, 1).error == EIO ? 'x' : '.';
  EXPECT_EQ(seen, ".x.x");
  EXPECT_EQ(mount.write("a", 0, 1).error, 0);
  EXPECT_EQ(mount.write("b", 0, 1).error, 0);
  EXPECT_EQ(mount.write("a", 0, 1).hits.at(0).action, "errno EIO at the next write");
}

TEST(DropTest, TheFsyncThatFailsDropsWhatWasNotSynced) {
  auto mount = TestMount::with_rule("op = 'fsync', nth = 1", "errno = 'EIO', drop = true");
  EXPECT_TRUE(mount.injector.rules_for("a")->keeps_unsynced());
  EXPECT_TRUE(mount.injector.rules_for("a")->needs_direct_writes());
  EXPECT_FALSE(mount.write("a", 0, 1).acts());
  const Decision decision = mount.op(Op::kFsync, "a");
  EXPECT_EQ(decision.error, EIO);
  EXPECT_TRUE(decision.drops_unsynced);
  EXPECT_FALSE(mount.op(Op::kFsync, "a").acts());
}

TEST(DropTest, ALateErrorMayDropToo) {
  auto mount = TestMount::with_rule("op = 'write'", "errno = 'EIO', late = 'fsync', drop = true");
  mount.write("a", 0, 1);
  EXPECT_TRUE(mount.op(Op::kFsync, "a").drops_unsynced);
}

// Whether it is lost is only known at the end.
TEST(LoseTest, TheWriteGoesOnAndCountsNoHit) {
  auto mount = TestMount::with_rule("op = 'write', once = true", "lose = true");
  const Decision decision = mount.write("a", 0, 1);
  ASSERT_TRUE(decision.loses);
  EXPECT_EQ(decision.loses->rule, "r");
  EXPECT_EQ(decision.allowed, UINT64_MAX);
  EXPECT_TRUE(decision.hits.empty());
  EXPECT_EQ(mount.injector.counts().at(0).hits, 0U);
  EXPECT_FALSE(mount.write("a", 0, 1).loses);
}

TEST(DelayTest, DrawnDelaysAreTheRanksOwnAndRepeat) {
  const auto drawn = [](int rank, const std::string& seed) {
    TestMount mount("seed = " + seed +
                    "\n[[rule]]\naction = { delay = { uniform = ['1ms', '2ms'] } }\n");
    std::vector<std::uint64_t> delays;
    for (int i = 0; i < 8; ++i) {
      delays.push_back(mount.write("a", 0, 1, rank).delay_ns);
      mount.write("a", 0, 1, 7);
    }
    return delays;
  };
  EXPECT_EQ(drawn(0, "1"), drawn(0, "1"));
  EXPECT_NE(drawn(0, "1"), drawn(1, "1"));
  EXPECT_NE(drawn(0, "1"), drawn(0, "2"));
  EXPECT_THAT(drawn(0, "1"), ::testing::Each(::testing::AllOf(::testing::Ge(1'000'000U),
                                                              ::testing::Lt(2'000'000U))));
}

TEST(BandwidthTest, AllOperationsShareTheLink) {
  auto mount = TestMount::with_rule("", "bandwidth = '1KB/s'");
  mount.now_ns = 5;
  EXPECT_EQ(mount.write("a", 0, 500, 0).delay_ns, 500'000'000U);
  EXPECT_EQ(mount.write("b", 0, 500, 1).delay_ns, 1'000'000'000U);
  mount.now_ns = 5 + 3'000'000'000U;
  EXPECT_EQ(mount.op(Op::kRead, "a", 0, 0, 1).delay_ns, 1'000'000U);
  EXPECT_TRUE(mount.op(Op::kRead, "a", 0, 0, 1).hits.at(0).stalls);
}

TEST(FreezeTest, HoldsForItsTimeOrUntilReleased) {
  auto timed = TestMount::with_rule("", "freeze = '2s', target = 'child'");
  const Decision decision = timed.write("a", 0, 1);
  EXPECT_EQ(decision.freeze, KillTarget::kChild);
  EXPECT_EQ(decision.delay_ns, 2'000'000'000U);
  EXPECT_FALSE(decision.hang);
  auto endless = TestMount::with_rule("", "freeze = true");
  EXPECT_EQ(endless.write("a", 0, 1).freeze, KillTarget::kRank);
  EXPECT_TRUE(endless.write("a", 0, 1).hang);
  EXPECT_EQ(endless.write("a", 0, 1).hits.at(0).action, "freeze until it is released rank");
}

TEST(SwapTest, TakesTheBlockBehindOrTheOneThatIsNamed) {
  auto behind = TestMount::with_rule("op = 'write'", "corrupt = 'swap', at = 10, length = 4");
  EXPECT_EQ(behind.write("a", 0, 100).corrupt_with, 14U);
  EXPECT_EQ(behind.write("a", 0, 16).corrupt_length, 2U);
  EXPECT_FALSE(behind.write("a", 0, 14).acts()) << "there is no other block";
  auto named =
      TestMount::with_rule("op = 'write'", "corrupt = 'swap', at = 10, length = 8, with = 6");
  EXPECT_EQ(named.write("a", 0, 100).corrupt_length, 4U) << "blocks do not overlap";
}

TEST(StaleTest, AReaderIsShownThePastOnlyWhereItIsKnown) {
  auto mount = TestMount::with_rule("op = 'read'", "corrupt = 'stale', on = 'out'");
  const auto rules = mount.injector.rules_for("a");
  EXPECT_TRUE(rules->keeps_past());
  EXPECT_TRUE(rules->needs_direct_writes());
  Operation read{.op = Op::kRead, .rules = rules.get(), .path = "a", .length = 10};
  EXPECT_FALSE(mount.injector.decide(read).acts());
  read.has_past = true;
  EXPECT_TRUE(mount.injector.decide(read).acts());
}

TEST(SeveralRulesTest, FirstOutcomeWinsAndTheOtherCountsNoHit) {
  TestMount mount(
      "[[rule]]\nname = 'a'\naction = { errno = 'EIO' }\n"
      "[[rule]]\nname = 'b'\naction = { errno = 'ENOSPC' }\n");
  EXPECT_EQ(mount.write("x", 0, 1).error, EIO);
  const auto counts = mount.injector.counts();
  EXPECT_EQ(counts.at(0).hits, 1U);
  EXPECT_EQ(counts.at(1).hits, 0U);
  EXPECT_EQ(counts.at(1).candidates, 1U);
}

TEST(SeveralRulesTest, OnceIsNotSpentOnAnOperationThatAnotherRuleDecided) {
  TestMount mount(
      "[[rule]]\nname = 'a'\nmatch = { op = 'write', nth = 1 }\naction = { errno = 'EIO' }\n"
      "[[rule]]\nname = 'b'\nmatch = { once = true }\naction = { errno = 'ENOSPC' }\n");
  EXPECT_EQ(mount.write("x", 0, 1).error, EIO);
  EXPECT_EQ(mount.write("x", 0, 1).error, ENOSPC);
  EXPECT_EQ(mount.write("x", 0, 1).error, 0);
}

TEST(SeveralRulesTest, DelayAndKillActTogether) {
  TestMount mount(
      "[[rule]]\nname = 'slow'\naction = { delay = '1s' }\n"
      "[[rule]]\nname = 'dead'\naction = { kill = 'SIGKILL' }\n");
  const Decision decision = mount.write("x", 0, 1);
  EXPECT_TRUE(decision.kill);
  EXPECT_EQ(decision.delay_ns, 1'000'000'000U);
  EXPECT_THAT(decision.hits, ElementsAre(Field(&Hit::rule, "slow"), Field(&Hit::rule, "dead")));
}

constexpr const char* kQuota =
    "[[budget]]\nname = 'quota'\npath = 'ckpt/**'\nlimit = '8KiB'\nerrno = 'EDQUOT'\n";

TEST(BudgetDecisionTest, LastWriteIsShortAndTheNextFails) {
  TestMount mount(kQuota);
  EXPECT_FALSE(mount.write("ckpt/a", 0, 4096).acts());
  const Decision last = mount.write("ckpt/a", 4096, 8192);
  EXPECT_EQ(last.allowed, 4096U);
  EXPECT_TRUE(last.allowed_is_short);
  EXPECT_EQ(last.error, 0);
  EXPECT_EQ(last.hits.at(0).rule, "quota");
  EXPECT_EQ(last.hits.at(0).action, "budget EDQUOT limit 8192");
  const Decision none = mount.write("ckpt/a", 8192, 1);
  EXPECT_EQ(none.error, EDQUOT);
  EXPECT_EQ(none.allowed, 0U);
  EXPECT_EQ(mount.injector.counts().at(0).hits, 2U);
  EXPECT_EQ(mount.injector.counts().at(0).candidates, 3U);
}

TEST(BudgetDecisionTest, CoversItsPathsOnly) {
  TestMount mount(kQuota);
  EXPECT_FALSE(mount.write("elsewhere", 0, 1 << 20).acts());
  EXPECT_FALSE(mount.injector.space("elsewhere"));
  EXPECT_EQ(mount.injector.space("ckpt/x")->free, 8192U);
}

TEST(BudgetDecisionTest, OfARankChargesAndLimitsWhatThatRankWrites) {
  TestMount mount("[[budget]]\nrank = 1\nlimit = '8KiB'\n");
  mount.injector.adopt(TestMount::file_of("a"), "a", 1 << 20);
  EXPECT_FALSE(mount.write("a", 0, 1 << 20, /*rank=*/0).acts());
  EXPECT_FALSE(mount.write("b", 0, 8192, /*rank=*/1).acts());
  EXPECT_EQ(mount.write("b", 8192, 1, /*rank=*/1).error, ENOSPC);
  EXPECT_FALSE(mount.write("b", 8192, 1, /*rank=*/0).acts());
  EXPECT_FALSE(mount.injector.space("b"));
}

TEST(BudgetDecisionTest, SpaceComesBackWhenAFileIsReleased) {
  TestMount mount(kQuota);
  mount.write("ckpt/a", 0, 8192);
  mount.injector.unlinked(TestMount::file_of("ckpt/a"));
  EXPECT_EQ(mount.injector.space("ckpt/a")->free, 0U);
  mount.injector.released(TestMount::file_of("ckpt/a"));
  EXPECT_EQ(mount.injector.space("ckpt/a")->free, 8192U);
}

TEST(BudgetDecisionTest, TruncateGivesBackAndAdoptCharges) {
  TestMount mount(kQuota);
  mount.injector.adopt(TestMount::file_of("ckpt/a"), "ckpt/a", 5000);
  EXPECT_EQ(mount.injector.space("ckpt/a")->free, 0U);
  mount.injector.truncated(TestMount::file_of("ckpt/a"), 100);
  EXPECT_EQ(mount.injector.space("ckpt/a")->free, 4096U);
}

TEST(BudgetDecisionTest, FallocateIsWholeOrRefused) {
  TestMount mount(kQuota);
  const Decision decision = mount.op(Op::kFallocate, "ckpt/a", 0, 0, 12288);
  EXPECT_EQ(decision.error, EDQUOT);
  EXPECT_EQ(decision.allowed, 0U);
  EXPECT_EQ(mount.injector.space("ckpt/a")->free, 8192U);
}

TEST(BudgetDecisionTest, ChargesOnlyWhatTheRulesLetThrough) {
  TestMount mount(std::string(kQuota) +
                  "[[rule]]\nmatch = { op = 'write', rank = 0 }\naction = { errno = 'EIO' }\n"
                  "[[rule]]\nmatch = { op = 'write', rank = 1 }\naction = { lie = true }\n"
                  "[[rule]]\nmatch = { op = 'write', rank = 2 }\naction = { short = '4KiB' }\n");
  mount.write("ckpt/a", 0, 8192, 0);
  mount.write("ckpt/a", 0, 8192, 1);
  EXPECT_EQ(mount.injector.space("ckpt/a")->free, 8192U);
  mount.write("ckpt/a", 0, 8192, 2);
  EXPECT_EQ(mount.injector.space("ckpt/a")->free, 4096U);
}

TEST(InjectorTest, RulesOfAnOlderPlanNeverMatchAgain) {
  auto mount = TestMount::with_rule("op = 'write'", "errno = 'EIO'");
  const auto rules = mount.injector.rules_for("a");
  const std::uint64_t before = mount.injector.generation();
  mount.injector.arm(parse_plan("[[rule]]\naction = { errno = 'ENOSPC' }\n", "p").value());
  EXPECT_NE(mount.injector.generation(), before);
  Operation operation{.op = Op::kWrite, .caller = {}, .rules = rules.get(), .path = "a"};
  EXPECT_FALSE(mount.injector.decide(operation).acts());
  EXPECT_EQ(mount.write("a", 0, 1).error, ENOSPC);
}

TEST(InjectorTest, FileRulesTellWhatTheFileSystemMustSee) {
  TestMount mount(
      "[[rule]]\nmatch = { op = 'read', path = 'r' }\naction = { errno = 'EIO' }\n"
      "[[rule]]\nmatch = { path = 'l' }\naction = { errno = 'EIO', late = 'close' }\n" +
      std::string(kQuota));
  EXPECT_TRUE(mount.injector.rules_for("r")->needs_direct_reads());
  EXPECT_FALSE(mount.injector.rules_for("r")->needs_direct_writes());
  EXPECT_TRUE(mount.injector.rules_for("l")->can_match(Op::kClose));
  EXPECT_TRUE(mount.injector.rules_for("ckpt/a")->needs_direct_writes());
  EXPECT_FALSE(mount.injector.rules_for("ckpt/a")->can_match(Op::kFsync));
  EXPECT_EQ(mount.injector.rules_for("other"), nullptr);
}

TEST(InjectorTest, PhaseAndAttemptFollowTheMarks) {
  TestMount mount("");
  Injector& injector = mount.injector;
  EXPECT_EQ(injector.phase(0), "");
  EXPECT_EQ(injector.attempt(0), 0);
  injector.enter(0, "save 1");
  injector.point(0, "commit");
  EXPECT_EQ(injector.phase(0), "save 1/commit");
  EXPECT_EQ(injector.attempt(0), 1);
  injector.leave(0, "save 1");
  injector.enter(0, "save 1");
  EXPECT_EQ(injector.phase(0), "save 1");
  EXPECT_EQ(injector.attempt(0), 2);
  EXPECT_EQ(injector.phase(1), "");
}

// An asynchronous save may end when the next one has been called already.
TEST(InjectorTest, LeavingASpanLeavesTheOneEnteredSinceAlone) {
  TestMount mount("");
  mount.injector.enter(0, "save 1");
  mount.injector.enter(0, "save 2");
  mount.injector.leave(0, "save 1");
  EXPECT_EQ(mount.injector.phase(0), "save 2");
  mount.injector.leave(0, "save 2");
  EXPECT_EQ(mount.injector.phase(0), "");
}

}  // namespace
}  // namespace savegate::faults
