#include "faults/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "faults/toml.h"

namespace savegate::faults {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Plan parsed(std::string_view toml) {
  auto plan = parse_plan(toml, "plan.toml");
  EXPECT_TRUE(plan) << plan.error().to_string();
  return plan.value_or(Plan{});
}

std::string error_of(std::string_view toml) {
  auto plan = parse_plan(toml, "plan.toml");
  return plan ? "no error" : plan.error().to_string();
}

Rule only_rule(const std::string& match, const std::string& action) {
  return parsed("[[rule]]\nmatch = { " + match + " }\naction = { " + action + " }\n").rules.at(0);
}

TEST(PlanTest, ReadsTheExampleOfItsHeader) {
  const Plan plan = parsed(R"(
seed = 7
[[rule]]
name   = "disk full under rank 1's second shard write"
match  = { op = "write", path = "**/shard-*", rank = 1, nth = 2 }
action = { errno = "ENOSPC", after = "64KiB" }
[[budget]]
name   = "quota"
path   = "**"
limit  = "1GiB"
errno  = "EDQUOT"
)");
  EXPECT_EQ(plan.seed, 7U);
  const Rule& rule = plan.rules.at(0);
  EXPECT_EQ(rule.match.ops, op_bit(Op::kWrite));
  EXPECT_THAT(rule.match.ranks, ElementsAre(1));
  EXPECT_EQ(rule.match.nth, 2U);
  EXPECT_TRUE(rule.required);
  EXPECT_EQ(to_string(rule.action), "errno ENOSPC after 65536");
  EXPECT_EQ(plan.budgets.at(0).limit, std::uint64_t{1} << 30);
  EXPECT_EQ(plan.budgets.at(0).error, EDQUOT);
}

TEST(PlanTest, OpTakesWordsAndClasses) {
  const Rule rule = only_rule("op = ['sync', 'rename']", "delay = '1ms'");
  EXPECT_EQ(rule.match.ops,
            op_bit(Op::kClose) | op_bit(Op::kFsync) | op_bit(Op::kFsyncdir) | op_bit(Op::kRename));
}

TEST(PlanTest, RuleWithoutOpLeavesLookupGetattrReleaseAndPhaseAlone) {
  const Rule rule = only_rule("", "errno = 'EIO'");
  const std::uint64_t ops = acting_ops(rule.match, rule.action);
  for (Op op : {Op::kLookup, Op::kGetattr, Op::kRelease, Op::kPhase}) {
    EXPECT_EQ(ops & op_bit(op), 0U) << op_name(op);
  }
  EXPECT_NE(ops & op_bit(Op::kStatfs), 0U);
}

TEST(PlanTest, RuleThatCanNeverActIsRefused) {
  EXPECT_EQ(error_of("[[rule]]\nmatch = { op = 'fsync' }\naction = { short = '50%' }\n"),
            "plan.toml:2:9: `short 50%` can never act on fsync");
}

TEST(PlanTest, UnknownKeyOfAMatchNamesTheNearest) {
  EXPECT_EQ(error_of("[[rule]]\nmatch = { rnk = 1 }\naction = { hang = true }\n"),
            "plan.toml:2:11: unknown key `rnk` in [rule.match]; did you mean `rank`?");
}

TEST(PlanTest, UnknownWordsNameTheNearest) {
  const std::string head = "[[rule]]\nmatch = { ";
  const std::string tail = " }\naction = { hang = true }\n";
  EXPECT_THAT(error_of(head + "op = 'wirte'" + tail), HasSubstr("did you mean `write`?"));
  EXPECT_THAT(error_of(head + "role = 'shards'" + tail), HasSubstr("did you mean `shard`?"));
  EXPECT_THAT(error_of(head + "process = 'thraed'" + tail), HasSubstr("did you mean `thread`?"));
  EXPECT_THAT(error_of(head + "per = 'ranks'" + tail), HasSubstr("did you mean `rank`?"));
  EXPECT_THAT(error_of("[[rule]]\naction = { errno = 'ENOSP' }\n"),
              HasSubstr("plan.toml:2:20: `errno` cannot be `ENOSP`; did you mean `ENOSPC`?"));
  EXPECT_THAT(error_of("[[rule]]\naction = { kill = 'SIGKIL' }\n"),
              HasSubstr("did you mean `SIGKILL`?"));
}

TEST(PlanTest, ActionHasExactlyOneKind) {
  EXPECT_THAT(error_of("[[rule]]\naction = { errno = 'EIO', hang = true }\n"),
              HasSubstr("an action is one of errno, hang"));
  EXPECT_THAT(error_of("[[rule]]\naction = {}\n"), HasSubstr("an action needs one of: errno"));
  EXPECT_THAT(error_of("[[rule]]\naction = { erno = 'EIO' }\n"),
              HasSubstr("unknown key `erno` in [rule.action]; did you mean `errno`?"));
  EXPECT_THAT(error_of("[[rule]]\nmatch = {}\n"), HasSubstr("a rule needs an `action`"));
}

TEST(PlanTest, KeysOfAnotherActionAreRefused) {
  EXPECT_THAT(error_of("[[rule]]\naction = { delay = '1s', target = 'job' }\n"),
              HasSubstr("unknown key `target` in [rule.action]"));
  EXPECT_THAT(error_of("[[rule]]\naction = { kill = 'SIGKILL', at = '50%' }\n"),
              HasSubstr("`at` needs when = \"middle\""));
}

TEST(PlanTest, ABudgetOfRanksLimitsBytesAlone) {
  EXPECT_EQ(parsed("[[budget]]\nlimit = '1MiB'\nrank = [1, 3]\n").budgets.at(0).ranks,
            (std::vector<int>{1, 3}));
  EXPECT_THAT(error_of("[[budget]]\ninodes = 7\nrank = 1\n"),
              HasSubstr("`rank` goes with `limit`"));
}

TEST(PlanTest, GivenNamesAreUniqueAndMadeOnesGetANumber) {
  EXPECT_THAT(error_of("[[rule]]\nname = 'a'\naction = { hang = true }\n[[budget]]\nname = 'a'\n"
                       "limit = 1\n"),
              HasSubstr("plan.toml:5:8: the name `a` is taken"));
  const Plan plan =
      parsed("[[rule]]\naction = { hang = true }\n[[rule]]\naction = { hang = true }\n");
  EXPECT_EQ(plan.rules.at(0).name, "hang on any operation");
  EXPECT_EQ(plan.rules.at(1).name, "hang on any operation (2)");
}

TEST(PlanTest, BudgetNeedsALimit) {
  EXPECT_EQ(error_of("[[budget]]\n"),
            "plan.toml:1:1: a budget needs a `limit`, such as limit = \"1GiB\", or `inodes`");
  EXPECT_THAT(error_of("[[budget]]\nlimti = 1\n"), HasSubstr("did you mean `limit`?"));
  EXPECT_THAT(error_of("[[budget]]\nlimit = '1 gigabyte'\n"), HasSubstr("plan.toml:2:9: `limit`:"));
}

TEST(PlanTest, RulesStandInlineInAnotherFile) {
  TomlReader life = parse_toml(
                        "rules = [{ match = { rank = 1, role = 'shard', phase = 'save 2' }, "
                        "action = { errno = 'ENOSPC', after = '50%' } }]\n"
                        "budgets = [{ limit = '1MiB' }]\n",
                        "suite.toml")
                        ->root();
  const Plan plan = read_plan(life, "rules", "budgets");
  EXPECT_TRUE(life.finish());
  EXPECT_EQ(plan.rules.at(0).match.phase, "save 2");
  EXPECT_EQ(plan.budgets.at(0).limit, std::uint64_t{1} << 20);
}

TEST(UnitsTest, BytesTakeUnits) {
  EXPECT_EQ(parse_bytes("4096").value(), 4096U);
  EXPECT_EQ(parse_bytes("64KiB").value(), 65536U);
  EXPECT_EQ(parse_bytes("1.5 MiB").value(), 1572864U);
  EXPECT_EQ(parse_bytes("10MB").value(), 10'000'000U);
  EXPECT_EQ(parse_bytes("18446744073709551615").value(), UINT64_MAX);
  for (const char* bad : {"", "-1", "KiB", "1KIB", "1e3", "0.3KiB", "99999999TiB", "1.2.3KiB"}) {
    EXPECT_FALSE(parse_bytes(bad)) << bad;
  }
}

TEST(PlanTest, DelayIsATimeOrADistribution) {
  const auto delay = [](const std::string& value) {
    return std::get<DelayAction>(only_rule("", "delay = " + value).action);
  };
  EXPECT_EQ(delay("'20ms'").nanoseconds, 20'000'000U);
  EXPECT_EQ(delay("{ uniform = ['1ms', '2ms'] }").to_ns, 2'000'000U);
  EXPECT_EQ(delay("{ exponential = '1ms' }").spread, Spread::kExponential);
  EXPECT_EQ(delay("{ normal = '5ms', deviation = '1ms' }").deviation_ns, 1'000'000U);
  EXPECT_EQ(delay("{ pareto = '5ms', shape = 1.5 }").shape, 1.5);
  const auto error = [](const std::string& value) {
    return error_of("[[rule]]\naction = { delay = " + value + " }\n");
  };
  EXPECT_THAT(error("{ uniform = ['2ms', '1ms'] }"), HasSubstr("it ends before it begins"));
  EXPECT_THAT(error("{ expontial = '1ms' }"), HasSubstr("did you mean `exponential`?"));
  EXPECT_THAT(error("{ normal = '5ms', deviaton = '1ms' }"),
              HasSubstr("did you mean `deviation`?"));
}

TEST(PlanTest, BandwidthIsBytesASecond) {
  EXPECT_EQ(only_rule("", "bandwidth = '1MiB/s'").action, Action(BandwidthAction{1 << 20}));
  EXPECT_THAT(error_of("[[rule]]\naction = { bandwidth = '1MiB' }\n"), HasSubstr("is no rate"));
  EXPECT_THAT(error_of("[[rule]]\naction = { bandwidth = '0/s' }\n"), HasSubstr("is no rate"));
}

TEST(PlanTest, FreezeIsATimeOrUntilReleased) {
  const auto freeze = std::get<FreezeAction>(only_rule("", "freeze = '2s', target = 'job'").action);
  EXPECT_EQ(freeze.nanoseconds, 2'000'000'000U);
  EXPECT_EQ(freeze.target, KillTarget::kJob);
  EXPECT_FALSE(std::get<FreezeAction>(only_rule("", "freeze = true").action).nanoseconds);
  EXPECT_THAT(error_of("[[rule]]\naction = { freeze = false }\n"), HasSubstr("true until"));
  EXPECT_THAT(error_of("[[rule]]\naction = { freeze = '1s', target = 'jbo' }\n"),
              HasSubstr("did you mean `job`?"));
}

TEST(PlanTest, DropIsForAnFsync) {
  EXPECT_EQ(acting_ops({}, only_rule("op = 'fsync'", "errno = 'EIO', drop = true").action),
            op_bit(Op::kFsync));
  EXPECT_THAT(error_of("[[rule]]\naction = { errno = 'EIO', late = 'close', drop = true }\n"),
              HasSubstr("`drop` is for an errno of fsync"));
}

TEST(PlanTest, SwapAloneHasAnotherBlock) {
  EXPECT_EQ(std::get<CorruptAction>(only_rule("", "corrupt = 'swap', with = 8").action).with->bytes,
            8U);
  EXPECT_THAT(error_of("[[rule]]\naction = { corrupt = 'flip', with = 8 }\n"),
              HasSubstr("`with` needs corrupt"));
}

TEST(PlanTest, SinceIsAMarkAndAWindow) {
  const Rule rule = only_rule("since = { mark = 'save 2/commit', from = '100ms' }", "lie = true");
  EXPECT_EQ(rule.match.since->mark, "save 2/commit");
  EXPECT_EQ(rule.match.since->from_ns, 100'000'000U);
  EXPECT_EQ(rule.match.since->to_ns, UINT64_MAX);
  EXPECT_THAT(error_of("[[rule]]\nmatch = { since = { mark = 'a', from = '2s', to = '1s' } }\n"
                       "action = { lie = true }\n"),
              HasSubstr("it ends before it begins"));
  EXPECT_THAT(error_of("[[rule]]\nmatch = { since = { form = '2s' } }\n"
                       "action = { lie = true }\n"),
              HasSubstr("did you mean `from`?"));
}

TEST(UnitsTest, DurationsNeedAUnit) {
  EXPECT_EQ(parse_duration("200ms").value(), 200'000'000U);
  EXPECT_EQ(parse_duration("1.5s").value(), 1'500'000'000U);
  EXPECT_EQ(parse_duration("2min").value(), 120'000'000'000U);
  EXPECT_EQ(parse_duration("2m").value(), 120'000'000'000U);
  EXPECT_FALSE(parse_duration("200"));
  EXPECT_FALSE(parse_duration("1 week"));
}

TEST(UnitsTest, AmountIsBytesOrAShare) {
  EXPECT_EQ(parse_amount("64KiB").value().bytes, 65536U);
  EXPECT_EQ(parse_amount("50%").value().share, 0.5);
  EXPECT_FALSE(parse_amount("101%"));
  EXPECT_FALSE(parse_amount("-1%"));
  EXPECT_EQ(bytes_of(parse_amount("50%").value(), 7), 3U);
  EXPECT_EQ(bytes_of(parse_amount("100%").value(), UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(bytes_of(parse_amount("8").value(), 7), 7U);
}

// Random plans of everything that TOML can say.
class RandomPlan {
 public:
  explicit RandomPlan(std::uint64_t seed) : random_(seed) {}

  Plan plan() {
    Plan plan;
    plan.seed = chance() ? random_() : below(100);
    for (std::uint64_t n = below(4); n > 0; --n) plan.rules.push_back(rule(n));
    for (std::uint64_t n = below(3); n > 0; --n) plan.budgets.push_back(budget(n));
    return plan;
  }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  bool chance() { return below(2) == 0; }
  double unit() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  std::uint64_t bytes() { return chance() ? random_() : below(64) << below(40); }
  std::string text() {
    constexpr std::string_view kLetters = "ab*?[]\\\"'{}#=\t\n\x01 é/";
    std::string out;
    for (std::uint64_t n = 1 + below(8); n > 0; --n) out += kLetters[below(20)];
    // Half of a two-byte letter is no TOML.
    out.erase(std::remove_if(out.begin(), out.end(), [](char c) { return c < 0; }), out.end());
    return out + "é";
  }
  Amount amount() {
    return chance() ? Amount{.bytes = bytes(), .share = {}} : Amount{.bytes = 0, .share = unit()};
  }
  Range range() {
    const std::uint64_t from = bytes() / 2;
    return {from, chance() ? UINT64_MAX : from + 1 + bytes() / 2};
  }
  template <class T, class Make>
  void maybe(T& into, Make make) {
    if (below(3) == 0) into = make();
  }

  Match match() {
    Match match;
    maybe(match.ops, [&] { return random_() & ((std::uint64_t{1} << kOpCount) - 1); });
    maybe(match.path, [&] { return text(); });
    maybe(match.role, [&] { return static_cast<Role>(below(5)); });
    maybe(match.temporary, [&] { return chance(); });
    maybe(match.ranks, [&] { return std::vector<int>(1 + below(3), static_cast<int>(below(9))); });
    maybe(match.relations,
          [&] { return std::vector<Relation>(1 + below(2), static_cast<Relation>(1 + below(3))); });
    maybe(match.lives, [&] { return std::vector<int>(1 + below(2), 2); });
    maybe(match.attempt, [&] { return static_cast<int>(1 + below(4)); });
    maybe(match.phase, [&] { return text(); });
    maybe(match.since, [&] {
      const Range window = range();
      return Since{.mark = text(), .from_ns = window.from, .to_ns = window.to};
    });
    maybe(match.offset, [&] { return range(); });
    maybe(match.size, [&] { return range(); });
    maybe(match.nth, [&] { return 1 + below(1000); });
    maybe(match.every, [&] { return 1 + below(1000); });
    match.per = static_cast<CountPer>(below(3));
    maybe(match.after_bytes, [&] { return bytes(); });
    maybe(match.probability, [&] { return unit(); });
    match.once = chance();
    return match;
  }

  DelayAction delay() {
    DelayAction delay{.nanoseconds = bytes() / 2, .spread = static_cast<Spread>(below(5))};
    if (delay.spread == Spread::kUniform) delay.to_ns = delay.nanoseconds + bytes() / 2;
    if (delay.spread == Spread::kNormal) delay.deviation_ns = bytes();
    if (delay.spread == Spread::kPareto) delay.shape = 0.5 + unit();
    return delay;
  }

  CorruptAction corrupt() {
    CorruptAction corrupt{.kind = static_cast<Corruption>(below(4)),
                          .on = static_cast<CorruptOn>(below(2)),
                          .at = amount(),
                          .length = 1 + bytes() / 2,
                          .with = {}};
    if (corrupt.kind == Corruption::kSwap && chance()) corrupt.with = amount();
    return corrupt;
  }

  Action action() {
    switch (below(10)) {
      case 0: {
        ErrnoAction errno_action{
            .error = static_cast<int>(1 + below(200)), .after = {}, .late = {}};
        if (chance()) {
          errno_action.late = static_cast<LateAt>(below(3));
          errno_action.drop = errno_action.late == LateAt::kFsync && chance();
        } else if (chance()) {
          errno_action.after = amount();
        }
        return errno_action;
      }
      case 1:
        return ShortAction{amount()};
      case 2:
        return delay();
      case 3:
        return HangAction{};
      case 4: {
        KillAction kill;
        kill.signal = chance() ? SIGKILL : SIGTERM;
        kill.when = static_cast<When>(below(3));
        if (kill.when == When::kMiddle) kill.at = amount();
        kill.target = static_cast<KillTarget>(below(3));
        return kill;
      }
      case 5:
        return corrupt();
      case 6:
        return BandwidthAction{1 + bytes() / 2};
      case 7:
        return FreezeAction{.nanoseconds = chance() ? std::optional(bytes()) : std::nullopt,
                            .target = static_cast<KillTarget>(below(3))};
      case 8:
        return LoseAction{};
      default:
        return LieAction{};
    }
  }

  Rule rule(std::uint64_t n) {
    Rule rule;
    rule.name = "rule " + std::to_string(n) + text();
    do {
      rule.match = match();
      rule.action = action();
    } while (acting_ops(rule.match, rule.action) == 0);
    rule.required = chance();
    return rule;
  }

  BudgetSpec budget(std::uint64_t n) {
    BudgetSpec budget;
    budget.name = "budget " + std::to_string(n) + text();
    budget.path = text();
    if (chance()) budget.limit = bytes();
    if (!budget.limit || chance()) budget.inodes = bytes() / 2;
    budget.error = chance() ? ENOSPC : EDQUOT;
    budget.block = static_cast<std::uint32_t>(1 + below(1 << 20));
    budget.required = chance();
    return budget;
  }

  std::mt19937_64 random_;
};

TEST(PlanTest, EveryPlanThatIsPrintedReadsBackTheSame) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Plan plan = RandomPlan(seed).plan();
    const std::string printed = print_plan(plan);
    auto again = parse_plan(printed, "plan.toml");
    ASSERT_TRUE(again) << again.error().to_string() << "\nseed " << seed << "\n" << printed;
    ASSERT_EQ(*again, plan) << "seed " << seed << "\n" << printed;
  }
}

}  // namespace
}  // namespace savegate::faults
