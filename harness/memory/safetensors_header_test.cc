#include "harness/memory/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

using testing::HasSubstr;

constexpr const char* kGood =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]},)"
    R"("b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]},)"
    R"("empty":{"dtype":"I64","shape":[0,7],"data_offsets":[20,20]}})";

std::string error_of(std::string_view json, std::uint64_t bytes) {
  const auto parsed = parse_safetensors_header(json, bytes);
  return parsed ? "accepted" : parsed.error().to_string();
}

std::string tensor(const std::string& fields) { return R"({"t":{)" + fields + "}}"; }

TEST(SafetensorsHeaderTest, BytesAreCountedByDtype) {
  const auto parsed = parse_safetensors_header(kGood, 20);
  ASSERT_TRUE(parsed) << parsed.error().to_string();
  EXPECT_EQ(parsed->tensors, 3U);
  EXPECT_EQ(parsed->bytes, 20U);
  EXPECT_EQ(parsed->bytes_by_dtype.at("BF16"), 12U);
  EXPECT_EQ(parsed->bytes_by_dtype.at("F32"), 8U);
}

TEST(SafetensorsHeaderTest, ATruncatedFileIsToldFromALongOne) {
  EXPECT_THAT(error_of(kGood, 19), HasSubstr("truncated"));
  EXPECT_THAT(error_of(kGood, 21), HasSubstr("too long"));
}

TEST(SafetensorsHeaderTest, OverlapsAndGapsAreNamed) {
  const std::string two = R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},)"
                          R"("b":{"dtype":"U8","shape":[8],"data_offsets":[)";
  EXPECT_THAT(error_of(two + "4,12]}}", 12), HasSubstr("`b` overlaps"));
  EXPECT_THAT(error_of(two + "9,17]}}", 17), HasSubstr("`b` leaves 1 bytes unused"));
}

TEST(SafetensorsHeaderTest, ATensorThatIsNotWhatItsOffsetsHoldIsNamed) {
  for (const char* fields :
       {R"("dtype":"F32","shape":[2],"data_offsets":[0,4])",
        R"("dtype":"F32","shape":[2],"data_offsets":[8,0])",
        R"("dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0])",
        R"("dtype":"F4","shape":[3],"data_offsets":[0,1])"}) {
    EXPECT_THAT(error_of(tensor(fields), 8), HasSubstr("not what its data_offsets")) << fields;
  }
}

TEST(SafetensorsHeaderTest, AFieldThatIsMissingOrOfAnotherTypeIsNamed) {
  EXPECT_THAT(error_of(tensor(""), 0), HasSubstr("no dtype"));
  EXPECT_THAT(error_of(tensor(R"("dtype":"F32","shape":[-1])"), 0), HasSubstr("no shape"));
  EXPECT_THAT(error_of(tensor(R"("dtype":"F32","shape":[],"data_offsets":[0])"), 0),
              HasSubstr("no data_offsets"));
  EXPECT_THAT(error_of(tensor(R"("dtype":"Q7","shape":[],"data_offsets":[0,1])"), 1),
              HasSubstr("unknown dtype"));
  EXPECT_THAT(error_of(R"({"t":[]})", 0), HasSubstr("is no object"));
  EXPECT_THAT(error_of("[]", 0), HasSubstr("no JSON object"));
}

// Whatever bytes it is given, it answers: a value or an error, never an end of the program.
TEST(SafetensorsHeaderTest, AnyDamageIsAnAnswer) {
  std::mt19937 random(7);  // NOLINT: the same each time
  const std::string good = kGood;
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = good;
    for (unsigned i = 0, changes = 1 + random() % 4; i < changes; ++i) {
      const std::size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random() % 256);
          break;
        case 1:
          damaged.erase(at, 1 + random() % 8);
          break;
        default:
          damaged.insert(at, good.substr(random() % good.size(), random() % 30));
      }
      if (damaged.empty()) damaged = "{";
    }
    const auto parsed = parse_safetensors_header(damaged, 20);
    EXPECT_LE(parsed ? parsed->bytes : 0, 20U) << damaged;
  }
}

class SafetensorsFileTest : public ::testing::Test {
 protected:
  std::string error_of_file(const std::string& content) {
    const std::string path = directory_.path() + "/shard.safetensors";
    EXPECT_TRUE(write_file(path, content));
    const auto read = read_safetensors_header(path);
    return read ? "accepted" : read.error().to_string();
  }
  TestDirectory directory_;
};

std::string length(std::uint64_t bytes) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(bytes >> (8 * i) & 255);
  return text;
}

TEST_F(SafetensorsFileTest, ASoundFileIsRead) {
  const std::string header = kGood;
  EXPECT_EQ(error_of_file(length(header.size()) + header + std::string(20, 'x')), "accepted");
}

TEST_F(SafetensorsFileTest, AHeaderLongerThanItsFileIsRefusedUnread) {
  for (const std::uint64_t bytes : {std::uint64_t{3}, kLongestHeader + 1, UINT64_MAX}) {
    EXPECT_THAT(error_of_file(length(bytes) + "{}"), HasSubstr("a header of")) << bytes;
  }
  EXPECT_THAT(error_of_file("short"), HasSubstr("too short"));
  EXPECT_THAT(error_of_file(length(2) + "xx"), HasSubstr("no JSON object"));
}

}  // namespace
}  // namespace savegate::harness
