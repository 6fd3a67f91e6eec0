// The command line as CI sees it: exit codes, bad input, and what is left behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  std::string write(const std::string& name, const std::string& text) {
    std::string path = savegate_.folder() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  // A suite of one scenario with one life.
  std::string suite_with(const std::string& life) {
    return write("mine.toml",
                 "name = \"mine\"\nsummary = \"For a test.\"\n[[scenario]]\nname = \"one\"\n"
                 "summary = \"One life.\"\n[[scenario.life]]\nuntil = \"save 1\"\n" +
                     life);
  }
  // No run was even begun.
  bool store_is_empty() const { return !fs::exists(savegate_.store()); }

  SavegateProgram savegate_;
};

TEST_F(CliTest, ACleanScenarioExitsWithZeroAndNamesItsPlaceInTheStore) {
  const Ran ran = savegate_.run("run smoke/clean");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr(savegate_.store()));
  EXPECT_TRUE(fs::exists(savegate_.store() + "/latest/result.json"));
  EXPECT_TRUE(fs::exists(savegate_.store() + "/latest/junit.xml"));
}

TEST_F(CliTest, AFailureExitsWithOneAndEndsWithTheCommandThatRepeatsIt) {
  const Ran ran = savegate_.run("run smoke/clean -- " + savegate_.bin() +
                                "/savegate-reference --state 1MiB --break fail-silently");
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("savegate run "));
}

TEST_F(CliTest, TheSoundSavePathPassesTheSuitesAndEveryKill) {
  const Ran ran = savegate_.run("run smoke enospc short-io latency restore kill-sweep");
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST_F(CliTest, EvidenceThatCannotBeReadIsInvalidAndTheRestIsJudged) {
  ASSERT_EQ(savegate_.run("run smoke/clean smoke/short-reads").status, 0);
  const std::string latest = savegate_.store() + "/latest";
  std::ofstream(latest + "/clean/scenario.json") << "{";
  const Ran broken = savegate_.run("judge " + latest);
  EXPECT_EQ(broken.status, 4) << broken.output;
  EXPECT_THAT(broken.output, HasSubstr("1 passed, 0 failed, 1 invalid"));
  fs::remove(latest + "/clean/scenario.json");
  EXPECT_EQ(savegate_.run("judge " + latest).status, 4);
}

TEST_F(CliTest, AnUnknownSuiteIsNamedWithTheNearestOne) {
  const Ran ran = savegate_.run("run smok");
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("`smoke`"));
  EXPECT_TRUE(store_is_empty());
}

TEST_F(CliTest, AScenarioOfASuiteInAFileIsNamedBehindItsPath) {
  const std::string suite = suite_with("");
  EXPECT_EQ(savegate_.run("run " + suite + "/one").status, 0);
  const Ran unknown = savegate_.run("run " + suite + "/onne");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.output, HasSubstr("`one`"));
}

TEST_F(CliTest, AnUnknownFlagExitsWithTwo) {
  EXPECT_EQ(savegate_.run("run smoke --wrld 2").status, 2);
}

TEST_F(CliTest, AnUnsetVariableIsNeverTakenForADefault) {
  for (const std::string words :
       {"run smoke/clean -- $UNSET", "check-subject -- $UNSET", "loop smoke/clean -- \"$UNSET\"",
        "run smoke/clean --backing \"\"", "run smoke/clean --backing=$UNSET",
        "run smoke/clean --seed -1"}) {
    const Ran ran = savegate_.run(words);
    EXPECT_EQ(ran.status, 2) << words << "\n" << ran.output;
  }
  EXPECT_TRUE(store_is_empty());
}

TEST_F(CliTest, AMalformedSuiteIsNamedWithFileLineAndColumnAndNothingIsStarted) {
  const Ran ran = savegate_.run("run " + suite_with("expect = { outcom = \"complete\" }\n"));
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr("mine.toml:8:"));
  EXPECT_THAT(ran.output, HasSubstr("`outcome`"));
  EXPECT_TRUE(store_is_empty());
}

TEST_F(CliTest, ARuleThatCanMatchNothingIsInvalidAndExitsWithFour) {
  const Ran ran = savegate_.run("run controls/rule-without-a-match");
  EXPECT_EQ(ran.status, 4) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("INVALID"));
}

TEST_F(CliTest, ZeroTensorsComparedIsInvalidAndExitsWithFour) {
  const std::string subject = write("subject.toml",
                                    "name = \"nothing\"\ncommand = [\"{bin}/savegate-reference\", "
                                    "\"--state\", \"1MiB\", \"--break\", "
                                    "\"compare-nothing\"]\n");
  const Ran ran = savegate_.run("run smoke/clean --subject " + subject);
  EXPECT_EQ(ran.status, 4) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("INVALID"));
}

// The kernel lets nobody read where a process waits amid its exec: the runner must not wait with
// it.
TEST_F(CliTest, ARankThatHangsAmidAnExecIsEnded) {
  const std::string script = write("exec.py", R"(
import os
file = open(os.path.join(os.environ["SAVEGATE_DIR"], "held"), "w")
os.execv("/bin/sleep", ["sleep", "0"])
)");
  const std::string suite = suite_with(R"(no_progress = "1s"
rules  = [{ match = { op = "close", path = "held", rank = 0 }, action = { hang = true } }]
expect = { outcome = "complete" }
)");
  const Ran ran = savegate_.run("run " + suite + " --world 1 -- python3 " + script);
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("the kernel does not say where: amid an exec"));
  EXPECT_THAT(ran.output, HasSubstr("hung: no progress for 1.0 s"));
}

