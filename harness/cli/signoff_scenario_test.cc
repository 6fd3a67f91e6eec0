// `savegate signoff`: an acceptance, its sheet, and what is found when anything differs later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/cli/savegate_program.h"
#include "reports/schema_testing.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The store is in the folder of the save path, as where both are one project.
class SignoffTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
    std::string toml = content_of(SAVEGATE_SOURCE_DIR "/scenarios/subjects/reference/subject.toml");
    const std::string there = "{bin}/savegate-reference";
    fs::copy_file(savegate_.bin() + "/savegate-reference", program());
    for (std::size_t at; (at = toml.find(there)) != std::string::npos;)
      toml.replace(at, there.size(), "{subject}/save-path");
    write_subject(toml);
    signed_ = savegate_.run("signoff --saves 3 --subject " + subject());
  }
  std::string subject() const { return savegate_.folder() + "/subject.toml"; }
  std::string program() const { return savegate_.folder() + "/save-path"; }
  void write_subject(const std::string& text) const { std::ofstream(subject()) << text; }
  std::string sheet() const { return savegate_.store() + "/latest/signoff.json"; }
  Ran check() const { return savegate_.run("signoff --check " + sheet()); }
  Ran compare(const std::string& more = "") const {
    return savegate_.run("signoff --compare " + sheet() + more);
  }

  SavegateProgram savegate_;
  Ran signed_;
};

TEST_F(SignoffTest, ASoundSavePathIsSignedAndTheSheetFitsItsSchema) {
  ASSERT_EQ(signed_.status, 0) << signed_.output;
  EXPECT_THAT(signed_.output, HasSubstr("unmeasured: a GPU"));
  const auto json = nlohmann::json::parse(content_of(sheet()));
  const auto schema =
      nlohmann::json::parse(content_of(SAVEGATE_SOURCE_DIR "/docs/signoff-schema.json"));
  EXPECT_EQ(reports::Schema(schema).misfit(json), "");
  EXPECT_EQ(json["requirements"][0]["id"], "C11");
  EXPECT_EQ(json["requirements"][0]["outcome"], "PASS");
  // Three, the one after the first kill, and the last: two ranks each.
  EXPECT_EQ(json["saves"].size(), 10U);
  EXPECT_THAT(content_of(savegate_.store() + "/latest/signoff.html"), HasSubstr("PASS: "));
}

// Of every file one bit, which no size shows; one file more is gone, and one is new.
TEST_F(SignoffTest, EvidenceThatIsAlteredMissingOrAddedIsNamed) {
  EXPECT_EQ(check().status, 0) << check().output;
  const std::string run = savegate_.store() + "/latest/";
  const std::string gone = "acceptance/life-1/trace.bin";
  const auto json = nlohmann::json::parse(content_of(sheet()));
  std::string expected;
  for (const auto& [path, file] : json["evidence"].items()) {
    std::string bytes = content_of(run + path);
    if (bytes.empty()) continue;
    bytes[bytes.size() / 2] ^= 1;
    std::ofstream(run + path) << bytes;
    expected += (path == gone ? "missing: " : "altered: ") + path + "\n";
  }
  EXPECT_THAT(expected, HasSubstr("altered: acceptance/life-1/events/rank-0.jsonl\n"));
  fs::remove(run + gone);
  std::ofstream(run + "acceptance/extra") << "x";
  const Ran ran = check();
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(ran.output, expected + "added: acceptance/extra\n");
}

TEST_F(SignoffTest, ASheetThatWasEditedIsNamed) {
  std::string text = content_of(sheet());
  text.replace(text.find("\"world\": 2"), 10, "\"world\": 8");
  std::ofstream(sheet()) << text;
  const Ran ran = check();
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.output, HasSubstr("altered: signoff.json"));
}

TEST_F(SignoffTest, AnotherWorldMountLayoutOrCodeIsNamed) {
  EXPECT_EQ(compare().status, 0) << compare().output;

  const Ran world = compare(" --world 4");
  EXPECT_EQ(world.status, 1);
  EXPECT_EQ(world.output, "world: 4, was 2\n");

  const Ran mount = compare(" --backing /dev/shm");
  EXPECT_EQ(mount.status, 1);
  EXPECT_THAT(mount.output, HasSubstr("backing.directory: /dev/shm, was in the store\n"));
  EXPECT_THAT(mount.output, HasSubstr("backing.options: "));

  const std::string toml = content_of(subject());
  std::ofstream(savegate_.folder() + "/module.py") << "x = 1\n";
  const Ran code = compare();
  EXPECT_EQ(code.status, 1);
  EXPECT_THAT(code.output, HasSubstr("files.digest: "));
  EXPECT_THAT(code.output, HasSubstr("file added: module.py\n"));
  fs::remove(savegate_.folder() + "/module.py");

  std::ofstream(program(), std::ios::app) << "x";
  const Ran rebuilt = compare();
  EXPECT_EQ(rebuilt.status, 1);
  EXPECT_THAT(rebuilt.output, HasSubstr("executable.digest: "));
  EXPECT_THAT(rebuilt.output, HasSubstr("file altered: save-path\n"));
  fs::resize_file(program(), fs::file_size(program()) - 1);

  std::string layout = toml;
  layout.replace(layout.find("\"latest\""), 8, "\"newest\"");
  write_subject(layout);
  const Ran other = compare();
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.output, HasSubstr("layout: "));
  EXPECT_THAT(other.output, HasSubstr("pointer: newest"));
  EXPECT_THAT(other.output, HasSubstr("file altered: subject.toml\n"));
}

}  // namespace
}  // namespace savegate::cli
