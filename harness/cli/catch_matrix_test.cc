#include "harness/cli/catch_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace savegate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kIds = {"F1", "F6", "C10"};

TEST(CatchMatrixTest, AControlCaughtByAnotherOracleOnlyIsUncaught) {
  const CatchRow row{"drop-shard", {"F6"}, {"F1"}};
  EXPECT_FALSE(row.caught());
  EXPECT_THAT(row.others(), ElementsAre("F1"));
  EXPECT_THAT(without_a_catch({row}, kIds), ElementsAre("F1", "F6", "C10"));
}

TEST(CatchMatrixTest, OneOfThoseThatItNamesIsEnough) {
  const CatchRow row{"drop-shard", {"F6", "C10"}, {"F1", "C10"}};
  EXPECT_TRUE(row.caught());
  EXPECT_THAT(row.others(), ElementsAre("F1"));
  EXPECT_THAT(without_a_catch({row}, kIds), ElementsAre("F1", "F6"));
}

TEST(CatchMatrixTest, EachControlHasALineAndEachIdThatIsMetAColumn) {
  const std::string text =
      print_matrix({{"a", {"F6"}, {"F6", "C10"}}, {"b", {"C10"}, {"F6"}}}, kIds);
  EXPECT_THAT(text, HasSubstr("a                              X o\n"));
  EXPECT_THAT(text, HasSubstr("b                              o -\n"));
  EXPECT_THAT(text, HasSubstr(" F C\n"));
  EXPECT_THAT(text, HasSubstr(" 6 1\n"));
  EXPECT_THAT(text, HasSubstr("   0\n"));
}

}  // namespace
}  // namespace savegate::cli
