#include "reports/history.h"

#include <gmock/gmock.h>

#include "reports/example_run.h"

namespace savegate::reports {
namespace {

using testing::ElementsAre;

HistoryRow row(Outcome outcome, const std::string& run, std::vector<std::string> failed = {}) {
  HistoryRow made;
  made.run = run;
  made.about.scenario = "smoke/one";
  made.outcome = outcome;
  made.failed = std::move(failed);
  made.bound_to = "same";
  return made;
}

TEST(HistoryTest, ARowTellsWhatFailedAndTheFirstSentence) {
  RunRecord run = example_run({Outcome::kFail});
  run.subject = "mine";
  run.device = "cpu";
  const HistoryRow made = row_of(run.scenarios[0], run, 1000);
  EXPECT_EQ(made.about, (About{"smoke/scenario-0", "mine", 2, "cpu"}));
  EXPECT_THAT(made.failed, ElementsAre("C1"));
  EXPECT_EQ(made.sentence, "rank 0 says \"ok\" <of a failed save> & leaves");
}

// A sweep that finds one more point numbers the later ones anew.
TEST(HistoryTest, APointOfASweepIsKnownByWhatItIsAndNotByItsNumber) {
  const RunRecord sweep = example_sweep(2, 0);
  EXPECT_EQ(row_of(sweep.scenarios[1], sweep, 0).about.scenario,
            "smoke/every-write [rank 1 write nth 2]");
}

TEST(HistoryTest, AFailureAfterAPassIsNew) {
  const Standing standing =
      standing_of(row(Outcome::kFail, "now", {"C1"}),
                  {row(Outcome::kPass, "b"), row(Outcome::kFail, "a", {"C1"})});
  EXPECT_EQ(standing.failure, Failure::kNew);
  EXPECT_EQ(standing.since, "");
}

TEST(HistoryTest, AFailureThatWasNeverRunBeforeIsNew) {
  EXPECT_EQ(standing_of(row(Outcome::kFail, "now", {"C1"}), {}).failure, Failure::kNew);
}

TEST(HistoryTest, AFailureIsKnownSinceTheFirstOfThoseWithoutAPassBetween) {
  const Standing standing =
      standing_of(row(Outcome::kFail, "now", {"C1"}),
                  {row(Outcome::kFail, "d", {"C1"}), row(Outcome::kSkip, "c"),
                   row(Outcome::kFail, "b", {"C1", "C3"}), row(Outcome::kPass, "a")});
  EXPECT_EQ(standing.failure, Failure::kKnown);
  EXPECT_EQ(standing.since, "b");
}

TEST(HistoryTest, AKnownFailureThatBreaksOneRequirementMoreIsNew) {
  EXPECT_EQ(
      standing_of(row(Outcome::kFail, "now", {"C1", "C2"}), {row(Outcome::kFail, "a", {"C1"})})
          .failure,
      Failure::kNew);
}

TEST(HistoryTest, WhatProvedNothingBeforeAndFailsNowIsNew) {
  EXPECT_EQ(standing_of(row(Outcome::kFail, "now", {"H1"}), {row(Outcome::kInvalid, "a", {"H1"})})
                .failure,
            Failure::kNew);
}

TEST(HistoryTest, BothVerdictsOfTheSameCodeAreFlaky) {
  EXPECT_TRUE(standing_of(row(Outcome::kPass, "now"), {row(Outcome::kFail, "a", {"C1"})}).flaky);
  EXPECT_TRUE(standing_of(row(Outcome::kFail, "now", {"C1"}), {row(Outcome::kPass, "a")}).flaky);
}

TEST(HistoryTest, AFailureThatOtherCodeMendedIsNotFlaky) {
  HistoryRow before = row(Outcome::kFail, "a", {"C1"});
  before.bound_to = "other";
  EXPECT_FALSE(standing_of(row(Outcome::kPass, "now"), {before}).flaky);
}

TEST(HistoryTest, WhatFailedLastComesFirstThenWhatNeverRanThenTheOldest) {
  std::map<About, HistoryRow> latest;
  const auto ran = [&](const std::string& name, Outcome outcome, std::int64_t ended) {
    HistoryRow made = row(outcome, "run");
    made.about.scenario = name;
    made.ended = ended;
    latest[made.about] = made;
  };
  ran("recent", Outcome::kPass, 30);
  ran("old", Outcome::kPass, 10);
  ran("failed", Outcome::kFail, 20);
  std::vector<About> scenarios;
  for (const char* name : {"recent", "never", "old", "failed"})
    scenarios.push_back({.scenario = name, .subject = "", .world = 0, .device = ""});
  EXPECT_THAT(order_by_history(scenarios, latest), ElementsAre(3, 1, 2, 0));
}

}  // namespace
}  // namespace savegate::reports
