#include "harness/run/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

// Two runs within one second have the same time in their names.
TEST(StoreTest, RunsNeverShareADirectory) {
  const TestDirectory directory;
  const auto first = RunDirectory::create(directory.path() + "/store", "smoke");
  const auto second = RunDirectory::create(directory.path() + "/store", "smoke");
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->path(), second->path());
  EXPECT_THAT(first->id(), EndsWith("Z-smoke"));
}

TEST(StoreTest, LatestNamesTheRunPublishedLast) {
  const TestDirectory directory;
  for (int run = 0; run < 2; ++run) {
    const auto made = RunDirectory::create(directory.path(), "s");
    ASSERT_TRUE(made);
    ASSERT_TRUE(made->write("result.json", made->id()));
    ASSERT_TRUE(made->publish());
    EXPECT_EQ(read_file(directory.path() + "/latest/result.json").value_or(""), made->id());
  }
}

TEST(StoreTest, NamesOfScenariosAreMadeSafe) {
  const TestDirectory directory;
  EXPECT_EQ(make_new_directory(directory.path(), "a/../b c").value_or(""),
            directory.path() + "/a-..-b-c");
  EXPECT_EQ(make_new_directory(directory.path(), "..").value_or(""), directory.path() + "/unnamed");
}

TEST(StoreTest, ANameThatIsTakenGetsANumber) {
  const TestDirectory directory;
  EXPECT_EQ(make_new_directory(directory.path(), "x").value_or(""), directory.path() + "/x");
  EXPECT_EQ(make_new_directory(directory.path(), "x").value_or(""), directory.path() + "/x-2");
}

TEST(StoreTest, AnUnwritableStoreSaysTheWayOut) {
  const auto run = RunDirectory::create("/proc/no-store-here", "smoke");
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, Code::kUnavailable);
  EXPECT_THAT(run.error().to_string(), HasSubstr("--store"));
}

}  // namespace
}  // namespace savegate::harness
