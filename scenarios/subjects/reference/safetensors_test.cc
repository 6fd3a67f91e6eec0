#include "scenarios/subjects/reference/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

namespace savegate::reference {
namespace {

using gpu::Dtype;

const std::vector<TensorEntry> kEntries = {{"a", Dtype::kF32, {2, 3}, 0, 24},
                                           {"b", Dtype::kF8E4m3, {5}, 24, 29}};

// By hand, as another library would read it.
TEST(SafetensorsTest, TheHeaderIsLengthThenJsonPaddedToEight) {
  const std::string header = print_header(kEntries);
  std::uint64_t length = 0;
  std::memcpy(&length, header.data(), 8);
  EXPECT_EQ(length % 8, 0U);
  ASSERT_EQ(header.size(), 8 + length);
  EXPECT_EQ(header.substr(8, 2), "{\"");
  EXPECT_NE(header.find(R"("a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]})"),
            std::string::npos);
  EXPECT_NE(header.find(R"("b":{"dtype":"F8_E4M3","shape":[5],"data_offsets":[24,29]})"),
            std::string::npos);
}

TEST(SafetensorsTest, WhatIsPrintedIsParsed) {
  const std::string header = print_header(kEntries);
  const auto parsed = parse_header(header.substr(8), header.size() + 29, "f");
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->entries.size(), 2U);
  EXPECT_EQ(parsed->bytes, header.size());
  EXPECT_EQ(parsed->entries[1].name, "b");
  EXPECT_EQ(parsed->entries[1].dtype, Dtype::kF8E4m3);
  EXPECT_EQ(parsed->entries[1].begin, 24U);
}

TEST(SafetensorsTest, WhatDoesNotAddUpIsRefused) {
  const auto parse = [](const std::string& json, std::uint64_t data) {
    return parse_header(json, kHeaderLengthBytes + json.size() + data, "f").has_value();
  };
  const std::string sound = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  EXPECT_TRUE(parse(sound, 4));
  EXPECT_FALSE(parse(sound, 3));  // truncated
  EXPECT_FALSE(parse(sound, 5));  // bytes of no tensor
  EXPECT_FALSE(parse(R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}})", 4));
  EXPECT_FALSE(parse(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5));
  EXPECT_FALSE(parse(R"({"a":{"dtype":"X9","shape":[4],"data_offsets":[0,4]}})", 4));
  EXPECT_FALSE(parse(R"({"a":{"dtype":"U8","shape":"4","data_offsets":[0,4]}})", 4));
  EXPECT_FALSE(parse(R"({"a":)", 0));
}

}  // namespace
}  // namespace savegate::reference
