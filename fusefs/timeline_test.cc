#include "fusefs/timeline.h"

#include <gtest/gtest.h>

namespace savegate::fusefs {
namespace {

constexpr Viewer kWriter = 0;
constexpr Viewer kOther = 1;

// A value with its history, changed at given times.
class Story {
 public:
  void change(Viewer by, std::uint64_t now, std::uint64_t grain = 0) {
    const auto id = timeline.begin(by, value_++);
    timeline.finish(id, now, grain);
  }
  int seen(Viewer viewer, std::uint64_t since) const {
    const int* before = timeline.hidden(viewer, since);
    return before ? *before : value_;
  }
  Timeline<int> timeline;

 private:
  int value_ = 0;
};

TEST(TimelineTest, AnotherSeesTheStateOfSomeTimeAgo) {
  Story story;
  story.change(kWriter, 10);
  story.change(kWriter, 20);
  EXPECT_EQ(story.seen(kOther, 5), 0);
  EXPECT_EQ(story.seen(kOther, 10), 1);
  EXPECT_EQ(story.seen(kOther, 20), 2);
}

TEST(TimelineTest, WhoMadeAChangeSeesItAtOnce) {
  Story story;
  story.change(kWriter, 10);
  EXPECT_EQ(story.seen(kWriter, 0), 1);
}

TEST(TimelineTest, AnOwnChangeShowsAllThatCameBeforeIt) {
  Story story;
  story.change(kWriter, 10);
  story.change(kOther, 20);
  EXPECT_EQ(story.seen(kOther, 0), 2);
  story.change(kWriter, 30);
  EXPECT_EQ(story.seen(kOther, 0), 2);
}

TEST(TimelineTest, ASyncShowsWhatHasHappenedAndNotWhatFollows) {
  Story story;
  story.change(kWriter, 10);
  story.timeline.sync(kOther, 15);
  EXPECT_EQ(story.seen(kOther, 0), 1);
  story.change(kWriter, 20);
  EXPECT_EQ(story.seen(kOther, 0), 1);
}

TEST(TimelineTest, AChangeUnderWayIsHiddenFromAllButItsMaker) {
  Story story;
  const auto id = story.timeline.begin(kWriter, -1);
  EXPECT_EQ(story.seen(kOther, UINT64_MAX - 1), -1);
  EXPECT_EQ(story.seen(kWriter, 0), 0);
  story.timeline.cancel(id);
  EXPECT_EQ(story.seen(kOther, 0), 0);
}

TEST(TimelineTest, ChangesOfOneWriterCloseToEachOtherCountAsOne) {
  Story story;
  for (std::uint64_t now = 100; now < 200; now++) story.change(kWriter, now, 10);
  EXPECT_EQ(story.timeline.size(), 10u);
  EXPECT_EQ(story.seen(kOther, 99), 0);
  EXPECT_EQ(story.seen(kOther, 150), 60);
}

TEST(TimelineTest, ChangesAreNotMergedAcrossAnotherOnesSync) {
  Story story;
  story.change(kWriter, 100, 10);
  story.timeline.sync(kOther, 101);
  story.change(kWriter, 102, 10);
  EXPECT_EQ(story.seen(kOther, 0), 1);
}

TEST(TimelineTest, WhatNoWindowReachesIsForgotten) {
  Story story;
  story.change(kWriter, 10);
  story.change(kWriter, 20);
  story.timeline.forget(10);
  EXPECT_EQ(story.timeline.size(), 1u);
  EXPECT_EQ(story.seen(kOther, 10), 1);
}

}  // namespace
}  // namespace savegate::fusefs
