// What a subject.toml or a bare command says wrong is told before anything is run.
#include "harness/subject.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace savegate::harness {
namespace {

using testing::HasSubstr;

std::string subject_error(const std::string& line) {
  const std::string path = testing::TempDir() + "/subject-" + std::to_string(getpid()) + ".toml";
  std::ofstream(path) << "name = \"mine\"\ncommand = [\"./train\"]\n" << line << "\n";
  const auto subject = load_subject(path);
  std::filesystem::remove(path);
  return subject ? "" : subject.error().to_string();
}

TEST(SubjectTest, AStepPatternIsARegularExpressionWithAGroup) {
  EXPECT_EQ(subject_error("step_pattern = \"step_([0-9]+)\""), "");
  EXPECT_THAT(subject_error("step_pattern = \"(\""), HasSubstr("is no regular expression"));
  EXPECT_THAT(subject_error("step_pattern = \"step_[0-9]+\""), HasSubstr("has no group"));
  EXPECT_THAT(subject_error("step_pattern = \"step_[0-9]+\""), HasSubstr(".toml:3:16"));
}

TEST(SubjectTest, NoTimeToStartInIsRefused) {
  EXPECT_EQ(subject_error("start = \"5m\""), "");
  EXPECT_THAT(subject_error("start = \"0s\""), HasSubstr("leaves no time at all"));
}

TEST(SubjectTest, WorldsAreNumbersOfRanks) {
  EXPECT_EQ(subject_error("worlds = [1, 8]"), "");
  EXPECT_THAT(subject_error("worlds = [0]"), HasSubstr("must be between 1 and"));
  EXPECT_THAT(subject_error("worlds = []"), HasSubstr("is empty"));
}

TEST(SubjectTest, ACommandThatSubjectTomlCannotHoldIsRefused) {
  EXPECT_TRUE(bare_subject({"./train", "é"}));
  const auto subject = bare_subject({"./train", "bad\xff"});
  ASSERT_FALSE(subject);
  EXPECT_THAT(subject.error().to_string(), HasSubstr("is no UTF-8"));
}

}  // namespace
}  // namespace savegate::harness