TEST_F(CliTest, ADeviceOrAWorldThatTheSubjectDoesNotRunOnExitsWithTwo) {
  const std::string subject =
      write("small.toml", "name = \"small\"\ncommand = [\"/bin/true\"]\nworlds = [1, 2]\n");
  const Ran device = savegate_.run("run smoke/clean --device cuda --subject " + subject);
  EXPECT_EQ(device.status, 2);
  EXPECT_THAT(device.output, HasSubstr("runs on cpu"));
  const Ran world = savegate_.run("run smoke/clean --world 3 --subject " + subject);
  EXPECT_EQ(world.status, 2);
  EXPECT_THAT(world.output, HasSubstr("1, 2"));
  EXPECT_TRUE(store_is_empty());
}

TEST_F(CliTest, AMissingExecutableExitsWithThree) {
  const Ran ran = savegate_.run("run smoke/clean -- /no/such/program");
  EXPECT_EQ(ran.status, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("/no/such/program"));
}

TEST_F(CliTest, AStoreThatCannotBeWrittenExitsWithThree) {
  const Ran ran = savegate_.run("run smoke/clean --store /proc/nowhere");
  EXPECT_EQ(ran.status, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("/proc/nowhere"));
}

TEST_F(CliTest, AFullStoreIsTheEnvironmentsFault) {
  if (geteuid() != 0) GTEST_SKIP() << "a small file system of its own needs root";
  const Ran ran =
      savegate_.shell("unshare -m sh -c 'mkdir " + savegate_.folder() +
                      "/small && mount -t tmpfs -o size=64k none " + savegate_.folder() +
                      "/small && " + savegate_.bin() + "/savegate run smoke/clean --store " +
                      savegate_.folder() + "/small/store'");
  EXPECT_EQ(ran.status, 3) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("ENOSPC"));
}

TEST_F(CliTest, ADamagedStoredScenarioExitsWithTwoAndIsNamed) {
  const std::string damaged = write("stored.json", "{\"name\": ");
  const Ran ran = savegate_.run("run " + damaged);
  EXPECT_EQ(ran.status, 2);
  EXPECT_THAT(ran.output, HasSubstr(damaged));
}

TEST_F(CliTest, AnEventLineThatIsNoJsonIsInvalidAndQuoted) {
  const std::string script =
      write("subject.sh", "echo 'this is no event' >> \"$SAVEGATE_EVENTS\"\n");
  const Ran ran = savegate_.run("run smoke/clean -- /bin/sh " + script);
  EXPECT_NE(ran.status, 0);
  EXPECT_THAT(ran.output, HasSubstr("this is no event"));
}

TEST_F(CliTest, ARankThatFloodsItsLogIsBoundedAndThatIsSaid) {
  const std::string script = write("flood.sh", "yes 'a line of a flood' | head -c 64000000\n");
  savegate_.run("run smoke/clean -- /bin/sh " + script);
  const std::string log = savegate_.store() + "/latest/clean/life-1/logs/rank-0.log";
  ASSERT_TRUE(fs::exists(log));
  EXPECT_LT(fs::file_size(log), 16U << 20);
  EXPECT_EQ(savegate_.shell("grep -c 'left out here' " + log).status, 0);
}

TEST_F(CliTest, JudgingAgainGivesTheSameVerdictFromTheStoreAlone) {
  ASSERT_EQ(savegate_.run("run smoke/clean").status, 0);
  const Ran ran = savegate_.run("judge " + savegate_.store() + "/latest");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_TRUE(fs::exists(savegate_.store() + "/latest/judgement-1.json"));
}

TEST_F(CliTest, TheLastLineOfAFailureRepeatsIt) {
  const Ran first = savegate_.run("run smoke/clean -- " + savegate_.bin() +
                                  "/savegate-reference --state 1MiB --break fail-silently");
  ASSERT_EQ(first.status, 1);
  const std::string label = "repeat:";
  const std::size_t at = first.output.find(label);
  ASSERT_NE(at, std::string::npos) << first.output;
  const std::size_t from = at + label.size();
  const Ran again = savegate_.shell(first.output.substr(from, first.output.find('\n', at) - from));
  EXPECT_EQ(again.status, 1) << again.output;
  EXPECT_THAT(again.output, HasSubstr("C12"));
}

TEST_F(CliTest, AStoredScenarioCanBeRunAgain) {
  ASSERT_EQ(savegate_.run("run smoke/enospc-mid-shard").status, 0);
  const Ran ran =
      savegate_.run("run " + savegate_.store() + "/latest/enospc-mid-shard/scenario.json");
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST_F(CliTest, AControlThatIsSoundMakesSelftestExitWithOne) {
  const std::string controls =
      write("controls.toml",
            "[[control]]\nname = \"not-broken\"\nbreaks = \"nothing\"\nscenario = \"smoke/clean\"\n"
            "arguments = [\"--state\", \"1MiB\"]\ncaught_by = [\"F6\"]\n");
  const Ran ran = savegate_.run("selftest --controls " + controls);
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("UNCAUGHT"));
}

TEST_F(CliTest, OneControlCaughtExitsWithZero) {
  const Ran ran = savegate_.run("selftest skip-shard-fsync");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("1 of 1"));
}

TEST_F(CliTest, DoctorFindsAllThatIsNeeded) {
  const Ran ran = savegate_.run("doctor --store " + savegate_.store());
  EXPECT_EQ(ran.status, 0) << ran.output;
}

TEST_F(CliTest, AnInterruptStopsTheRanksAndKeepsWhatWasCollected) {
  const Ran ran = savegate_.run_and_signal("run smoke enospc restore", SIGINT, /*seed=*/1);
  EXPECT_EQ(ran.status, 130) << ran.output;
  EXPECT_EQ(savegate_.processes_left(), "");
}

}  // namespace
}  // namespace savegate::cli
