#include "harness/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace savegate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();

struct Split {
  int left = 0;
  std::optional<std::vector<std::string>> command;
};
Split split(std::vector<std::string> words) {
  std::vector<char*> argv;
  argv.reserve(words.size());
  for (std::string& word : words) argv.push_back(word.data());
  Split result{static_cast<int>(argv.size()), {}};
  result.command = split_command(result.left, argv.data());
  return result;
}

std::string words_error(const SaidOfSubject& said) {
  const auto checked = check_subject_words(said);
  return checked ? "" : checked.error().to_string();
}

TEST(ArgumentsTest, AllAfterTheFirstDashesIsTheCommand) {
  const Split found = split({"savegate", "run", "smoke", "--", "./train", "--", "-x"});
  EXPECT_EQ(found.left, 3);
  EXPECT_THAT(*found.command, ElementsAre("./train", "--", "-x"));
  EXPECT_FALSE(split({"savegate", "run", "smoke"}).command);
}

// `savegate run smoke -- $TRAIN` with TRAIN unset tested something else, and was green.
TEST(ArgumentsTest, DashesWithNoProgramAfterThemAreRefused) {
  const Split found = split({"savegate", "run", "smoke", "--"});
  ASSERT_TRUE(found.command);
  EXPECT_THAT(words_error({.subcommand = "run", .command = found.command}),
              HasSubstr("no program after `--`"));
  EXPECT_THAT(words_error({.subcommand = "run", .command = std::vector<std::string>{""}}),
              HasSubstr("no program after `--`"));
}

TEST(ArgumentsTest, ASubjectBesideACommandIsRefused) {
  const std::vector<std::string> command = {"./train"};
  EXPECT_THAT(words_error({.subcommand = "run", .subject_said = true, .command = command}),
              HasSubstr("two save paths"));
  EXPECT_EQ(words_error({.subcommand = "run", .command = command}), "");
  EXPECT_EQ(words_error({.subcommand = "run", .subject_said = true, .command = {}}), "");
}

TEST(ArgumentsTest, ACommandForWhatRunsNoSavePathIsRefused) {
  EXPECT_THAT(words_error({.subcommand = "judge",
                           .takes_subject = false,
                           .command = std::vector<std::string>{"./train"}}),
              HasSubstr("`savegate judge` runs no save path"));
}

TEST(ArgumentsTest, AnOptionWithNothingAfterItsEqualsSignIsRefused) {
  const char* none[] = {"savegate", "run", "--backing=", "smoke"};
  EXPECT_FALSE(check_assignments(4, none));
  const char* some[] = {"savegate", "loop", "--backing=/nfs", "--vary=state=", "a="};
  EXPECT_TRUE(check_assignments(5, some));
}

TEST(ArgumentsTest, AWholeNumberIsNeitherSignedNorCutToWhatFits) {
  EXPECT_EQ(whole_number_error("0", 0, kMost), "");
  EXPECT_EQ(whole_number_error("9223372036854775807", 0, kMost), "");
  for (const char* text : {"-1", "+1", "", " 1", "1x", "1e3", "9223372036854775808",
                           "99999999999999999999999", "-18446744073709551615"})
    EXPECT_NE(whole_number_error(text, 0, kMost), "") << text;
  EXPECT_NE(whole_number_error("0", 1, kMost), "");
}

TEST(ArgumentsTest, WhatIsNoNumberIsInNoRange) {
  EXPECT_EQ(number_error("0.95", 0.5, 1), "");
  EXPECT_EQ(number_error("1e-3", 0.000001, 1), "");
  for (const char* text : {"nan", "inf", "-0.9", "1.5", "", "0.9x"})
    EXPECT_NE(number_error(text, 0.5, 1), "") << text;
}

}  // namespace
}  // namespace savegate::cli
