#include "fusefs/stalls.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace savegate::fusefs {
namespace {

using std::chrono::milliseconds;

class StallsTest : public testing::Test {
 protected:
  // Parks and gives the way in which it will end.
  std::future<Wake> park(StallId id, std::optional<std::chrono::nanoseconds> delay,
                         const std::string& rule, std::function<bool()> dying) {
    auto ended = std::make_shared<std::promise<Wake>>();
    auto future = ended->get_future();
    stalls_->park(id,
                  {delay, {rule}, std::move(dying), [ended](Wake why) { ended->set_value(why); }});
    return future;
  }
  std::future<Wake> hang(const std::string& rule) {
    return park(stalls_->reserve(), std::nullopt, rule, [] { return false; });
  }

  WorkerPool pool_{2};
  std::unique_ptr<Stalls> stalls_ = std::make_unique<Stalls>(pool_);
};

TEST_F(StallsTest, ADelayEndsByItself) {
  auto ended = park(stalls_->reserve(), milliseconds(1), "slow", [] { return false; });
  EXPECT_EQ(ended.get(), Wake::kElapsed);
  EXPECT_EQ(stalls_->held(), 0u);
}

TEST_F(StallsTest, ReleaseWakesThoseOfItsRuleAlone) {
  auto first = hang("a");
  auto second = hang("b");
  EXPECT_EQ(stalls_->held(), 2u);
  EXPECT_EQ(stalls_->release("a"), 1u);
  EXPECT_EQ(first.get(), Wake::kReleased);
  EXPECT_EQ(stalls_->release("a"), 0u);
  EXPECT_EQ(stalls_->held(), 1u);
  EXPECT_EQ(stalls_->release(""), 1u);
  EXPECT_EQ(second.get(), Wake::kReleased);
}

TEST_F(StallsTest, AnInterruptEndsTheStallOfADyingCaller) {
  const StallId id = stalls_->reserve();
  std::atomic<bool> dying{false};
  auto ended = park(id, std::nullopt, "a", [&dying] { return dying.load(); });
  dying = true;
  stalls_->interrupt(id);
  EXPECT_EQ(ended.get(), Wake::kInterrupted);
}

// The kernel may interrupt a request before the daemon came to park it.
TEST_F(StallsTest, AnInterruptThatComesFirstIsNotLost) {
  const StallId id = stalls_->reserve();
  stalls_->interrupt(id);
  EXPECT_EQ(park(id, std::nullopt, "a", [] { return true; }).get(), Wake::kInterrupted);
}

// A handled signal interrupts once; the SIGKILL that follows is not announced again.
TEST_F(StallsTest, ACallerThatDiesLaterIsNoticed) {
  std::atomic<int> asked{0};
  const StallId id = stalls_->reserve();
  auto ended = park(id, std::nullopt, "a", [&asked] { return ++asked == 4; });
  stalls_->interrupt(id);
  EXPECT_EQ(ended.get(), Wake::kInterrupted);
  EXPECT_EQ(asked, 4);
}

// What a killed process closes as it exits must not hold it.
TEST_F(StallsTest, ACallerThatIsDyingAlreadyIsNotHeld) {
  EXPECT_EQ(park(stalls_->reserve(), std::nullopt, "a", [] { return true; }).get(),
            Wake::kInterrupted);
}

TEST_F(StallsTest, InterruptsOfStallsThatAreOverAreIgnored) {
  const StallId id = stalls_->reserve();
  EXPECT_EQ(park(id, milliseconds(1), "a", [] { return false; }).get(), Wake::kElapsed);
  stalls_->interrupt(id);
  stalls_->interrupt(id + 1000);
  EXPECT_EQ(stalls_->release(""), 0u);
}

TEST_F(StallsTest, TheEndWakesAll) {
  std::vector<std::future<Wake>> held;
  held.reserve(50);
  for (int i = 0; i < 50; i++) held.push_back(hang("a"));
  stalls_.reset();
  for (auto& ended : held) EXPECT_EQ(ended.get(), Wake::kShutdown);
}

TEST_F(StallsTest, ThousandsAreHeldAtOnce) {
  std::vector<std::future<Wake>> held;
  held.reserve(3000);
  for (int i = 0; i < 3000; i++) held.push_back(hang("a"));
  EXPECT_EQ(stalls_->held(), 3000u);
  EXPECT_EQ(stalls_->release("a"), 3000u);
  for (auto& ended : held) EXPECT_EQ(ended.get(), Wake::kReleased);
}

}  // namespace
}  // namespace savegate::fusefs
