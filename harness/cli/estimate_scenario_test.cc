// What `savegate estimate` says of a checkpoint's save, held against what the job held when it
// saved.
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <string>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

// The last number behind `"key":`, 0 where there is none.
double number_behind(const std::string& text, const std::string& key) {
  const std::size_t at = text.rfind("\"" + key + "\":");
  if (at == std::string::npos) return 0;
  double value = 0;
  const std::size_t digit = text.find_first_of("0123456789", at + key.size() + 3);
  if (digit == std::string::npos) return 0;
  std::from_chars(text.data() + digit, text.data() + text.size(), value);
  return value;
}

class EstimateTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
    const Ran made = savegate_.shell(
        "printf '%s\\n' 'name = \"one-save\"' 'summary = \"-\"' "
        "'[[scenario]]' 'name = \"save\"' 'summary = \"-\"' "
        "'[scenario.variables]' 'state = \"STATE\"' "
        "'[[scenario.life]]' 'until = \"save 1\"' "
        "'memory = { limit = \"64GiB\" }' > " +
        suite("STATE"));
    ASSERT_EQ(made.status, 0) << made.output;
  }

  std::string suite(const std::string& state) const {
    return savegate_.folder() + "/" + state + ".toml";
  }

  // Saves a state of that size once; the bytes that the job's cgroup held at its peak.
  double peak_of(const std::string& subject, const std::string& state) {
    const Ran made =
        savegate_.shell("sed s/STATE/" + state + "/ " + suite("STATE") + " > " + suite(state));
    EXPECT_EQ(made.status, 0) << made.output;
    const Ran ran = savegate_.run("run " + suite(state) + " --keep all --subject " + subject);
    EXPECT_EQ(ran.status, 0) << ran.output;
    skipped_ = ran.output.find("1 skipped") != std::string::npos ? ran.output : "";
    const Ran records = savegate_.shell("cat " + scenario() + "/life-1/memory.jsonl");
    return number_behind(records.output, "cgroup_peak");
  }

  std::string scenario() const { return savegate_.store() + "/latest/save"; }

  void expect_estimated(const std::string& subject, const std::string& known) {
    const double programs = peak_of(subject, "64KiB");  // what they hold beside the state
    if (!skipped_.empty()) GTEST_SKIP() << skipped_;
    const double measured = peak_of(subject, "160MiB");
    const Ran ran =
        savegate_.shell(savegate_.bin() + "/savegate estimate " + scenario() +
                        "/work --json --sleeping 0 --others " +
                        std::to_string(static_cast<std::uint64_t>(programs)) + " " + known);
    const double estimated = number_behind(ran.output, "peak");
    EXPECT_LT(std::abs(estimated - measured), 0.1 * measured)
        << "measured " << measured << ", the programs alone " << programs << "\n"
        << ran.output;
    RecordProperty("measured", std::to_string(measured));
    RecordProperty("estimated", std::to_string(estimated));
    std::printf("%s: measured %.0f, estimated %.0f: %+.1f %%\n", subject.c_str(), measured,
                estimated, 100 * (estimated / measured - 1));
  }

  SavegateProgram savegate_;
  std::string skipped_;
};

TEST_F(EstimateTest, ASaveFromTheStateItselfPeaksAsEstimated) {
  expect_estimated("reference", "--staging 0");
}

TEST_F(EstimateTest, ASaveThatTakesASnapshotPeaksAsEstimated) {
  expect_estimated("reference-async", "");
}

}  // namespace
}  // namespace savegate::cli
