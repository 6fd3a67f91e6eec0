#include "harness/run/tree_listing.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

// The values are those of the contract's recipe, made with another xxHash program.
TEST(TreeListingTest, DigestIsThatOfTheContract) {
  EXPECT_EQ(digest_bytes(""), "2c0a8a99dc147d5445c3b49d035665b2");
  EXPECT_EQ(digest_bytes("a"), "d80e1c74dedbeaf9e3d39fd244e5a9e4");
  EXPECT_EQ(digest_bytes(std::string(5000, 'x')), "f9b5e5f68e3d9cae6cc1f97af01a596b");
}

// A file is read in chunks; a leaf must not begin anew where a chunk does.
TEST(TreeListingTest, DigestOfALargeFileIsThatOfItsBytes) {
  const TestDirectory directory;
  std::string content(3 * 1024 * 1024 + 17, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 5);
  ASSERT_TRUE(write_file(directory.path() + "/f", content));
  EXPECT_EQ(digest_file(directory.path() + "/f").value_or(""), digest_bytes(content));
}

TEST(TreeListingTest, TheStartOfAFileHasTheDigestOfItsBytes) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/f";
  const std::string content(3 * 1024 * 1024 + 17, 'x');
  ASSERT_TRUE(write_file(path, content + "more"));
  EXPECT_EQ(digest_start(path, content.size()).value_or(""), digest_bytes(content));
  EXPECT_EQ(digest_start(path, content.size() + 5).value_or("none"), "");
  EXPECT_EQ(digest_start(path + "-gone", 0).value_or("none"), "");
}

// What a killed writer left of a line is none.
TEST(TreeListingTest, WholeLinesEndAtTheLastNewline) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/log";
  const std::string lines = "one\ntwo\n";
  const std::string far(3 << 20, 'x');  // more than is read at once
  for (const std::string& rest : {std::string(), std::string("thr"), far}) {
    ASSERT_TRUE(write_file(path, lines + rest));
    EXPECT_EQ(bytes_to_be_kept(path).value_or(0), lines.size());
  }
  ASSERT_TRUE(write_file(path, far));
  EXPECT_EQ(bytes_to_be_kept(path).value_or(0), far.size());
  EXPECT_FALSE(bytes_to_be_kept(path + "-gone"));
}

// It is written anew as a whole, with the bracket after what was added.
TEST(TreeListingTest, OfAnArrayTheItemsAreKept) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/log.json";
  const std::string items = "[\n {\"loss\": [3, 2]},\n {\"loss\": [1]}";
  ASSERT_TRUE(write_file(path, items + "\n]\n"));
  EXPECT_EQ(bytes_to_be_kept(path).value_or(0), items.size());
  ASSERT_TRUE(write_file(path, items + ",\n {\"loss\": []}\n]\n"));
  EXPECT_EQ(digest_start(path, items.size()).value_or(""), digest_bytes(items));
  ASSERT_TRUE(write_file(path, "[]"));
  EXPECT_EQ(bytes_to_be_kept(path).value_or(0), 1U);
  ASSERT_TRUE(write_file(path, "[1, 2,\n 3, 4"));  // cut off: no array
  EXPECT_EQ(bytes_to_be_kept(path).value_or(0), 7U);
}

TEST(TreeListingTest, ListsFilesFoldersAndLinksInOrder) {
  const TestDirectory directory;
  ASSERT_TRUE(make_directories(directory.path() + "/step_1"));
  ASSERT_TRUE(write_file(directory.path() + "/step_1/shard", "abc"));
  std::filesystem::create_symlink("step_1", directory.path() + "/latest");
  const auto entries = list_tree(directory.path());
  ASSERT_TRUE(entries);
  ASSERT_EQ(entries->size(), 3U);
  EXPECT_EQ(entries->at(0).path, "latest");
  EXPECT_EQ(entries->at(0).type, 'l');
  EXPECT_EQ(entries->at(0).digest, "step_1");
  EXPECT_EQ(entries->at(1).type, 'd');
  EXPECT_EQ(entries->at(2).path, "step_1/shard");
  EXPECT_EQ(entries->at(2).size, 3U);
  EXPECT_EQ(entries->at(2).digest, digest_bytes("abc"));
}

TEST(TreeListingTest, AMissingRootIsAnEmptyTree) {
  const auto entries = list_tree("/nonexistent/root");
  ASSERT_TRUE(entries);
  EXPECT_TRUE(entries->empty());
}

}  // namespace
}  // namespace savegate::harness
