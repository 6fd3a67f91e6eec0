// The suites that come with savegate are well formed, and a malformed one is named where it is
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/scenario.h"
#include "harness/subject.h"

namespace savegate::harness {
namespace {

using testing::HasSubstr;

constexpr std::string_view kGood = R"(
name = "mine"
summary = "For this test."
[[scenario]]
name = "one"
summary = "Rank 1 runs out of space."
requirements = ["C1"]
world = 4
[[scenario.life]]
until = "save 2"
rules = [{ match = { rank = 1, op = "write" }, action = { errno = "ENOSPC", after = "50%" } }]
tamper = [{ kind = "swap", rank = 0, other_rank = 1 }, { kind = "truncate", at = "25%" }]
env = { A = "b" }
no_progress = "7s"
expect = { outcome = "held", within = "3s", resumed = ["save 1", "none"], names = "data" }
)";

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& toml) {
  auto suite = parse_suite(toml, "mine.toml");
  return suite ? "accepted" : suite.error().to_string();
}

TEST(SuitesTest, EverySuiteThatComesWithSavegateIsWellFormed) {
  int suites = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SAVEGATE_SOURCE_DIR "/scenarios/suites")) {
    auto suite = load_suite(entry.path().string());
    ASSERT_TRUE(suite) << suite.error().to_string();
    EXPECT_EQ(suite->name, entry.path().stem().string());
    EXPECT_FALSE(suite->scenarios.empty());
    ++suites;
  }
  EXPECT_GE(suites, 7);
}

TEST(SuitesTest, EverySubjectThatComesWithSavegateIsWellFormed) {
  int subjects = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(SAVEGATE_SOURCE_DIR "/scenarios/subjects")) {
    auto subject = load_subject((entry.path() / "subject.toml").string());
    ASSERT_TRUE(subject) << subject.error().to_string();
    ++subjects;
  }
  EXPECT_GE(subjects, 1);
}

TEST(SuitesTest, ASuiteThatIncludesAnotherHasItsScenariosUnderTheirOwnNames) {
  const auto nightly = load_suite(SAVEGATE_SOURCE_DIR "/scenarios/suites/nightly.toml");
  const auto smoke = load_suite(SAVEGATE_SOURCE_DIR "/scenarios/suites/smoke.toml");
  ASSERT_TRUE(nightly && smoke);
  ASSERT_GT(nightly->scenarios.size(), smoke->scenarios.size());
  EXPECT_EQ(nightly->scenarios.front().suite, "smoke");
  EXPECT_EQ(nightly->scenarios.front().name, smoke->scenarios.front().name);
  EXPECT_EQ(nightly->scenarios.back().suite, "nightly");
}

TEST(SuitesTest, SweepsThatAreIncludedAreSampledAsTheSuiteSays) {
  const auto suite = parse_suite("name = 's'\nsummary = 's'\ninclude = 'enospc'\nsample = 5\n",
                                 SAVEGATE_SOURCE_DIR "/scenarios/suites/mine.toml");
  ASSERT_TRUE(suite) << suite.error().to_string();
  int sweeps = 0;
  for (const Scenario& scenario : suite->scenarios) {
    if (!scenario.generator) continue;
    ++sweeps;
    EXPECT_EQ(scenario.generator->sample, 5U) << scenario.name;
  }
  EXPECT_GT(sweeps, 0);
  const auto alone = parse_suite("name = 's'\nsummary = 's'\nsample = 5\n", "mine.toml");
  ASSERT_FALSE(alone);
  EXPECT_THAT(alone.error().to_string(), HasSubstr("suites that are included"));
}

// Else two suites that include each other would never end.
TEST(SuitesTest, AnIncludedSuiteCannotIncludeOthers) {
  const auto suite = parse_suite("name = 's'\nsummary = 's'\ninclude = 'nightly'\n",
                                 SAVEGATE_SOURCE_DIR "/scenarios/suites/mine.toml");
  ASSERT_FALSE(suite);
  EXPECT_THAT(suite.error().to_string(), HasSubstr("cannot include others"));
}

// A scenario for no device at all would be skipped everywhere, and nobody would miss it.
TEST(SuitesTest, AMisspeltDeviceIsNamedWithTheNearest) {
  std::string text(kGood);
  text.insert(text.find("[[scenario]]") + sizeof("[[scenario]]") - 1, "\ndevices = ['cdua']\n");
  const auto suite = parse_suite(text, "mine.toml");
  ASSERT_FALSE(suite);
  EXPECT_THAT(suite.error().to_string(), HasSubstr("cannot be `cdua`; did you mean `cuda`?"));
}

