// `savegate replay`: a scene that was copied elsewhere fails as it did, or says what is not the
// same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// SAVEGATE_REPLAYS says how often; the first ones alone cost little.
int replays() {
  const char* asked = std::getenv("SAVEGATE_REPLAYS");
  return asked != nullptr ? std::atoi(asked) : 2;
}

class ReplayTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
  }
  // The reference save path, or with one step broken.
  std::string subject(const std::string& broken) {
    std::string text = read(SAVEGATE_SOURCE_DIR "/scenarios/subjects/reference/subject.toml");
    const std::string last = "\"{step_memory}\"";
    if (!broken.empty())
      text.insert(text.find(last) + last.size(), ", \"--break\", \"" + broken + "\"");
    const fs::path folder = savegate_.folder() + "/subject";
    fs::create_directories(folder);
    std::ofstream(folder / "subject.toml") << text;
    return (folder / "subject.toml").string();
  }
  static std::string read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // A failing scene, in a folder that is not of the store.
  std::string copied_scene() {
    const Ran ran =
        savegate_.run("run smoke/late-eio-at-fsync --subject " + subject("ignore-fsync-error"));
    EXPECT_EQ(ran.status, 1) << ran.output;
    std::string copy = savegate_.folder() + "/copy";
    fs::copy(savegate_.store() + "/latest/late-eio-at-fsync", copy, fs::copy_options::recursive);
    fs::remove_all(savegate_.store());
    return copy;
  }

  SavegateProgram savegate_;
};

TEST_F(ReplayTest, ACopiedSceneFailsInTheSameWay) {
  const std::string scene = copied_scene();
  for (int i = 0; i < replays(); ++i) {
    const Ran ran = savegate_.run("replay " + scene);
    EXPECT_EQ(ran.status, 1) << ran.output;
    EXPECT_THAT(ran.output,
                HasSubstr("replay: the same as in the scene: FAIL C8, FAIL F6, FAIL F8"));
  }
}

TEST_F(ReplayTest, AMendedProgramPassesAndWhatDiffersIsNamed) {
  const std::string scene = copied_scene();
  const Ran ran = savegate_.run("replay " + scene + " --subject " + subject(""));
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, HasSubstr("differs: command: "));
  EXPECT_THAT(ran.output, HasSubstr("replay: not the same: passed; the scene: FAIL C8"));
}

TEST_F(ReplayTest, ASceneWhoseProgramIsNotHereSaysWhatIsMissing) {
  const std::string scene = copied_scene();
  fs::remove_all(savegate_.folder() + "/subject");
  // Its name is another's than those that come with savegate.
  std::string text = read(scene + "/subject.toml");
  text.replace(text.find("\"reference\""), 11, "\"of-my-own\"");
  std::ofstream(scene + "/subject.toml") << text;
  const Ran ran = savegate_.run("replay " + scene);
  EXPECT_EQ(ran.status, 3) << ran.output;
  EXPECT_THAT(ran.output,
              HasSubstr("the folder of the subject `of-my-own` is not on this machine"));
}

TEST_F(ReplayTest, ASceneThatIsNotWholeIsRefusedByName) {
  const std::string scene = savegate_.folder() + "/half";
  fs::create_directory(scene);
  std::ofstream(scene + "/scenario.json") << "{}";
  const Ran ran = savegate_.run("replay " + scene);
  EXPECT_EQ(ran.status, 2) << ran.output;
}

}  // namespace
}  // namespace savegate::cli
