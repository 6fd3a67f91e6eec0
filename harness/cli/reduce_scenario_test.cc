// `savegate reduce`: of a plan, a world and a state, what the failure needs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class ReduceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  // Rules that a sound save path copes with, each at a write of its own, and one that it reports.
  std::string plan_of(int rules, int guilty) {
    std::string path = savegate_.folder() + "/plan.toml";
    std::ofstream file(path);
    file << "name = \"plan\"\nsummary = \"For a test.\"\n[[scenario]]\nname = \"one\"\n"
            "summary = \"One save.\"\nrequirements = [\"F4\"]\nworld = 2\n"
            "variables = { state = \"256KiB\" }\n[[scenario.life]]\nuntil = \"save 1\"\n";
    for (int i = 1; i <= rules; ++i) {
      file << fmt::format("[[scenario.life.rules]]\nname = \"rule {}\"\nrequired = false\n", i);
      if (i == guilty)
        file << "match = { op = \"fsync\" }\naction = { errno = \"EIO\" }\n";
      else
        file << fmt::format("match = {{ op = \"write\", nth = {} }}\n", i)
             << "action = { short = \"50%\" }\n";
    }
    return path;
  }
  std::string reduced() {
    return savegate_.shell("cat " + savegate_.store() + "/latest/reduced.toml").output;
  }

  SavegateProgram savegate_;
};

TEST_F(ReduceTest, TwelveRulesOfWhichOneIsGuiltyBecomeThatRule) {
  const Ran ran = savegate_.run("reduce " + plan_of(12, 8));
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("reduce: rules 1 of 12, world 1 of 2, state "));
  EXPECT_THAT(reduced(), HasSubstr("name = \"rule 8\""));
  EXPECT_THAT(reduced(), Not(HasSubstr("short")));

  const Ran again = savegate_.run("run " + savegate_.store() + "/latest/reduced.toml");
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_THAT(again.output, HasSubstr("FAIL expect"));
}

TEST_F(ReduceTest, ASceneIsReducedWithTheSubjectThatItNames) {
  ASSERT_EQ(savegate_.run("run " + plan_of(2, 1)).status, 1);
  const Ran ran = savegate_.run("reduce " + savegate_.store() + "/latest/one");
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("reduce: rules 1 of 2, world 1 of 2"));
  EXPECT_THAT(ran.output, HasSubstr("repeat with: savegate replay "));
}

TEST_F(ReduceTest, WhatPassesIsNotReduced) {
  const Ran ran = savegate_.run("reduce " + plan_of(1, 0) + " --world 1");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("reduce: there is nothing to reduce: it passes"));
}

// Nothing is wrong with what was asked for.
TEST_F(ReduceTest, AMachineThatCannotLimitMemoryIsTheEnvironmentsFault) {
  const Ran ran = savegate_.shell(
      fmt::format("unshare --mount sh -c 'mount -t tmpfs -o ro none /sys/fs/cgroup && "
                  "{}/savegate reduce host-memory/guard --store {}'",
                  savegate_.bin(), savegate_.store()));
  EXPECT_EQ(ran.status, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("host-memory/guard: memory is limited by cgroups: "));
}

}  // namespace
}  // namespace savegate::cli