TEST(SuitesTest, AScenarioIsReadInFull) {
  auto suite = parse_suite(kGood, "mine.toml");
  ASSERT_TRUE(suite) << suite.error().to_string();
  const Scenario& scenario = suite->scenarios.at(0);
  EXPECT_EQ(scenario.suite, "mine");
  EXPECT_EQ(scenario.world, 4);
  const LifeSpec& life = scenario.lives.at(0);
  EXPECT_EQ(life.plan.rules.size(), 1U);
  EXPECT_EQ(life.tamper.at(0).other_rank, 1);
  EXPECT_EQ(life.tamper.at(1).at.share, 0.25);
  EXPECT_EQ(life.env.at("A"), "b");
  EXPECT_EQ(life.no_progress_ns, 7'000'000'000U);
  EXPECT_EQ(life.expect.outcome, Outcome::kHeld);
  EXPECT_EQ(life.expect.within_ns, 3'000'000'000U);
  EXPECT_EQ(life.expect.resumed, (std::vector<std::string>{"save 1", "none"}));
}

TEST(SuitesTest, LimitsAreReadAndComeBackFromTheirStoredForm) {
  const auto suite = parse_suite(
      "name = 's'\nsummary = 's'\n[[scenario]]\nname = 'a'\nsummary = 'a'\n[[scenario.life]]\n"
      "until = 'save 1'\nlimits = { open_files = 64, file_size = '1MiB' }\n",
      "mine.toml");
  ASSERT_TRUE(suite) << suite.error().to_string();
  const auto back = scenario_from_json(print_scenario(suite->scenarios.at(0)));
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(back->lives.at(0).limits.open_files, 64U);
  EXPECT_EQ(back->lives.at(0).limits.file_size, std::uint64_t{1} << 20);
}

TEST(SuitesTest, AMemoryLimitThatTheKernelEnforcesHasNoThreshold) {
  const std::string limited = with(std::string(kGood), "env = { A = \"b\" }",
                                   "memory = { limit = \"1GiB\", enforced_by = \"kernel\" }");
  EXPECT_EQ(error_of(limited), "accepted");
  EXPECT_THAT(error_of(with(limited, "\"1GiB\"", "\"1GiB\", threshold = 0.9")),
              HasSubstr("the kernel knows no threshold"));
}

constexpr std::string_view kHog = R"(
name = "s"
summary = "s"
[[scenario]]
name = "a"
summary = "s"
[[scenario.life]]
until = "save 1"
wake_probe = true
rules = [{ name = "full", match = { op = "phase", phase = "save 1" }, action = { hang = true } },
         { name = "slow", match = { op = "phase", phase = "save 1" }, action = { delay = "1ms" } }]
hog = { at = "full", headroom = "32MiB" }
)";

TEST(SuitesTest, NeighboursOnADeviceAreReadAndComeBackFromTheirStoredForm) {
  const auto suite = parse_suite(kHog, "s.toml");
  ASSERT_TRUE(suite) << suite.error().to_string();
  const auto stored = scenario_from_json(print_scenario(suite->scenarios.front()));
  ASSERT_TRUE(stored) << stored.error().to_string();
  EXPECT_EQ(stored->lives.front().hog.at, "full");
  EXPECT_EQ(stored->lives.front().hog.headroom, 32U << 20);
  EXPECT_TRUE(stored->lives.front().wake_probe);
  EXPECT_TRUE(stored->has_neighbour());
}

TEST(SuitesTest, AHogNeedsARuleThatHoldsTheRank) {
  std::string text(kHog);
  text.replace(text.find("at = \"full\""), 11, "at = \"slow\"");
  EXPECT_FALSE(parse_suite(text, "s.toml"));
}

TEST(SuitesTest, AScenarioComesBackFromItsStoredForm) {
  auto suite = parse_suite(kGood, "mine.toml");
  ASSERT_TRUE(suite);
  const std::string stored = print_scenario(suite->scenarios.at(0));
  auto back = scenario_from_json(stored);
  ASSERT_TRUE(back) << back.error().to_string();
  EXPECT_EQ(print_scenario(*back), stored);
  EXPECT_EQ(back->lives.at(0).plan, suite->scenarios.at(0).lives.at(0).plan);
}

TEST(SuitesTest, AnUnknownKeyIsNamedWithLineColumnAndTheNearestOne) {
  const std::string error = error_of(with(std::string(kGood), "until =", "untill ="));
  EXPECT_THAT(error, HasSubstr("mine.toml:10"));
  EXPECT_THAT(error, HasSubstr("until"));
}

TEST(SuitesTest, AnUnknownKeyOfARuleIsNamedWithTheNearestOne) {
  const std::string error = error_of(with(std::string(kGood), "rank = 1, op", "rnk = 1, op"));
  EXPECT_THAT(error, HasSubstr("mine.toml:11"));
  EXPECT_THAT(error, HasSubstr("`rnk`"));
  EXPECT_THAT(error, HasSubstr("`rank`"));
}

TEST(SuitesTest, AnUnknownOutcomeIsNamedWithTheNearestOne) {
  EXPECT_THAT(error_of(with(std::string(kGood), "\"held\"", "\"hold\"")), HasSubstr("`held`"));
}

TEST(SuitesTest, ASavePointMustHaveItsForm) {
  EXPECT_THAT(error_of(with(std::string(kGood), "\"save 2\"", "\"2\"")), HasSubstr("save N"));
}

TEST(SuitesTest, ASavePointThatNoLifeCanReachIsRefused) {
  for (const char* until : {"save 0", "save -1", "save 99999999999999999999"})
    EXPECT_THAT(error_of(with(std::string(kGood), "\"save 2\"", std::string("\"") + until + "\"")),
                HasSubstr("is not \"save N\""));
}

// Nobody leaves nothing in no time: it would be told as a hang.
TEST(SuitesTest, ATimeLimitOfNothingIsRefused) {
  for (const char* limit : {"no_progress = \"7s\"", "within = \"3s\""}) {
    std::string none(limit);
    none.replace(none.size() - 3, 1, "0");
    EXPECT_THAT(error_of(with(std::string(kGood), limit, none)), HasSubstr("no time at all"));
  }
}

TEST(SuitesTest, AFileSizeOfNothingIsRefused) {
  EXPECT_THAT(
      error_of(with(std::string(kGood), "env = { A = \"b\" }", "limits = { file_size = 0 }")),
      HasSubstr("no byte to write"));
}

// A list of nothing would be taken for one that is not there: for all.
TEST(SuitesTest, AListOfNothingIsRefused) {
  const std::string good(kGood);
  EXPECT_THAT(error_of(with(good, "[\"save 1\", \"none\"]", "[]")), HasSubstr("`resumed`"));
  EXPECT_THAT(error_of(with(good, "[\"C1\"]", "[]")), HasSubstr("is empty"));
  EXPECT_THAT(error_of(with(good, "world = 4", "devices = []")), HasSubstr("is empty"));
  EXPECT_THAT(error_of(with(good, "rank = 1, op = \"write\"", "rank = []")), HasSubstr("is empty"));
  EXPECT_THAT(error_of(with(good, "rank = 1, op = \"write\"", "op = []")), HasSubstr("is empty"));
}

TEST(SuitesTest, ANameThatIsNoFoldersNameIsRefused) {
  for (const char* name : {"", "../evil", ".hidden", "two words"})
    EXPECT_THAT(error_of(with(std::string(kGood), "name = \"one\"",
                              std::string("name = \"") + name + "\"")),
                HasSubstr("is no name"));
}

TEST(SuitesTest, ASwapNeedsTheOtherFile) {
  EXPECT_THAT(error_of(with(std::string(kGood), ", other_rank = 1", "")), HasSubstr("other_rank"));
}

TEST(SuitesTest, TwoScenariosOfOneNameAreRefused) {
  const std::string twice =
      std::string(kGood) + std::string(kGood.substr(kGood.find("[[scenario]]")));
  EXPECT_THAT(error_of(twice), HasSubstr("already defined"));
}

TEST(SuitesTest, TextThatIsNoTomlIsNamedWithItsPlace) {
  EXPECT_THAT(error_of("name = \"x\nsummary = 1"), HasSubstr("mine.toml:1"));
}

TEST(SuitesTest, AnUnknownVariableOfACommandIsNamedWithTheNearestOne) {
  auto command = expand_command({"{bin}/x", "{stat}"}, {{"bin", "/b"}, {"state", "8MiB"}});
  ASSERT_FALSE(command);
  EXPECT_THAT(command.error().to_string(), HasSubstr("`state`"));
}

TEST(SuitesTest, ABareCommandIsRunAsItWasGivenBracesAndAll) {
  const std::vector<std::string> words = {"/opt/my save/path", "--name={step}", "\"quoted\""};
  const Subject subject = bare_subject(words).value();
  auto command = expand_command(subject.command, {{"step", "no"}});
  ASSERT_TRUE(command) << command.error().to_string();
  EXPECT_EQ(*command, words);
}

}  // namespace
}  // namespace savegate::harness
