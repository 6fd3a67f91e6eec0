#include "faults/operation.h"

#include <gtest/gtest.h>

namespace savegate::faults {
namespace {

TEST(OperationTest, EveryWordReadsBack) {
  for (int i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    EXPECT_EQ(op_from_name(op_name(op)), op);
    EXPECT_EQ(op_class_from_name(op_class_name(op_class(op))), op_class(op));
  }
  EXPECT_EQ(op_name(Op::kCopyFileRange), "copy_file_range");
  EXPECT_EQ(op_name(Op::kPhase), "phase");
  EXPECT_EQ(op_class(Op::kClose), OpClass::kSync);
  EXPECT_FALSE(op_from_name("wirte"));
}

}  // namespace
}  // namespace savegate::faults
