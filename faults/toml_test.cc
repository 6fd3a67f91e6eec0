#include "faults/toml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace savegate::faults {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TomlReader root_of(std::string_view text) { return parse_toml(text, "suite.toml").value().root(); }

std::string error_of(TomlReader& reader) {
  auto finished = reader.finish();
  return finished ? "" : finished.error().to_string();
}

TEST(TomlTest, UnknownKeyNamesPlaceAndNearestKey) {
  TomlReader root = root_of("name = 'x'\n\n[[rule]]\n  rnk = 1\n");
  root.string("name");
  for (TomlReader& rule : root.tables("rule")) rule.integer("rank", 0, 0, 9);
  EXPECT_EQ(error_of(root), "suite.toml:4:3: unknown key `rnk` in [[rule]]; did you mean `rank`?");
}

TEST(TomlTest, UnknownKeyOfANestedInlineTableIsFound) {
  TomlReader root = root_of("[[rule]]\nmatch = { rank = 1, pth = 'a' }\n");
  for (TomlReader& rule : root.tables("rule")) {
    auto match = rule.table("match");
    match->integer("rank", 0, 0, 9);
    match->string("path");
  }
  EXPECT_EQ(error_of(root),
            "suite.toml:2:21: unknown key `pth` in [rule.match]; did you mean `path`?");
}

TEST(TomlTest, MisspeltKeyExplainsAMissingOne) {
  TomlReader root = root_of("nmae = 'x'\n");
  root.required_string("name");
  EXPECT_EQ(error_of(root),
            "suite.toml:1:1: unknown key `nmae` at the top level; did you mean `name`?");
}

TEST(TomlTest, MissingKeyNamesItsTable) {
  TomlReader root = root_of("[[life]]\n");
  for (TomlReader& life : root.tables("life")) life.required_string("until");
  EXPECT_EQ(error_of(root), "suite.toml:1:1: missing key `until` in [[life]]");
}

TEST(TomlTest, ErrorIsSharedByAllReadersAndTheFirstIsKept) {
  TomlReader root = root_of("[a]\nx = 'one'\n[b]\ny = 'two'\n");
  auto a = root.table("a");
  auto b = root.table("b");
  a->integer("x", 0, 0, 1);
  b->integer("y", 0, 0, 1);
  EXPECT_EQ(error_of(root), "suite.toml:2:5: `x` in [a] must be an integer, not a string");
  EXPECT_EQ(error_of(*b), error_of(root));
}

TEST(TomlTest, WordNamesTheNearestValidOne) {
  TomlReader root = root_of("outcome = 'complet'\n");
  EXPECT_EQ(root.word("outcome", {"complete", "fail-together"}, "complete"), "complete");
  EXPECT_EQ(error_of(root),
            "suite.toml:1:11: `outcome` at the top level cannot be `complet`; did you mean "
            "`complete`?");
}

TEST(TomlTest, IntegerOutsideItsBoundsIsAnError) {
  TomlReader root = root_of("world = 0\n");
  EXPECT_EQ(root.integer("world", 2, 1, 4096), 2);
  EXPECT_EQ(error_of(root),
            "suite.toml:1:9: `world` at the top level must be between 1 and 4096, not 0");
}

TEST(TomlTest, SyntaxErrorNamesItsPlace) {
  auto parsed = parse_toml("a = 1\nb = = 2\n", "plan.toml");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Code::kInvalid);
  EXPECT_THAT(parsed.error().to_string(), HasSubstr("plan.toml:2:"));
}

// It would be taken for a key that is not there: "in quarantine: nothing" for "everything".
TEST(TomlTest, AListWithoutAnEntryIsRefusedWhereItIsNotAsked) {
  TomlReader words = root_of("ids = []\n");
  words.strings("ids");
  EXPECT_THAT(error_of(words), HasSubstr("`ids` at the top level is empty"));
  TomlReader numbers = root_of("ranks = []\n");
  numbers.integers("ranks", 0, 9);
  EXPECT_THAT(error_of(numbers), HasSubstr("`ranks` at the top level is empty"));
  TomlReader none = root_of("options = []\n");
  EXPECT_THAT(none.strings_or_none("options"), IsEmpty());
  EXPECT_EQ(error_of(none), "");
}

TEST(TomlTest, EachNumberOfAListIsWithinItsRange) {
  TomlReader root = root_of("ranks = [1, -1]\n");
  root.integers("ranks", 0, 9);
  EXPECT_THAT(error_of(root), HasSubstr("must be between 0 and 9, not -1"));
}

TEST(TomlTest, ReadsEachKindOfValue) {
  TomlReader root = root_of(
      "s = 'word'\nn = 0.5\nb = true\none = 'a'\nmany = ['a', 'b']\ni = 3\nis = [1, 2]\n"
      "t1 = 65536\nt2 = '64KiB'\nts = ['1KiB', 2]\n[env]\nA = 'x'\nB = 2\nC = true\n");
  EXPECT_EQ(root.required_string("s"), "word");
  EXPECT_EQ(root.number("n", 0, 0, 1), 0.5);
  EXPECT_TRUE(root.boolean("b", false));
  EXPECT_THAT(root.strings("one"), ElementsAre("a"));
  EXPECT_THAT(root.strings("many"), ElementsAre("a", "b"));
  EXPECT_THAT(root.integers("i", 0, 9), ElementsAre(3));
  EXPECT_THAT(root.integers("is", 0, 9), ElementsAre(1, 2));
  EXPECT_EQ(root.text("t1"), "65536");
  EXPECT_EQ(root.text("t2"), "64KiB");
  EXPECT_THAT(root.texts("ts"), ElementsAre("1KiB", "2"));
  using Entry = std::pair<std::string, std::string>;
  EXPECT_THAT(root.string_map("env"),
              ElementsAre(Entry("A", "x"), Entry("B", "2"), Entry("C", "true")));
  EXPECT_EQ(error_of(root), "");
}

TEST(TomlTest, TableTellsWhereItStands) {
  TomlReader root = root_of("\n\n[[scenario]]\nname = 'x'\n");
  EXPECT_EQ(root.tables("scenario").at(0).where(), "suite.toml:3:1");
}

TEST(DidYouMeanTest, SaysNothingWhereNothingIsNear) {
  EXPECT_EQ(did_you_mean("op", {"at", "when"}), "");
  EXPECT_EQ(did_you_mean("prob", {"path", "probability"}), "; did you mean `probability`?");
  EXPECT_EQ(did_you_mean("NOSPC", {"EDQUOT", "ENOSPC"}), "; did you mean `ENOSPC`?");
}

}  // namespace
}  // namespace savegate::faults
