#include "fusefs/past_bytes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

namespace savegate::fusefs {
namespace {

// A file of the test, without a name.
class PastBytesTest : public testing::Test {
 protected:
  void SetUp() override {
    fd_ = ::memfd_create("past", MFD_CLOEXEC);
    ASSERT_GE(fd_, 0);
  }
  void TearDown() override { ::close(fd_); }

  void put(std::uint64_t offset, const std::string& bytes) {
    ASSERT_EQ(::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset)),
              static_cast<ssize_t>(bytes.size()));
  }
  void write_to_undo(std::uint64_t offset, const std::string& bytes) {
    ASSERT_EQ(past_.keep(fd_, Change::bytes(offset, offset + bytes.size())), 0);
    put(offset, bytes);
  }
  void write_to_stay(std::uint64_t offset, const std::string& bytes) {
    ASSERT_EQ(past_.yield(fd_, Change::bytes(offset, offset + bytes.size())), 0);
    put(offset, bytes);
  }
  void cut(std::uint64_t size) { ASSERT_EQ(::ftruncate(fd_, static_cast<off_t>(size)), 0); }
  std::string content() {
    std::string bytes(4096, '?');
    EXPECT_EQ(read_fully(fd_, 0, bytes), 0);
    return bytes;
  }
  std::string restored() {
    EXPECT_EQ(past_.restore(fd_), 0);
    return content();
  }

  int fd_ = -1;
  PastBytes past_;
};

TEST_F(PastBytesTest, OverwrittenBytesComeBackAndNewOnesGo) {
  put(0, "0123456789");
  write_to_undo(8, "abcd");
  write_to_undo(2, "xy");
  EXPECT_EQ(content(), "01xy4567abcd");
  EXPECT_EQ(restored(), "0123456789");
}

TEST_F(PastBytesTest, TheFirstVersionCounts) {
  put(0, "0123456789");
  write_to_undo(3, "aaa");
  write_to_undo(1, "bbbbbb");
  EXPECT_EQ(restored(), "0123456789");
}

TEST_F(PastBytesTest, ATruncateIsUndone) {
  put(0, "0123456789");
  ASSERT_EQ(past_.keep(fd_, Change::truncate(4)), 0);
  cut(4);
  write_to_undo(3, "zzz");
  EXPECT_EQ(restored(), "0123456789");
}

TEST_F(PastBytesTest, WhatIsWrittenToStayIsNotUndone) {
  put(0, "0123456789");
  write_to_undo(0, "aaaaaaaa");
  write_to_stay(2, "ZZ");
  EXPECT_EQ(restored(), "01ZZ456789");
}

TEST_F(PastBytesTest, AHoleIsLeftBeforeWhatStaysBehindTheOldEnd) {
  put(0, "01");
  write_to_undo(2, "aaaa");
  write_to_stay(5, "ZZ");
  EXPECT_EQ(restored(), std::string("01\0\0\0ZZ", 7));
}

TEST_F(PastBytesTest, ATruncateThatStaysCutsWhatIsToComeBack) {
  put(0, "0123456789");
  write_to_undo(2, "aaaaaaaa");
  ASSERT_EQ(past_.yield(fd_, Change::truncate(5)), 0);
  cut(5);
  EXPECT_EQ(restored(), "01234");
}

TEST_F(PastBytesTest, ReplaceKeepsTheLastVersionButOne) {
  put(0, "0123");
  for (const char* version : {"aaaa", "bbbb", "cccccc"}) {
    const std::string bytes = version;
    ASSERT_EQ(past_.replace(fd_, Change::bytes(0, bytes.size())), 0);
    put(0, bytes);
  }
  std::string shown = content();
  EXPECT_TRUE(past_.overlaps(2, 3));
  EXPECT_FALSE(past_.overlaps(6, 9));
  past_.show(0, shown.data(), shown.size());
  EXPECT_EQ(shown, std::string("bbbb\0\0", 6));
  shown = "cc";
  past_.show(3, shown.data(), 2);
  EXPECT_EQ(shown, std::string("b\0", 2));
}

TEST_F(PastBytesTest, SaysHowMuchWouldBeLost) {
  put(0, "0123456789");
  EXPECT_EQ(past_.lost(10).bytes, 0U);
  write_to_undo(8, "abcd");
  EXPECT_EQ(past_.lost(12).offset, 8U);
  EXPECT_EQ(past_.lost(12).bytes, 4U);
  write_to_stay(8, "wxyz");
  EXPECT_EQ(past_.lost(12).bytes, 0U);
}

// Against a model that does only what stays.
TEST_F(PastBytesTest, RandomChangesLeaveWhatStaysAlone) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    past_ = {};
    cut(0);
    std::string model(random() % 40, '.');
    put(0, model);
    for (int i = 0; i < 12; ++i) {
      const bool stays = random() % 2 == 0;
      const std::uint64_t at = random() % 50;
      if (random() % 4 == 0) {
        const Change change = Change::truncate(at);
        ASSERT_EQ(stays ? past_.yield(fd_, change) : past_.keep(fd_, change), 0);
        cut(at);
        if (stays) model.resize(at, '\0');
        continue;
      }
      const std::string bytes(1 + random() % 20, static_cast<char>('a' + i));
      if (stays) {
        write_to_stay(at, bytes);
        if (model.size() < at + bytes.size()) model.resize(at + bytes.size(), '\0');
        model.replace(at, bytes.size(), bytes);
      } else {
        write_to_undo(at, bytes);
      }
    }
    ASSERT_EQ(restored(), model) << "round " << round;
  }
}

}  // namespace
}  // namespace savegate::fusefs
