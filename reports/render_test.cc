#include <gmock/gmock.h>

#include "reports/cases.h"
#include "reports/example_run.h"
#include "reports/github.h"
#include "reports/terminal.h"

namespace savegate::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++found;
  }
  return found;
}

TEST(JunitTest, EachOutcomeHasItsElement) {
  const std::string xml =
      print_junit(example_run({Outcome::kPass, Outcome::kFail, Outcome::kInvalid, Outcome::kSkip}));
  EXPECT_EQ(count(xml, "<testcase "), 4U);
  EXPECT_EQ(count(xml, "<failure "), 1U);
  EXPECT_EQ(count(xml, "<error "), 1U);
  EXPECT_EQ(count(xml, "<skipped "), 1U);
  EXPECT_THAT(xml, HasSubstr("tests=\"4\" failures=\"1\" errors=\"1\" skipped=\"1\""));
}

TEST(JunitTest, TextIsEscaped) {
  RunRecord run = example_run({Outcome::kFail});
  run.scenarios[0].verdicts[0].evidence = {std::string("bell \x07 end")};
  const std::string xml = print_junit(run);
  EXPECT_THAT(xml, HasSubstr("&quot;ok&quot; &lt;of a failed save&gt; &amp; leaves"));
  EXPECT_THAT(xml, HasSubstr("bell ? end"));
}

TEST(JunitTest, AFailureHasItsEvidenceAndTheCommandThatRepeatsIt) {
  const std::string xml = print_junit(example_run({Outcome::kFail}));
  EXPECT_THAT(xml, HasSubstr("events:14"));
  EXPECT_THAT(xml, HasSubstr("repeat: savegate run smoke/scenario-0 --seed 7"));
}

TEST(JunitTest, TheClassOfASweepsPointsIsACaseWhateverPointsWereTried) {
  const std::string xml = print_junit(example_sweep(3, 2));
  EXPECT_EQ(count(xml, "<testcase "), 1U);
  EXPECT_THAT(xml, HasSubstr("name=\"every-write [write]\" time=\"4.500\""));
  EXPECT_THAT(xml, HasSubstr("message=\"2 of 3 points: C1: "));
  EXPECT_EQ(count(xml, "evidence: "), 2U);
}

