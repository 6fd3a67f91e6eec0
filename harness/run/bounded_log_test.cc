#include "harness/run/bounded_log.h"

#include <gtest/gtest.h>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

class BoundedLogTest : public ::testing::Test {
 protected:
  std::string path() const { return directory_.path() + "/log"; }
  TestDirectory directory_;
};

TEST_F(BoundedLogTest, KeepsAllOfAShortLog) {
  auto log = BoundedLog::create(path(), 100);
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append(std::string(60, 'a')));
  ASSERT_TRUE(log->append(std::string(40, 'b')));
  ASSERT_TRUE(log->finish());
  EXPECT_EQ(read_file(path()).value_or(""), std::string(60, 'a') + std::string(40, 'b'));
  EXPECT_EQ(log->dropped(), 0U);
}

TEST_F(BoundedLogTest, KeepsHeadAndTailOfAFloodAndSaysWhatIsMissing) {
  auto log = BoundedLog::create(path(), 20);
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append("the head::"));
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(log->append("flood"));
  ASSERT_TRUE(log->append("::the tail"));
  ASSERT_TRUE(log->finish());
  EXPECT_EQ(read_file(path()).value_or(""),
            "the head::\n[savegate: 5000 bytes left out here]\n::the tail");
  EXPECT_EQ(log->printed(), 5020U);
  EXPECT_EQ(log->dropped(), 5000U);
}

// What the runner is killed over is read from what is on file by then.
TEST_F(BoundedLogTest, TheHeadIsOnFileAtOnce) {
  auto log = BoundedLog::create(path());
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append("first words"));
  EXPECT_EQ(read_file(path()).value_or(""), "first words");
}

}  // namespace
}  // namespace savegate::harness
