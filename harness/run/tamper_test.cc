#include "harness/run/tamper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

using ::testing::HasSubstr;

Tamper change(Tamper::Kind kind, int rank = 0) {
  Tamper tamper;
  tamper.kind = kind;
  tamper.rank = rank;
  return tamper;
}

Tamper at_byte(Tamper tamper, std::uint64_t byte) {
  tamper.at.bytes = byte;
  return tamper;
}

class TamperTest : public ::testing::Test {
 protected:
  TamperTest() {
    subject_.layout.shard = {"step_*/shard-*"};
    subject_.layout.marker = {"step_*/commit"};
    subject_.layout.pointer = {"latest"};
    subject_.layout.temporary = {"*.tmp"};
    subject_.step_pattern = "step_([0-9]+)";
    for (const std::string step : {"step_1", "step_2"}) {
      put(step + "/shard-0", step + " shard 0 " + std::string(1000, 'a'));
      put(step + "/shard-1", step + " shard 1 " + std::string(1000, 'b'));
      put(step + "/commit", "done");
    }
    put("latest", "step_2\n");
  }

  void put(const std::string& path, const std::string& content) const {
    const std::string full = root() + "/" + path;
    ASSERT_TRUE(make_directories(full.substr(0, full.rfind('/'))));
    ASSERT_TRUE(write_file(full, content));
  }
  std::string get(const std::string& path) const {
    return read_file(root() + "/" + path).value_or("missing");
  }
  Result<std::string> apply(const Tamper& tamper) const {
    return apply_tamper(tamper, subject_, root());
  }
  const std::string& root() const { return directory_.path(); }

  TestDirectory directory_;
  Subject subject_;
};

TEST_F(TamperTest, FlipChangesOneBitAndSaysWhere) {
  const std::string before = get("step_2/shard-1");
  const auto done = apply(at_byte(change(Tamper::Kind::kFlip, 1), 100));
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(*done, "flip step_2/shard-1 byte 100");
  std::string expected = before;
  expected[100] = static_cast<char>(expected[100] ^ 1);
  EXPECT_EQ(get("step_2/shard-1"), expected);
}

// The checkpoint that a restore takes is the pointer's, not the highest number.
TEST_F(TamperTest, ThePointerSaysWhichCheckpointIsMeant) {
  put("latest", "step_1");
  const auto done = apply(change(Tamper::Kind::kRemove));
  ASSERT_TRUE(done);
  EXPECT_EQ(get("step_1/shard-0"), "missing");
  EXPECT_NE(get("step_2/shard-0"), "missing");
}

TEST_F(TamperTest, ABareNumberInThePointerIsAStep) {
  put("latest", "1");
  EXPECT_EQ(apply(change(Tamper::Kind::kRemove)).value_or(""), "remove step_1/shard-0");
}

TEST_F(TamperTest, WithoutAPointerTheHighestStepIsMeant) {
  std::filesystem::remove(root() + "/latest");
  EXPECT_EQ(apply(change(Tamper::Kind::kRemove)).value_or(""), "remove step_2/shard-0");
}

TEST_F(TamperTest, RemovesThePointerItself) {
  Tamper pointer = change(Tamper::Kind::kRemove);
  pointer.role = faults::Role::kPointer;
  ASSERT_TRUE(apply(pointer));
  EXPECT_EQ(get("latest"), "missing");
}

TEST_F(TamperTest, EmptyLeavesAFileOfNoBytes) {
  ASSERT_TRUE(apply(change(Tamper::Kind::kEmpty, 1)));
  EXPECT_EQ(get("step_2/shard-1"), "");
}

TEST_F(TamperTest, TruncateTakesAShare) {
  const std::string before = get("step_2/shard-0");
  Tamper quarter = change(Tamper::Kind::kTruncate);
  quarter.at.share = 0.25;
  ASSERT_TRUE(apply(quarter));
  EXPECT_EQ(get("step_2/shard-0"), before.substr(0, before.size() / 4));
}

TEST_F(TamperTest, ZeroKeepsTheSize) {
  const std::size_t size = get("step_2/shard-0").size();
  ASSERT_TRUE(apply(at_byte(change(Tamper::Kind::kZero), 10)));
  EXPECT_EQ(get("step_2/shard-0"), "step_2 sha" + std::string(size - 10, '\0'));
}

TEST_F(TamperTest, SwapExchangesTwoRanksFiles) {
  const std::string zero = get("step_2/shard-0");
  const std::string one = get("step_2/shard-1");
  ASSERT_TRUE(apply(change(Tamper::Kind::kSwap)));
  EXPECT_EQ(get("step_2/shard-0"), one);
  EXPECT_EQ(get("step_2/shard-1"), zero);
}

TEST_F(TamperTest, ForeignIsTheSameRanksFileOfAnOlderStep) {
  ASSERT_TRUE(apply(change(Tamper::Kind::kForeign, 1)));
  EXPECT_EQ(get("step_2/shard-1"), get("step_1/shard-1"));
}

TEST_F(TamperTest, ForeignIsAnotherRanksFileWhereThereIsOneStep) {
  std::filesystem::remove_all(root() + "/step_1");
  ASSERT_TRUE(apply(change(Tamper::Kind::kForeign, 1)));
  EXPECT_EQ(get("step_2/shard-1"), get("step_2/shard-0"));
}

TEST_F(TamperTest, AGlobNamesTheFileDirectly) {
  Tamper glob = change(Tamper::Kind::kRemove);
  glob.path = "step_1/com*";
  EXPECT_EQ(apply(glob).value_or(""), "remove step_1/commit");
}

TEST_F(TamperTest, ATemporaryFileIsNoShard) {
  std::filesystem::remove(root() + "/step_2/shard-0");
  put("step_2/shard-0.tmp", "half");
  EXPECT_EQ(apply(change(Tamper::Kind::kRemove)).value_or(""), "remove step_2/shard-1");
}

// A change that changes nothing would let a scenario pass that tested nothing.
TEST_F(TamperTest, ZeroingZerosIsAnError) {
  put("step_2/shard-0", std::string(100, '\0'));
  const auto done = apply(change(Tamper::Kind::kZero));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().to_string(), HasSubstr("would change nothing"));
}

TEST_F(TamperTest, SaysThatThereIsNoSuchFile) {
  const auto done = apply(change(Tamper::Kind::kFlip, 7));
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().to_string(), HasSubstr("no shard file of rank 7"));
}

}  // namespace
}  // namespace savegate::harness
