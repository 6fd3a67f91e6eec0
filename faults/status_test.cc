#include "faults/status.h"

#include <gtest/gtest.h>

namespace savegate {
namespace {

TEST(StatusTest, TextIsOneWholeLine) {
  Status status = system_error("write", "step_2/shard-1.tmp", ENOSPC);
  status.rank = 1;
  status.offset = 67108864;
  status.asked = 1048576;
  status.done = 524288;
  EXPECT_EQ(status.to_string(),
            "write: ENOSPC (No space left on device): step_2/shard-1.tmp, rank 1, offset 67108864, "
            "1048576 bytes asked, 524288 done");
}

TEST(StatusTest, LineBreaksNeverSplitAnError) {
  EXPECT_EQ(invalid("one\ntwo", "plan.toml:1:2").to_string(), "plan.toml:1:2: one two");
}

TEST(StatusTest, ErrnoNamesReadBack) {
  for (int error = 1; error < 140; ++error) {
    EXPECT_EQ(errno_from_name(errno_name(error)), error) << errno_name(error);
  }
  EXPECT_EQ(errno_name(ENOSPC), "ENOSPC");
  EXPECT_EQ(errno_name(999), "errno 999");
  EXPECT_EQ(errno_from_name("ENOTSUP"), EOPNOTSUPP);
  EXPECT_FALSE(errno_from_name("ENOSPACE"));
}

Result<int> twice(const Result<int>& value) {
  SAVEGATE_TRY(const int once, value);
  return 2 * once;
}

TEST(StatusTest, TryHandsValuesOnAndErrorsUp) {
  EXPECT_EQ(twice(21).value(), 42);
  EXPECT_EQ(twice(fail(invalid("no"))).error().text, "no");
}

}  // namespace
}  // namespace savegate
