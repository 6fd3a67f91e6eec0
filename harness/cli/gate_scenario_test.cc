// The nightly gate: what is new, what is known, what is excused until when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class GateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  std::string write(const std::string& name, const std::string& text) {
    std::string path = savegate_.folder() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  // The reference save path, whole or with one step broken.
  std::string subject(const std::string& broken = "") {
    const std::string reference = SAVEGATE_SOURCE_DIR "/scenarios/subjects/reference/subject.toml";
    std::string text = savegate_.shell("cat " + reference).output;
    const std::string last = "\"{step_memory}\"";
    if (!broken.empty())
      text.insert(text.find(last) + last.size(), ", \"--break\", \"" + broken + "\"");
    return write("subject.toml", text);
  }
  Ran night(const std::string& more = "") {
    return savegate_.run("run smoke/clean smoke/late-eio-at-fsync --subject " + savegate_.folder() +
                         "/subject.toml " + more);
  }
  std::string quarantine(const std::string& until) {
    return " --quarantine " + write("q.toml",
                                    "[[quarantine]]\nscenario = \"smoke/late-*\"\n"
                                    "reason = \"known\"\nuntil = " +
                                        until + "\n");
  }

  SavegateProgram savegate_;
};

TEST_F(GateTest, ANewlyBrokenSavePathIsNewThenKnownAndExcusedUntilItsDateHasPassed) {
  subject();
  const Ran sound = night();
  ASSERT_EQ(sound.status, 0) << sound.output;
  EXPECT_THAT(sound.output, Not(HasSubstr("new")));

  subject("ignore-fsync-error");
  const std::string summary = savegate_.folder() + "/summary.md";
  setenv("GITHUB_ACTIONS", "true", 1);
  setenv("GITHUB_STEP_SUMMARY", summary.c_str(), 1);
  const Ran broken = night();
  unsetenv("GITHUB_ACTIONS");
  unsetenv("GITHUB_STEP_SUMMARY");
  EXPECT_EQ(broken.status, 1) << broken.output;
  EXPECT_THAT(broken.output, HasSubstr("\n::error title=smoke/late-eio-at-fsync%3A FAIL%2C new::"));
  EXPECT_THAT(savegate_.shell("cat " + summary).output,
              HasSubstr("| smoke/late-eio-at-fsync | FAIL, new | "));
  EXPECT_THAT(broken.output, HasSubstr("smoke/late-eio-at-fsync: new\n"));
  EXPECT_THAT(broken.output, Not(HasSubstr("smoke/clean:")));
  EXPECT_THAT(broken.output, HasSubstr("1 failed, 0 invalid; 1 new in"));
  const std::string first = fs::read_symlink(savegate_.store() + "/latest").string();

  const Ran again = night();
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_THAT(again.output, HasSubstr("smoke/late-eio-at-fsync: known since " + first + "\n"));

  const Ran excused = night(quarantine("2999-12-31"));
  EXPECT_EQ(excused.status, 0) << excused.output;
  EXPECT_THAT(excused.output, HasSubstr("quarantined until 2999-12-31: known"));
  EXPECT_THAT(excused.output, HasSubstr("1 in quarantine"));

  const Ran expired = night(quarantine("2020-01-01"));
  EXPECT_EQ(expired.status, 1) << expired.output;
  EXPECT_THAT(expired.output, HasSubstr("its quarantine ended on 2020-01-01: known"));
}

// The rest of the budget goes to random plans, in which a sound save path passes; each can be run
// again from its file.
TEST_F(GateTest, RandomPlansFillTheRestOfTheBudget) {
  const Ran night = savegate_.run("run smoke/clean --budget 6s --seed 3");
  EXPECT_EQ(night.status, 0) << night.output;
  EXPECT_THAT(night.output, testing::ContainsRegex("random plans: [1-9][0-9]* run"));
  EXPECT_THAT(night.output, HasSubstr("--seed 3 makes the same"));
  const Ran again =
      savegate_.run("run " + savegate_.store() + "/latest/random-plans/plan-0001.toml");
  EXPECT_EQ(again.status, 0) << again.output;
}

TEST_F(GateTest, WhatDoesNotFitIntoTheBudgetIsNamedAndNothingProvedIsFour) {
  const Ran night = savegate_.run("run smoke/clean kill-sweep/one-rank --budget 1ns");
  EXPECT_EQ(night.status, 4) << night.output;
  EXPECT_THAT(night.output, HasSubstr("not run within the budget of 1ns, 2: smoke/clean, "
                                      "kill-sweep/one-rank\n"));
  EXPECT_THAT(night.output, HasSubstr("2 skipped"));
}

TEST_F(GateTest, ADamagedHistoryIsSaidAndTheRunIsNotLost) {
  fs::create_directory(savegate_.store());
  std::ofstream(savegate_.store() + "/history.db") << std::string(5000, 'x');
  const Ran ran = savegate_.run("run smoke/clean");
  EXPECT_EQ(ran.status, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("history.db"));
  EXPECT_THAT(ran.output, HasSubstr("1 passed"));
  EXPECT_TRUE(fs::exists(savegate_.store() + "/latest/result.json"));
}

TEST_F(GateTest, AQuarantineThatCannotBeReadIsAnErrorBeforeAnythingIsRun) {
  const Ran ran = savegate_.run("run smoke/clean --quarantine " +
                                write("q.toml", "[[quarantine]]\nscenaro = \"a\"\n"));
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("q.toml:2:1"));
  EXPECT_FALSE(fs::exists(savegate_.store()));
}

}  // namespace
}  // namespace savegate::cli
