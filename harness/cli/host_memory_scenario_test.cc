// Host memory over real saves: what grows is found and what does not raises no alarm, and a death
// for want of memory is named by what really killed: a guard, the kernel, a device, a rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::HasSubstr;

int environment_or(const char* name, int otherwise) {
  const char* said = std::getenv(name);
  return said == nullptr ? otherwise : std::atoi(said);
}

// How often each death is died.
int runs() { return environment_or("SAVEGATE_DEATH_RUNS", 1); }
int saves() { return environment_or("SAVEGATE_GROWTH_SAVES", 12); }

class HostMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }

  void expect_named(const std::string& scenario) {
    for (int run = 1; run <= runs(); ++run) {
      const Ran ran = savegate_.run("run " + scenario);
      if (ran.output.find("1 skipped") != std::string::npos) GTEST_SKIP() << ran.output;
      ASSERT_EQ(ran.status, 0) << "run " << run << "\n" << ran.output;
      ASSERT_THAT(ran.output, HasSubstr("1 passed")) << "run " << run;
    }
  }

  SavegateProgram savegate_;
};

// Another program fills the page cache meanwhile, 32 MiB for each save.
TEST_F(HostMemoryTest, SoundSavesRaiseNoAlarmWhateverThePageCacheDoes) {
  const std::string suite = savegate_.folder() + "/growth.toml";
  const std::string saved = std::to_string(saves());
  const Ran made = savegate_.shell(
      "awk '/^\\[\\[scenario\\]\\]$/ && ++n == 2 { exit } { sub(/save [0-9]+/, \"save " + saved +
      "\"); print }' " SAVEGATE_SOURCE_DIR "/scenarios/suites/host-memory.toml > " + suite);
  ASSERT_EQ(made.status, 0) << made.output;
  const Ran ran = savegate_.shell("dd if=/dev/zero of=" + savegate_.folder() +
                                  "/cache bs=32M status=none count=" + saved + " & " +
                                  savegate_.bin() + "/savegate run " + suite + " --store " +
                                  savegate_.store() + "; code=$?; wait; exit $code");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("host-memory/growth"));
}

TEST_F(HostMemoryTest, AGuardsKillIsNamed) { expect_named("host-memory/guard"); }
TEST_F(HostMemoryTest, TheKernelsKillIsNamed) { expect_named("host-memory/cgroup-oom"); }
TEST_F(HostMemoryTest, ARulesKillIsNamed) { expect_named("host-memory/killed"); }
TEST_F(HostMemoryTest, ADeviceOutOfMemoryIsNamed) {
  if (runs() == 1) GTEST_SKIP() << "GpuMemoryTest runs it once; SAVEGATE_DEATH_RUNS repeats it";
  expect_named("gpu-memory/out-of-memory-in-save --device simulated");
}

}  // namespace
}  // namespace savegate::cli
