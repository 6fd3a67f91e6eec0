#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "gpu/digest.h"
#include "harness/worker/savegate.h"

extern "C" int savegate_life_told_from_c(const void* weights, size_t bytes);

namespace savegate::worker {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string digest_of(const void* data, std::size_t bytes) {
  const savegate_memory_range range = {data, bytes};
  char digest[1][33] = {};
  EXPECT_EQ(savegate_digests("cpu", &range, 1, digest), 0) << savegate_error();
  return digest[0];
}

class CApiTest : public testing::Test {
 protected:
  CApiTest() {
    std::string pattern = testing::TempDir() + "/c-api-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    ::setenv("SAVEGATE_EVENTS", (directory_ + "/rank-1.jsonl").c_str(), 1);
    ::setenv("SAVEGATE_DIR", "/checkpoints", 1);
    ::setenv("SAVEGATE_UNTIL", "save 2", 1);
    ::setenv("RANK", "1", 1);
    ::setenv("WORLD_SIZE", "2", 1);
  }
  ~CApiTest() override {
    for (const char* name :
         {"SAVEGATE_EVENTS", "SAVEGATE_DIR", "SAVEGATE_UNTIL", "RANK", "WORLD_SIZE"}) {
      ::unsetenv(name);
    }
    std::filesystem::remove_all(directory_);
  }

  std::vector<json> events() const {
    std::vector<json> lines;
    std::ifstream file(directory_ + "/rank-1.jsonl");
    for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
    return lines;
  }

  std::string directory_;
};

TEST_F(CApiTest, ALifeToldFromCIsWhatTheContractAsksFor) {
  constexpr std::array<std::uint8_t, 4> kWeights = {1, 2, 3, 4};
  ASSERT_EQ(savegate_life_told_from_c(kWeights.data(), kWeights.size()), 0) << savegate_error();
  const auto lines = events();
  std::string kinds;
  for (const json& line : lines) kinds += line.at("event").get<std::string>() + " ";
  EXPECT_EQ(kinds,
            "hello resumed update save_begin save_end save_begin save_end durable memory export "
            "collective_enter collective_exit phase done ");
  EXPECT_EQ(lines[0].at("contract"), SAVEGATE_CONTRACT);
  EXPECT_EQ(lines[0].at("versions"), (json{{"trainer", "1.2"}}));
  EXPECT_TRUE(lines[1].at("step").is_null());
  EXPECT_EQ(lines[2].at("samples"), json::parse("[[0,7],[16,23]]"));
  EXPECT_EQ(lines[3].at("items")[0].at("digest"), gpu::digest_of(kWeights.data(), 4).hex());
  EXPECT_EQ(lines[3].at("items")[0].at("offset"), json::parse("[4]"));
  EXPECT_EQ(lines[4].at("error").at("errno_name"), "ENOSPC");
  EXPECT_EQ(lines[4].at("error").at("path"), "step_1/shard");
  EXPECT_EQ(lines[4].at("error").at("returned"), 10);
  EXPECT_EQ(lines[5].at("attempt"), 2);
  EXPECT_EQ(lines[8].at("memory"), json::parse(R"({"host_rss":4096,"gpu_allocated":null})"));
}

TEST_F(CApiTest, TheEnvironmentIsRead) {
  savegate_worker* worker = savegate_open();
  EXPECT_EQ(savegate_rank(worker), 1);
  EXPECT_EQ(savegate_world(worker), 2);
  EXPECT_EQ(savegate_life(worker), 1);
  EXPECT_EQ(savegate_until_save(worker), 2);
  savegate_close(worker);
}

TEST_F(CApiTest, WrongUseIsSaidAndDoesNothing) {
  EXPECT_EQ(savegate_phase(nullptr, "commit"), -1);
  EXPECT_THAT(savegate_error(), HasSubstr("NULL"));
  savegate_worker* worker = savegate_open();
  const char* const versions[] = {"trainer", nullptr};
  EXPECT_EQ(savegate_hello(worker, versions), -1);
  EXPECT_THAT(savegate_error(), HasSubstr("version"));
  EXPECT_EQ(savegate_load_refused(worker, nullptr, nullptr), -1);
  EXPECT_TRUE(events().empty());
  savegate_close(worker);
}

TEST(CDigestsTest, TheyAreTheLibrarysOwnByOneThreadOrMany) {
  std::vector<std::uint8_t> bytes((8U << 20) + 5);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * i >> 7);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{5000}, bytes.size()}) {
    EXPECT_EQ(digest_of(bytes.data(), size), gpu::digest_of(bytes.data(), size).hex()) << size;
  }
}

TEST(CDigestsTest, TheKnownDigestsComeOut) {
  std::ifstream file(SAVEGATE_SOURCE_DIR "/harness/worker/digest_vectors.txt");
  ASSERT_TRUE(file);
  int vectors = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::size_t size = 0;
    std::string digest;
    words >> size >> digest;
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(7 * i + i / 256);
    EXPECT_EQ(digest_of(bytes.data(), size), digest) << size;
    ++vectors;
  }
  EXPECT_GT(vectors, 20);
}

TEST(CDigestsTest, ADeviceThatIsNotThereIsAnError) {
  const savegate_memory_range range = {nullptr, 0};
  char digest[1][33] = {};
  EXPECT_EQ(savegate_digests("abacus", &range, 1, digest), -1);
  EXPECT_THAT(savegate_error(), HasSubstr("abacus"));
}

}  // namespace
}  // namespace savegate::worker
