#include "reports/quarantine.h"

#include <gmock/gmock.h>

#include "reports/example_run.h"

namespace savegate::reports {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<QuarantineEntry> entries(const std::string& more = "",
                                     const std::string& scenario = "smoke/*") {
  return parse_quarantine("[[quarantine]]\nscenario = \"" + scenario +
                              "\"\nuntil = 2026-12-31\nreason = \"known\"\n" + more,
                          "q.toml")
      .value();
}

TEST(QuarantineTest, AnExcusedFailureDoesNotFailTheRunThroughItsLastDay) {
  RunRecord run = example_run({Outcome::kFail, Outcome::kPass});
  EXPECT_THAT(apply_quarantine(run, entries(), "2026-12-31"), IsEmpty());
  EXPECT_EQ(exit_code(run), 0);
  EXPECT_EQ(standing_words(run.scenarios[0]), "quarantined until 2026-12-31: known");
}

TEST(QuarantineTest, OnceItsDateHasPassedItFailsAndSaysSo) {
  RunRecord run = example_run({Outcome::kFail, Outcome::kPass});
  apply_quarantine(run, entries(), "2027-01-01");
  EXPECT_EQ(exit_code(run), 1);
  EXPECT_EQ(standing_words(run.scenarios[0]), "its quarantine ended on 2026-12-31: known");
}

TEST(QuarantineTest, WhereAllIsInQuarantineNothingWasProven) {
  RunRecord run = example_run({Outcome::kFail});
  apply_quarantine(run, entries(), "2026-12-31");
  EXPECT_EQ(exit_code(run), 4);
}

TEST(QuarantineTest, AFailureOfAnotherIdIsNotExcused) {
  RunRecord run = example_run({Outcome::kFail});
  run.scenarios[0].verdicts.push_back(
      {.requirement = "F6", .outcome = Outcome::kFail, .summary = "", .evidence = {}});
  apply_quarantine(run, entries("ids = [\"C1\"]\n"), "2026-12-31");
  EXPECT_EQ(exit_code(run), 1);
}

TEST(QuarantineTest, TwoEntriesExcuseTogetherUntilTheFirstEnds) {
  RunRecord run = example_run({Outcome::kFail});
  run.scenarios[0].verdicts.push_back(
      {.requirement = "F6", .outcome = Outcome::kFail, .summary = "", .evidence = {}});
  apply_quarantine(
      run,
      entries("ids = [\"C1\"]\n[[quarantine]]\nscenario = \"smoke/*\"\nids = [\"F6\"]\n"
              "until = 2026-11-30\nreason = \"sooner\"\n"),
      "2026-11-01");
  EXPECT_EQ(standing_words(run.scenarios[0]), "quarantined until 2026-11-30: sooner");
}

TEST(QuarantineTest, AnotherSubjectsFailureIsNotExcused) {
  RunRecord run = example_run({Outcome::kFail});
  run.subject = "mine";
  apply_quarantine(run, entries("subject = \"other\"\n"), "2026-12-31");
  EXPECT_EQ(exit_code(run), 1);
}

TEST(QuarantineTest, ASweepIsNamedWithoutTheNumbersOfItsPoints) {
  RunRecord run = example_sweep(2, 2);
  apply_quarantine(run, entries("", "smoke/every-write"), "2026-12-31");
  EXPECT_TRUE(is_quarantined(run.scenarios[1]));
}

TEST(QuarantineTest, AnEntryThatNamesNothingIsToldWithItsPlace) {
  RunRecord run = example_run({Outcome::kPass});
  EXPECT_THAT(apply_quarantine(run, entries("", "smok/*"), "2026-12-31"),
              ElementsAre("q.toml:1:1: the quarantine of `smok/*` names nothing that was run"));
  EXPECT_THAT(apply_quarantine(run, entries(), "2026-12-31"),
              ElementsAre(HasSubstr("names nothing that failed in this run")));
}

TEST(QuarantineTest, NoIdsAreNotAllIds) {
  const auto read = parse_quarantine(
      "[[quarantine]]\nscenario = \"a\"\nids = []\nuntil = 2026-12-31\nreason = \"b\"\n", "q.toml");
  ASSERT_FALSE(read);
  EXPECT_THAT(read.error().to_string(), HasSubstr("`ids` in [[quarantine]] is empty"));
}

TEST(QuarantineTest, ADateIsRequiredAndHasNoQuotes) {
  const auto error = [](const std::string& until) {
    return parse_quarantine("[[quarantine]]\nscenario = \"a\"\nreason = \"b\"\n" + until, "q.toml")
        .error()
        .to_string();
  };
  EXPECT_THAT(error(""), HasSubstr("missing key `until`"));
  EXPECT_THAT(error("until = \"2026-12-31\"\n"), HasSubstr("must be a date such as 2026-12-31"));
}

}  // namespace
}  // namespace savegate::reports
