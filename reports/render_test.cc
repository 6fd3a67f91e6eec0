#include <gmock/gmock.h>

#include "reports/example_run.h"
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

TEST(JunitTest, APointOfASweepIsACaseOfItsOwn) {
  EXPECT_THAT(print_junit(example_sweep(2, 0)),
              HasSubstr("name=\"every-write-0002 [rank 1 write nth 2]\""));
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
