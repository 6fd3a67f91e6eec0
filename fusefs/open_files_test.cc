// What is decided without the kernel: whose operations a rule would miss.
#include "fusefs/open_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace savegate::fusefs {
namespace {

using faults::Op;

class OpenFilesChoiceTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(inodes_.set_root(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)), 0);
    files_.allow_passthrough("");
  }
  // No kernel is connected, so that nothing passes through.
  OpenWay open(bool sends_close) {
    return files_.open(inodes_.root(), -1, true,
                       [=] { return OpenFiles::Needs{.close = sends_close}; });
  }
  // Whether a rule on the operation is refused; armed_ tells whether it was armed.
  bool refused(Op op, bool anyway = false) {
    armed_ = false;
    return !files_
                .arm(
                    inodes_, [op](const std::string&) { return op_bit(op); }, anyway,
                    [this] { armed_ = true; })
                .empty();
  }

  InodeTable inodes_;
  OpenFiles files_;
  bool armed_ = false;
};

TEST_F(OpenFilesChoiceTest, WhatTheKernelRefusesGoesThroughTheDaemonAndSaysWhy) {
  const OpenWay way = open(true);
  EXPECT_EQ(way.backing_id, 0);
  ASSERT_EQ(files_.files().size(), 1u);
  EXPECT_EQ(files_.files()[0].other, 1);
  EXPECT_EQ(files_.files()[0].why, "the kernel refused it: EBADF");
  EXPECT_FALSE(refused(Op::kWrite));
  EXPECT_TRUE(armed_);
}

TEST_F(OpenFilesChoiceTest, ARuleOnCloseIsRefusedAsLongAsAHandleSendsNone) {
  const OpenWay quiet = open(false);
  const OpenWay loud = open(true);
  EXPECT_TRUE(refused(Op::kClose));
  EXPECT_FALSE(armed_);
  EXPECT_FALSE(refused(Op::kWrite));
  files_.close(*inodes_.root(), quiet);
  EXPECT_FALSE(refused(Op::kClose));
  files_.close(*inodes_.root(), loud);
  EXPECT_TRUE(files_.files().empty());
}

TEST_F(OpenFilesChoiceTest, WhatIsDeferredIsArmedAndNamed) {
  open(false);
  EXPECT_TRUE(refused(Op::kClose, /*anyway=*/true));
  EXPECT_TRUE(armed_);
}

}  // namespace
}  // namespace savegate::fusefs
