#include "fusefs/inode_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace savegate::fusefs {
namespace {

class InodeTableTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "inodesXXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    top_ = name;
    std::filesystem::create_directories(top_ / "a" / "b");
    std::ofstream(top_ / "a" / "b" / "file") << "x";
    ASSERT_EQ(table_.set_root(::open(top_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), 0);
  }
  void TearDown() override { std::filesystem::remove_all(top_); }

  NodePtr look(const NodePtr& parent, const std::string& name) {
    NodePtr node;
    struct stat attributes {};
    EXPECT_EQ(table_.lookup(parent, name, node, attributes), 0);
    return node;
  }

  std::filesystem::path top_;
  InodeTable table_;
};

TEST_F(InodeTableTest, APathIsFollowedUpToTheRoot) {
  auto folder = look(look(table_.root(), "a"), "b");
  auto file = look(folder, "file");
  EXPECT_EQ(table_.path(*table_.root()), "");
  EXPECT_EQ(table_.path(*file), "a/b/file");
  EXPECT_EQ(table_.path(*folder, "new"), "a/b/new");
  EXPECT_EQ(table_.path(*table_.root(), "new"), "new");
}

TEST_F(InodeTableTest, RenamingADirectoryChangesThePathsBelowIt) {
  auto folder = look(table_.root(), "a");
  auto file = look(look(folder, "b"), "file");
  const auto before = table_.epoch();
  table_.moved(folder, table_.root(), "z");
  EXPECT_EQ(table_.path(*file), "z/b/file");
  EXPECT_NE(table_.epoch(), before);
}

TEST_F(InodeTableTest, AHardLinkHasTheNameThatWasUsedLast) {
  std::filesystem::create_hard_link(top_ / "a" / "b" / "file", top_ / "link");
  auto file = look(look(look(table_.root(), "a"), "b"), "file");
  EXPECT_EQ(look(table_.root(), "link"), file);
  EXPECT_EQ(table_.path(*file), "link");
}

TEST_F(InodeTableTest, ANodeIsForgottenAfterItsLastLookup) {
  auto folder = look(table_.root(), "a");
  look(table_.root(), "a");
  const auto id = table_.id(*folder);
  table_.forget(id, 1);
  EXPECT_EQ(table_.find(folder->dev, folder->ino), folder);
  table_.forget(id, 1);
  EXPECT_EQ(table_.find(folder->dev, folder->ino), nullptr);
}

TEST_F(InodeTableTest, OpenFilesAreNotTrimmed) {
  auto folder = look(look(table_.root(), "a"), "b");
  auto file = look(folder, "file");
  EXPECT_EQ(table_.size(), 3u);
  EXPECT_EQ(table_.unopened(10).size(), 3u);
  file->handles++;
  auto names = table_.unopened(10);
  EXPECT_EQ(names.size(), 2u);
  for (const auto& entry : names) EXPECT_NE(entry.name, "file");
}

TEST_F(InodeTableTest, AMissingNameIsItsErrno) {
  NodePtr node;
  struct stat attributes {};
  EXPECT_EQ(table_.lookup(table_.root(), "nothing", node, attributes), ENOENT);
  EXPECT_EQ(node, nullptr);
}

}  // namespace
}  // namespace savegate::fusefs
