// `savegate loop` on a save path whose failures are drawn beforehand: that it finds them, names
// what causes them and accuses nothing else, in as many trials as SAVEGATE_LOOP_TRIALS says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <random>
#include <regex>

#include "harness/cli/savegate_program.h"
#include "reports/statistics.h"

namespace savegate::cli {
namespace {

constexpr double kFlaky = 0.1;  // of a save: the probability that it fails
constexpr double kLoopConfidence = 0.99;

int trials_asked() {
  const char* asked = std::getenv("SAVEGATE_LOOP_TRIALS");
  return asked != nullptr ? std::atoi(asked) : 0;
}

using Draws = std::vector<bool>;  // of one arm, a round each: whether its save fails

Draws draws_of(std::uint64_t seed, double probability, std::size_t rounds) {
  std::mt19937_64 random(seed);
  Draws draws(rounds);
  for (std::size_t i = 0; i < rounds; ++i)
    draws[i] = static_cast<double>(random() >> 11) * 0x1p-53 < probability;
  return draws;
}

// The round that fails first, from 1; 0 where all are sound.
std::size_t first_failure(const Draws& draws) {
  for (std::size_t i = 0; i < draws.size(); ++i)
    if (draws[i]) return i + 1;
  return 0;
}

class LoopTrialsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
    std::ofstream(file("one.toml"))
        << "name = \"trials\"\nsummary = \"For a test.\"\n[[scenario]]\nname = \"save\"\n"
           "summary = \"One save.\"\nworld = 1\n[[scenario.life]]\nuntil = \"save 1\"\n";
    // The arm is what the loop varies; each has its draws and its count of rounds.
    std::ofstream(file("save.sh"))
        << "cd '" << savegate_.folder() << "'\narm=$WRITERS-$STAGING\n"
        << "round=$(($(cat count$arm 2>/dev/null || echo 0) + 1))\necho $round > count$arm\n"
           "echo saved > \"$SAVEGATE_DIR/shard.tmp\"\n"
           "mv \"$SAVEGATE_DIR/shard.tmp\" \"$SAVEGATE_DIR/shard\"\n"
           "test \"$(sed -n ${round}p draws$arm)\" = sound\n";
  }
  void plant(const std::string& arm, const Draws& draws) {
    std::ofstream out(file("draws" + arm));
    for (const bool fails : draws) out << (fails ? "fails\n" : "sound\n");
  }
  // Its rounds one after the other, for the counts; each trial in a store of its own.
  std::string loop(const std::string& words) {
    savegate_.shell("cd " + savegate_.folder() + " && rm -rf store count*");
    return savegate_
        .run("loop " + file("one.toml") + " --jobs 1 --keep none " + words + " -- sh " +
             file("save.sh"))
        .output;
  }
  std::string file(const std::string& name) const { return savegate_.folder() + "/" + name; }

  SavegateProgram savegate_;
};

TEST_F(LoopTrialsTest, AFlakySaveIsFoundInTheRoundInWhichItFailsFirst) {
  const int trials = std::max(1, trials_asked());
  const std::size_t rounds = reports::rounds_to_exclude(kFlaky, kLoopConfidence);
  const std::size_t fewer = reports::rounds_to_exclude(kFlaky, 0.95);
  int found = 0;
  int found_in_fewer = 0;
  for (int trial = 1; trial <= trials; ++trial) {
    const Draws draws = draws_of(static_cast<std::uint64_t>(trial), kFlaky, rounds);
    const std::size_t planted = first_failure(draws);
    plant("-", draws);
    const std::string output = loop("--confidence 0.99 --failure-probability 0.1");
    const std::string expected =
        planted == 0 ? std::to_string(rounds) + " clean rounds: with 99 % confidence"
                     : "round " + std::to_string(planted) + " failed; " +
                           std::to_string(planted - 1) + " others were clean";
    EXPECT_THAT(output, testing::HasSubstr(expected)) << "trial " << trial;
    if (planted != 0) ++found;
    if (planted != 0 && planted <= fewer) ++found_in_fewer;
  }
  std::cout << "found in " << found << " of " << trials << " trials of " << rounds
            << " rounds (99 %); in " << found_in_fewer << " within " << fewer << " (95 %)\n";
  EXPECT_GE(found * 100, trials * 95);
}

struct Accusations {
  bool guilty = false;  // writers
  bool innocent = false;
};

// Three arms, twelve rounds each.
class LoopFactorTrialsTest : public LoopTrialsTest {
 protected:
  void SetUp() override {
    if (trials_asked() == 0) GTEST_SKIP() << "SAVEGATE_LOOP_TRIALS says how many; 4 s each";
    LoopTrialsTest::SetUp();
  }
  Accusations accusations(int trial, double baseline, double with_writers) {
    constexpr std::size_t kRounds = 12;
    const auto seed = static_cast<std::uint64_t>(trial) * 3;
    plant("1-pinned", draws_of(seed, baseline, kRounds));
    plant("8-pinned", draws_of(seed + 1, with_writers, kRounds));
    plant("1-pageable", draws_of(seed + 2, baseline, kRounds));
    const std::string output =
        loop("--rounds 12 --vary env.WRITERS=1,8 --vary env.STAGING=pinned,pageable");
    const auto says = [&](const std::string& pattern) {
      return std::regex_search(output, std::regex(pattern + " of 12 rounds failed, the failure"));
    };
    EXPECT_TRUE(std::regex_search(output, std::regex("baseline: [0-9]+ of 12 rounds"))) << output;
    return {says("env.WRITERS=8: [0-9]+"), says("env.STAGING=pageable: [0-9]+")};
  }
};

TEST_F(LoopFactorTrialsTest, TheFactorThatMakesSavesFailIsNamed) {
  int named = 0;
  int innocent = 0;
  for (int trial = 1; trial <= trials_asked(); ++trial) {
    const Accusations said = accusations(trial, 0.1, 0.9);
    named += said.guilty ? 1 : 0;
    innocent += said.innocent ? 1 : 0;
  }
  std::cout << "named in " << named << " of " << trials_asked()
            << " trials, the innocent factor beside it in " << innocent << "\n";
  EXPECT_GE(named * 100, trials_asked() * 95);
  EXPECT_LE(innocent * 100, trials_asked() * 5);
}

// Half of all saves fail: where chance makes the largest differences.
TEST_F(LoopFactorTrialsTest, InnocentFactorsAreAccusedNoMoreOftenThanTheLevelSays) {
  const int trials = trials_asked() * 2;
  int accused = 0;
  for (int trial = 1; trial <= trials; ++trial) {
    const Accusations said = accusations(1000 + trial, 0.5, 0.5);
    accused += said.guilty || said.innocent ? 1 : 0;
  }
  std::cout << "an innocent factor accused in " << accused << " of " << trials << " trials\n";
  EXPECT_LE(accused * 100, trials * 5);
}

}  // namespace
}  // namespace savegate::cli
