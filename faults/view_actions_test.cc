// Missing features, races, timestamps and stale views: as they are written, and where they act.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "faults/injector_testing.h"

namespace savegate::faults {
namespace {

using ::testing::HasSubstr;

std::string error_of_action(const std::string& action) {
  auto plan = parse_plan("[[rule]]\naction = { " + action + " }\n", "plan.toml");
  return plan ? "no error" : plan.error().to_string();
}

Action action_of(const std::string& action) {
  return parse_plan("[[rule]]\naction = { " + action + " }\n", "plan.toml")
      .value()
      .rules.at(0)
      .action;
}

// Decides on one operation that has what only some operations have.
Decision decide(TestMount& mount, Operation operation) {
  const auto rules = mount.injector.rules_for(operation.path);
  operation.rules = rules.get();
  operation.caller = {.rank = 0, .relation = Relation::kProcess, .pid = 100, .tid = 100};
  return mount.injector.decide(operation);
}

class Hidden : public HiddenChanges {
 public:
  explicit Hidden(bool hides) : any_(hides) {}
  bool any(const StaleAction&, const std::string&) const override { return any_; }

 private:
  const bool any_;
};

TEST(ViewActionsTest, ActionsSayInWordsWhatTheyDo) {
  EXPECT_EQ(to_string(action_of("missing = ['rename-over', 'hard-link']")),
            "missing rename-over hard-link");
  EXPECT_EQ(to_string(action_of("race = 'removed'")), "race removed");
  EXPECT_EQ(to_string(action_of("timestamps = { skew = '-1.5s', granularity = '2s' }")),
            "timestamps skew -1500ms granularity 2s");
  EXPECT_EQ(to_string(action_of("stale = ['size', 'name'], for = '2s'")), "stale name size for 2s");
  EXPECT_EQ(to_string(action_of("stale = 'listing'")), "stale listing");
}

TEST(ViewActionsTest, UnknownWordsNameTheNearest) {
  EXPECT_THAT(error_of_action("missing = 'hardlink'"), HasSubstr("did you mean `hard-link`?"));
  EXPECT_THAT(error_of_action("race = 'remove'"), HasSubstr("did you mean `removed`?"));
  EXPECT_THAT(error_of_action("stale = 'listings'"), HasSubstr("did you mean `listing`?"));
  EXPECT_THAT(error_of_action("timestamps = { skw = '1s' }"), HasSubstr("did you mean `skew`?"));
  EXPECT_THAT(error_of_action("stale = 'name', fr = '2s'"), HasSubstr("did you mean `for`?"));
}

TEST(ViewActionsTest, AnActionThatSaysNothingIsRefused) {
  EXPECT_THAT(error_of_action("missing = []"), HasSubstr("is empty"));
  EXPECT_THAT(error_of_action("stale = []"), HasSubstr("is empty"));
  EXPECT_THAT(error_of_action("timestamps = {}"), HasSubstr("needs `skew` or `granularity`"));
  EXPECT_THAT(error_of_action("timestamps = { granularity = '0s' }"), HasSubstr("cannot be 0"));
}

Action random_action(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t end) { return random() % end; };
  switch (below(4)) {
    case 0: {
      MissingAction missing;
      do missing.features.add(static_cast<Feature>(below(kFeatureCount)));
      while (below(2) == 0);
      return missing;
    }
    case 1:
      return RaceAction{static_cast<Race>(below(3))};
    case 2:
      return TimestampsAction{.skew_ns = static_cast<std::int64_t>(below(1ULL << 60)) - (1LL << 59),
                              .granularity_ns = 1 + below(10'000'000'000)};
    default: {
      StaleAction stale{.aspects = static_cast<std::uint8_t>(1 + below(31)), .window_ns = {}};
      if (below(2) == 0) stale.window_ns = below(1ULL << 40);
      return stale;
    }
  }
}

TEST(ViewActionsTest, EveryActionThatIsPrintedReadsBackTheSame) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) {
    Plan plan;
    plan.rules.push_back({.name = "r", .match = {}, .action = random_action(random)});
    const std::string printed = print_plan(plan);
    auto again = parse_plan(printed, "plan.toml");
    ASSERT_TRUE(again) << again.error().to_string() << "\n" << printed;
    ASSERT_EQ(*again, plan) << printed;
  }
}

TEST(ViewActionsTest, EachMissingFeatureFailsTheOperationsThatNeedIt) {
  struct Case {
    const char* feature;
    Op op;
    int error;
  };
  for (const Case& one :
       {Case{"rename", Op::kRename, ENOSYS}, Case{"chmod", Op::kChmod, EPERM},
        Case{"chown", Op::kChown, EPERM}, Case{"hard-link", Op::kLink, EPERM},
        Case{"symlink", Op::kSymlink, EPERM}, Case{"xattr", Op::kSetxattr, EOPNOTSUPP},
        Case{"xattr", Op::kListxattr, EOPNOTSUPP}, Case{"fsyncdir", Op::kFsyncdir, EINVAL},
        Case{"fallocate", Op::kFallocate, EOPNOTSUPP}}) {
    TestMount mount = TestMount::with_rule("", std::string("missing = '") + one.feature + "'");
    EXPECT_EQ(mount.op(one.op, "f").error, one.error) << one.feature;
    EXPECT_FALSE(mount.op(Op::kWrite, "f").acts()) << one.feature;
  }
}

TEST(ViewActionsTest, ARenameIsRefusedOnlyWhereTheNameExists) {
  TestMount mount = TestMount::with_rule("", "missing = 'rename-over'");
  EXPECT_FALSE(decide(mount, {.op = Op::kRename, .path = "f"}).acts());
  EXPECT_EQ(decide(mount, {.op = Op::kRename, .path = "f", .replaces = true}).error, EEXIST);
}

TEST(ViewActionsTest, DirectIoIsMissedByThoseAloneWhoAskForIt) {
  TestMount mount = TestMount::with_rule("", "missing = 'direct-io'");
  EXPECT_FALSE(decide(mount, {.op = Op::kOpen, .path = "f"}).acts());
  EXPECT_EQ(decide(mount, {.op = Op::kOpen, .path = "f", .flags = O_DIRECT}).error, EINVAL);
}

TEST(ViewActionsTest, ARenameWithFlagsIsInvalidWhereThereIsNone) {
  TestMount mount = TestMount::with_rule("", "missing = 'rename'");
  EXPECT_EQ(decide(mount, {.op = Op::kRename, .path = "f", .flags = 1}).error, EINVAL);
}

TEST(ViewActionsTest, MissingMmapLetsTheFileBeOpened) {
  TestMount mount = TestMount::with_rule("", "missing = 'mmap'");
  const Decision open = mount.op(Op::kOpen, "f");
  EXPECT_EQ(open.error, 0);
  EXPECT_TRUE(open.no_shared_mmap);
  const auto rules = mount.injector.rules_for("f");
  EXPECT_TRUE(rules->needs_direct_reads());
  EXPECT_TRUE(rules->needs_direct_writes());
}

TEST(ViewActionsTest, OnlyAnExclusiveCreateNoticesThatTheNameWasMade) {
  TestMount mount = TestMount::with_rule("", "race = 'made'");
  EXPECT_FALSE(decide(mount, {.op = Op::kCreate, .path = "f"}).acts());
  EXPECT_TRUE(decide(mount, {.op = Op::kCreate, .path = "f", .flags = O_EXCL}).race);
  EXPECT_TRUE(decide(mount, {.op = Op::kMkdir, .path = "f"}).race);
  EXPECT_FALSE(decide(mount, {.op = Op::kUnlink, .path = "f"}).race);
}

// Else the kernel would go on showing what the racer has removed.
TEST(ViewActionsTest, NamesUnderARaceAreNotCached) {
  TestMount mount = TestMount::with_rule("op = 'unlink'", "race = 'removed'");
  const auto rules = mount.injector.rules_for("f");
  EXPECT_TRUE(rules->can_match(Op::kLookup));
  EXPECT_TRUE(rules->can_match(Op::kGetattr));
  EXPECT_FALSE(mount.op(Op::kLookup, "f").acts());
}

TEST(ViewActionsTest, AStaleRuleCountsOnlyWhereThereIsAChangeToHide) {
  TestMount mount = TestMount::with_rule("", "stale = 'name', for = '1s'");
  const Hidden something(true);
  const Hidden nothing(false);
  EXPECT_FALSE(decide(mount, {.op = Op::kLookup, .path = "f"}).acts());
  EXPECT_FALSE(decide(mount, {.op = Op::kLookup, .path = "f", .hidden = &nothing}).acts());
  EXPECT_TRUE(decide(mount, {.op = Op::kLookup, .path = "f", .hidden = &something}).stale);
  EXPECT_FALSE(decide(mount, {.op = Op::kReaddir, .path = "f", .hidden = &something}).stale);
  EXPECT_EQ(mount.injector.counts().at(0).candidates, 1U);
}

// A change that bypasses the file system cannot be hidden.
TEST(ViewActionsTest, FilesUnderAStaleRuleAreNotCachedAtAll) {
  TestMount mount = TestMount::with_rule("", "stale = 'name'");
  const auto rules = mount.injector.rules_for("f");
  for (Op op : {Op::kLookup, Op::kGetattr, Op::kRead, Op::kWrite}) {
    EXPECT_TRUE(rules->can_match(op)) << op_name(op);
  }
}

}  // namespace
}  // namespace savegate::faults