TEST(JunitTest, WhatIsInQuarantineIsSkippedWithItsReason) {
  RunRecord run = example_run({Outcome::kFail});
  run.scenarios[0].standing =
      Standing{.failure = Failure::kKnown,
               .since = "earlier",
               .quarantine = Quarantine{
                   .until = "2026-12-31", .reason = "why", .issue = "", .expired = false}};
  const std::string xml = print_junit(run);
  EXPECT_THAT(xml, HasSubstr("failures=\"0\" errors=\"0\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("known since earlier, quarantined until 2026-12-31: why; C1: "));
}

TEST(CaseTest, AClassIsTheOperationAndTheMoment) {
  EXPECT_EQ(point_class("rank 1 write step_2/a nth 3 b nth 3 middle"), "write middle");
  EXPECT_EQ(point_class("rank 10 fsync . nth 1"), "fsync");
  EXPECT_EQ(point_class("rank 0 phase save_begin save 2 nth 1 after"), "phase after");
}

TEST(GithubTest, AnAnnotationIsOneLineWhateverItHolds) {
  RunRecord run = example_run({Outcome::kFail, Outcome::kPass});
  run.scenarios[0].verdicts[0].summary = "100 %\nof it: lost, all";
  run.scenarios[0].standing = Standing{.failure = Failure::kNew};
  EXPECT_EQ(github_annotations(run),
            "::error title=smoke/scenario-0%3A FAIL%2C new::C1: 100 %25%0Aof it: lost, all"
            "%0Arepeat: savegate run smoke/scenario-0 --seed 7\n");
}

TEST(GithubTest, NewFailuresComeFirstAndWhatIsExcusedIsAWarning) {
  RunRecord run = example_run({Outcome::kFail, Outcome::kFail, Outcome::kFail, Outcome::kPass});
  run.scenarios[0].standing =
      Standing{.quarantine = Quarantine{
                   .until = "2026-12-31", .reason = "why", .issue = "", .expired = false}};
  run.scenarios[1].standing = Standing{.failure = Failure::kKnown, .since = "earlier"};
  run.scenarios[2].standing = Standing{.failure = Failure::kNew};
  run.scenarios[3].standing = Standing{.flaky = true};
  const std::string text = github_annotations(run);
  EXPECT_THAT(text, testing::StartsWith("::error title=smoke/scenario-2"));
  EXPECT_THAT(text, HasSubstr("::error title=smoke/scenario-1%3A FAIL%2C known since earlier"));
  EXPECT_THAT(text, HasSubstr("::warning title=smoke/scenario-0"));
  EXPECT_THAT(text, HasSubstr("::warning title=smoke/scenario-3%3A PASS%2C flaky"));
}

TEST(GithubTest, TheSummaryIsATableWhoseCellsHoldNoMarkup) {
  RunRecord run = example_run({Outcome::kFail, Outcome::kPass});
  run.scenarios[0].verdicts[0].summary = "a|b <i>";
  EXPECT_THAT(github_summary(run), HasSubstr("### savegate: FAIL\n\n2 run: 1 passed, 1 failed"));
  EXPECT_THAT(github_summary(run), HasSubstr("| smoke/scenario-0 | FAIL | C1: a\\|b &lt;i> |\n"));
  EXPECT_THAT(github_summary(run), Not(HasSubstr("scenario-1")));
}

TEST(TerminalTest, AScenarioIsOneLine) {
  EXPECT_EQ(render_scenario(example_scenario("one", Outcome::kPass), false),
            "PASS     smoke/one  1.5 s  fired 3\n");
}

TEST(TerminalTest, ColourOnlyRepeatsTheWord) {
  const ScenarioResult result = example_scenario("one", Outcome::kFail);
  EXPECT_THAT(render_scenario(result, true), HasSubstr("\033["));
  EXPECT_THAT(render_scenario(result, true), HasSubstr("FAIL"));
  EXPECT_THAT(render_scenario(result, false), Not(HasSubstr("\033[")));
}

TEST(TerminalTest, AFailureNamesRuleSightingPlaceAndCommand) {
  const std::string text =
      render_failure(example_scenario("one", Outcome::kFail),
                     {.store = "store/run", .rules = {{"C1", "All ranks fail together."}}});
  EXPECT_THAT(text, HasSubstr("FAIL C1: All ranks fail together."));
  EXPECT_THAT(text, HasSubstr("seen: rank 0 says"));
  EXPECT_THAT(text, HasSubstr("evidence: store/run/smoke/one\n"));
  EXPECT_THAT(text, testing::EndsWith("repeat:   savegate run smoke/one --seed 7\n"));
}

TEST(TerminalTest, ASweepIsOneLineWithItsCoverage) {
  const std::string text = render_run(example_sweep(10, 0), {.store = "", .rules = {}});
  EXPECT_THAT(text, HasSubstr("PASS     smoke/every-write  10/10 points  15.0 s  fired 30\n"));
  EXPECT_EQ(count(text, "every-write"), 1U);
}

TEST(TerminalTest, ASweepThatFailsEverywhereShowsAHandful) {
  const std::string text = render_run(example_sweep(10, 10), {.store = "", .rules = {}});
  EXPECT_EQ(count(text, "repeat:"), 5U);
  EXPECT_THAT(text, HasSubstr("and 5 more points of smoke/every-write"));
}

TEST(TerminalTest, TheSummaryCountsAndNamesTheStore) {
  const std::string text = render_run(example_run({Outcome::kPass, Outcome::kFail}),
                                      {.store = "store/run", .rules = {}});
  EXPECT_THAT(text, HasSubstr("2 run: 1 passed, 1 failed, 0 invalid in 3.0 s\nstore: store/run\n"));
}

// A pass must not hide that a claim was never put to the test.
TEST(TerminalTest, WhatIsClaimedAndNeverJudgedIsSaidWithItsReason) {
  RunRecord run = example_run({Outcome::kPass});
  run.scenarios[0].requirements = {"F1"};
  run.scenarios[0].verdicts = {
      {.requirement = "F1", .outcome = Outcome::kSkip, .summary = "no events", .evidence = {}}};
  EXPECT_THAT(render_run(run, {.store = "", .rules = {}}),
              HasSubstr("\nnot judged: F1: no events\n"));
}

TEST(TerminalTest, ARunOfNothingSaysSo) {
  EXPECT_THAT(render_run(example_run({}), {.store = "", .rules = {}}),
              HasSubstr("nothing was proven"));
}

}  // namespace
}  // namespace savegate::reports
