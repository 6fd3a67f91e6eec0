#include "faults/layout.h"

#include <gtest/gtest.h>

#include "faults/toml.h"

namespace savegate::faults {
namespace {

bool matches(const char* pattern, const char* path) { return Glob(pattern).matches(path); }

TEST(GlobTest, StarStaysWithinAComponent) {
  EXPECT_TRUE(matches("step_*/x", "step_2/x"));
  EXPECT_TRUE(matches("*", "x"));
  EXPECT_TRUE(matches("a*b*c", "aXbbYc"));
  EXPECT_FALSE(matches("*", "a/b"));
  EXPECT_FALSE(matches("step_*", "step_2/x"));
}

TEST(GlobTest, DoubleStarCrossesFoldersAndMayBeEmpty) {
  EXPECT_TRUE(matches("**", ""));
  EXPECT_TRUE(matches("**", "a/b/c"));
  EXPECT_TRUE(matches("**/shard-*", "shard-1"));
  EXPECT_TRUE(matches("**/shard-*", "a/b/shard-1"));
  EXPECT_TRUE(matches("a/**/z", "a/z"));
  EXPECT_TRUE(matches("a/**/z", "a/b/c/z"));
  EXPECT_TRUE(matches("a/**", "a/b/c"));
  EXPECT_FALSE(matches("**/shard-*", "a/myshard-1"));
  EXPECT_FALSE(matches("**/shard-*", "shard-1/x"));
  EXPECT_FALSE(matches("a/**/z", "a/bz"));
}

TEST(GlobTest, DoubleStarTriesEveryFolder) {
  EXPECT_TRUE(matches("**/a/*", "a/b/a/c"));
  EXPECT_TRUE(matches("**/x/**/y", "x/x/z/y"));
}

TEST(GlobTest, QuestionMarkIsOneCharacterButNoSlash) {
  EXPECT_TRUE(matches("s?ep", "step"));
  EXPECT_FALSE(matches("s?ep", "s/ep"));
  EXPECT_FALSE(matches("s?ep", "sep"));
}

TEST(GlobTest, BracketsAreClasses) {
  EXPECT_TRUE(matches("shard-[0-3]", "shard-2"));
  EXPECT_FALSE(matches("shard-[0-3]", "shard-4"));
  EXPECT_TRUE(matches("[!a]", "b"));
  EXPECT_FALSE(matches("[!a]", "a"));
  EXPECT_FALSE(matches("[!a]", "/"));
  EXPECT_TRUE(matches("[]]", "]"));
  EXPECT_TRUE(matches("[a-]", "-"));
  EXPECT_TRUE(matches("a[b", "a[b"));
}

TEST(GlobTest, BackslashEscapes) {
  EXPECT_TRUE(matches("a\\*b", "a*b"));
  EXPECT_FALSE(matches("a\\*b", "axb"));
  EXPECT_TRUE(matches("a\\", "a\\"));
}

TEST(GlobTest, ManyStarsTakeLinearSteps) {
  EXPECT_FALSE(matches("*a*a*a*a*a*a*a*a*a*a*a*a*b", std::string(4096, 'a').c_str()));
}

Layout layout() {
  Layout layout;
  layout.shard = {"step_*/shard-*"};
  layout.marker = {"step_*/.metadata"};
  layout.pointer = {"latest"};
  layout.auxiliary = {"step_*/*.json"};
  layout.temporary = {"*.tmp", "tmp_*"};
  return layout;
}

TEST(LayoutTest, RoleComesFromTheFirstListThatMatches) {
  EXPECT_EQ(classify(layout(), "step_2/shard-1.json").role, Role::kShard);
  EXPECT_EQ(classify(layout(), "step_2/.metadata").role, Role::kMarker);
  EXPECT_EQ(classify(layout(), "latest").role, Role::kPointer);
  EXPECT_EQ(classify(layout(), "step_2/rng.json").role, Role::kAuxiliary);
  EXPECT_EQ(classify(layout(), "README").role, Role::kNone);
  EXPECT_FALSE(classify(layout(), "latest").temporary);
}

TEST(LayoutTest, TemporaryFileHasTheRoleOfWhatItBecomes) {
  const Classified file = classify(layout(), "tmp_step_2/.metadata.tmp");
  EXPECT_EQ(file.role, Role::kMarker);
  EXPECT_TRUE(file.temporary);
  EXPECT_EQ(file.final_path, "step_2/.metadata");
}

TEST(LayoutTest, TemporaryNameMayGoOnAfterItsPattern) {
  Layout with_pid = layout();
  with_pid.temporary = {".*.tmp-*"};
  EXPECT_EQ(classify(with_pid, ".latest.tmp-4711").final_path, "latest");
}

TEST(LayoutTest, NothingBeforeTheSuffixIsNoTemporaryFile) {
  EXPECT_FALSE(classify(layout(), "step_2/.tmp").temporary);
}

TEST(LayoutTest, ReadsItsTableAndRefusesATemporaryPatternOverFolders) {
  TomlReader good = parse_toml("shard = 'a/*'\ntemporary = ['*.tmp']\n", "s.toml")->root();
  EXPECT_EQ(read_layout(good).shard.at(0), "a/*");
  EXPECT_TRUE(good.finish());
  TomlReader bad = parse_toml("temporary = ['x/*.tmp']\n", "s.toml")->root();
  read_layout(bad);
  auto finished = bad.finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().path, "s.toml:1:13");
}

}  // namespace
}  // namespace savegate::faults
