// `savegate check-subject`, and what becomes of a subject that misuses its hook.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "harness/cli/savegate_program.h"

namespace savegate::cli {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;

// A Python program that saves once, with what each test makes wrong.
class CheckSubjectTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = SavegateProgram::why_not(); !why.empty()) GTEST_SKIP() << why;
    if (savegate_.shell("python3 -c 'import sys; assert sys.version_info >= (3, 9)'").status != 0)
      GTEST_SKIP() << "there is no python3 of version 3.9 or later";
  }

  std::string program(const std::string& body) const {
    const std::string path = savegate_.folder() + "/train.py";
    std::ofstream(path)
        << "import os, sys\nsys.path.insert(0, '" SAVEGATE_SOURCE_DIR
           "/python')\nimport savegate_hook\n"
           "hook = savegate_hook.Hook()\nhook.resumed(None)\n"
           "state = {'model': {'w': 1.5}, 'step': 1}\n"
           "def save(step):\n"
           "    with hook.saving(step, state):\n"
           "        with open(os.environ['SAVEGATE_DIR'] + '/model', 'w') as file:\n"
           "            file.write('1.5')\n"
        << body;
    return "python3 " + path;
  }
  Ran check(const std::string& body) const {
    return savegate_.run("check-subject --world 1 --store " + savegate_.store() + " -- " +
                         program(body));
  }

  SavegateProgram savegate_;
};

TEST_F(CheckSubjectTest, APythonProgramThatTellsAllConforms) {
  const Ran ran = check("hook.update(1, samples=[(0, 7)])\nsave(1)\nhook.done()\n");
  EXPECT_EQ(ran.status, 0) << ran.output;
  EXPECT_THAT(ran.output, AllOf(HasSubstr("conforms: 0 missing, 0 wrong"),
                                ContainsRegex("collective_enter +-  left out  not judged: C6")));
}

TEST_F(CheckSubjectTest, WhatIsMissingIsSaidWithWhatItCosts) {
  const Ran ran = check("save(1)\n");  // exits 0 without `done`
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output, AllOf(ContainsRegex("update +-  missing   not judged: G5 R2 R5"),
                                ContainsRegex("done +-  missing   not judged: C12 expect")));
}

TEST_F(CheckSubjectTest, ALineThatIsNoJsonAHookThatThrowsAndAChildThatSpeaksAsItsRankAreWrong) {
  const Ran ran = check(
      "hook.update(1)\nstate['lock'] = object()\nsave(1)\n"
      "if os.fork() == 0:\n    hook.update(2)\n    os._exit(0)\n"
      "os.wait()\nopen(os.environ['SAVEGATE_EVENTS'], 'a').write('oops\\n')\nhook.done()\n");
  EXPECT_EQ(ran.status, 1) << ran.output;
  EXPECT_THAT(ran.output,
              AllOf(HasSubstr("no JSON: `oops`"), HasSubstr("the subject's hook failed in `items`"),
                    HasSubstr("a child of the rank's own")));
}

TEST_F(CheckSubjectTest, AProgramThatPrintsAGibibyteAndTellsNothingProvesNothing) {
  const Ran ran = savegate_.run("check-subject --world 1 --store " + savegate_.store() +
                                " -- head -c 1G /dev/zero");
  EXPECT_EQ(ran.status, 4) << ran.output;
  std::uintmax_t stored = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(savegate_.store())) {
    if (file.is_regular_file()) stored += file.file_size();
  }
  EXPECT_LT(stored, 64U << 20);
}

}  // namespace
}  // namespace savegate::cli
