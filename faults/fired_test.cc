#include "faults/fired.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace savegate::faults {
namespace {

using ::testing::HasSubstr;

FiredRecord example() {
  FiredRecord record;
  record.time_ns = UINT64_MAX;
  record.seq = 12;
  record.rule = "disk full under rank 1's \"second\" shard write";
  record.hit = 1;
  record.action = "errno ENOSPC after 65536";
  record.life = 2;
  record.attempt = 1;
  record.phase = "save 2/commit";
  record.caller = {.rank = 1, .relation = Relation::kThread, .pid = 4711, .tid = 4712};
  record.op = Op::kWrite;
  record.path = "step_2/shard-1.tmp";
  record.path2 = "step_2/shard-1.safetensors";
  record.offset = 67108864;
  record.requested = 1048576;
  record.returned = 65536;
  record.error = ENOSPC;
  record.fs_free = 3;
  return record;
}

TEST(FiredTest, ReadsBackWhatItWrote) {
  const std::string line = to_json_line(example());
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_THAT(line, HasSubstr(R"("relation":"thread")"));
  EXPECT_THAT(line, HasSubstr(R"("error":"ENOSPC")"));
  auto record = fired_from_json_line(line);
  ASSERT_TRUE(record) << record.error().to_string();
  EXPECT_EQ(to_json_line(*record), line);
  EXPECT_EQ(record->caller.tid, 4712);
  EXPECT_EQ(record->time_ns, UINT64_MAX);
}

TEST(FiredTest, NoErrorIsAnEmptyWord) {
  FiredRecord record = example();
  record.error = 0;
  EXPECT_EQ(fired_from_json_line(to_json_line(record)).value().error, 0);
}

TEST(FiredTest, PathThatIsNoUtf8KeepsItsRecord) {
  FiredRecord record = example();
  record.path = "shard-\xff";
  EXPECT_TRUE(fired_from_json_line(to_json_line(record)));
}

TEST(FiredTest, BadLineIsQuoted) {
  auto cut = fired_from_json_line(R"({"time_ns":1,"se)");
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().to_string(), HasSubstr(R"({"time_ns":1,"se)"));
  auto missing = fired_from_json_line(R"({"time_ns":1})");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().to_string(), HasSubstr("without a valid `seq`"));
}

}  // namespace
}  // namespace savegate::faults
