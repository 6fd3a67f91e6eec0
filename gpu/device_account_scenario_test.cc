#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "gpu/device_account.h"

namespace savegate::gpu {
namespace {

constexpr std::uint64_t kCapacity = 1000;

class DeviceAccountTest : public testing::Test {
 protected:
  DeviceAccountTest() {
    std::string pattern = testing::TempDir() + "/account-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~DeviceAccountTest() override { std::filesystem::remove_all(folder_); }

  DeviceAccount open() { return DeviceAccount::open(folder_, kCapacity).value(); }

  std::string folder_;
};

TEST_F(DeviceAccountTest, HoldersShareTheCapacity) {
  DeviceAccount one = open();
  DeviceAccount other = open();
  EXPECT_TRUE(one.take(700).value());
  EXPECT_FALSE(other.take(400).value());
  EXPECT_TRUE(other.take(300).value());
  EXPECT_EQ(one.free_bytes().value(), 0U);
  ASSERT_TRUE(one.give_back(200));
  EXPECT_EQ(other.free_bytes().value(), 200U);
}

TEST_F(DeviceAccountTest, WhatAKilledProcessHeldIsFreeAgain) {
  DeviceAccount mine = open();
  int told[2];
  ASSERT_EQ(::pipe(told), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    DeviceAccount its = open();
    const char taken = its.take(600).value_or(false) ? 'y' : 'n';
    static_cast<void>(::write(told[1], &taken, 1));
    ::pause();
  }
  char taken = 0;
  ASSERT_EQ(::read(told[0], &taken, 1), 1);
  ASSERT_EQ(taken, 'y');
  EXPECT_EQ(mine.free_bytes().value(), kCapacity - 600);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(mine.free_bytes().value(), kCapacity);
  ::close(told[0]);
  ::close(told[1]);
}

}  // namespace
}  // namespace savegate::gpu
