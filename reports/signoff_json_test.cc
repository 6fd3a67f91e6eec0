// What is no sign-off is named by its file, in words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/signoff.h"

namespace savegate::reports {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(SignoffJsonTest, TextThatIsNoJsonIsNamedByItsFile) {
  EXPECT_THAT(split_seal("root:x:0", "/etc/passwd").error().to_string(), HasSubstr("/etc/passwd"));
  EXPECT_THAT(signoff_from_json("root:x:0", "/etc/passwd").error().to_string(),
              HasSubstr("/etc/passwd"));
}

TEST(SignoffJsonTest, ASheetWithoutItsKeysIsNoSignoff) {
  for (const char* text : {"{}", "[]", R"({"schema": 1, "id": 3})"})
    EXPECT_THAT(signoff_from_json(text, "a/sheet.json").error().to_string(),
                AllOf(HasSubstr("a/sheet.json"), HasSubstr("no sign-off of savegate"),
                      Not(HasSubstr("json.exception"))));
  EXPECT_THAT(split_seal("[]", "a/sheet.json").error().to_string(), HasSubstr("has no seal"));
}

}  // namespace
}  // namespace savegate::reports
