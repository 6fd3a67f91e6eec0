#include "harness/cli/live_view.h"

#include <gmock/gmock.h>

namespace savegate::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

harness::LifeProgress life(std::vector<harness::RankView> ranks) {
  harness::LifeProgress made;
  made.life = 1;
  made.until = "save 2";
  made.elapsed_ns = 800'000'000;
  made.fired = 1;
  made.ranks = std::move(ranks);
  made.waits_for = "all ranks to leave, 9.2 s left";
  return made;
}

LiveState state() {
  LiveState made;
  made.expected = 53;
  made.ended = 13;
  made.did_not_pass = 1;
  made.elapsed_ns = 41'000'000'000;
  made.running["smoke/kill"] =
      life({{0, true, "save_begin, step 2"}, {1, false, "ended by signal 9"}});
  return made;
}

TEST(LiveViewTest, ItSaysWhatRunsWhereTheRanksAreAndWhatIsWaitedFor) {
  EXPECT_THAT(
      live_lines(state(), 200, 20),
      ElementsAre("[13/53] 41 s, 1 did not pass", "smoke/kill  life 1 until save 2, 0.8 s, 1 fired",
                  "  rank 0 save_begin, step 2 · rank 1 ended by signal 9",
                  "  waiting for all ranks to leave, 9.2 s left"));
}

TEST(LiveViewTest, ManyRanksInOneStateAreCounted) {
  std::vector<harness::RankView> ranks;
  ranks.reserve(64);
  for (int rank = 0; rank < 64; ++rank) ranks.push_back({rank, true, rank < 2 ? "hello" : "done"});
  LiveState many;
  many.running["s"] = life(ranks);
  EXPECT_EQ(live_lines(many, 200, 20).at(2), "  rank 0, 1 hello · 62 ranks done");
}

TEST(LiveViewTest, NoLineIsLongerThanTheTerminalAndNoCharacterIsCut) {
  for (std::size_t columns = 1; columns < 80; ++columns)
    for (const std::string& line : live_lines(state(), columns, 20)) {
      const auto starts = std::count_if(line.begin(), line.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
      });
      EXPECT_LE(static_cast<std::size_t>(starts), columns);
      EXPECT_TRUE(line.empty() || static_cast<unsigned char>(line.back()) != 0xc2) << line;
    }
}

TEST(LiveViewTest, WhatHasNoRoomIsCounted) {
  LiveState crowded = state();
  for (const char* name : {"a", "b", "c"}) crowded.running[name] = life({});
  const auto lines = live_lines(crowded, 80, 8);
  EXPECT_LE(lines.size(), 8u);
  EXPECT_EQ(lines.back(), "and 2 more scenarios at the same time");
}

TEST(LiveViewTest, ANameCannotMoveTheCursor) {
  LiveState hostile;
  hostile.running["a\x1b[2J\nb"] = {};
  EXPECT_EQ(live_lines(hostile, 80, 20).at(1), "a?[2J?b");
}

TEST(LiveViewTest, WhereNothingIsRedrawnItIsOneLine) {
  EXPECT_THAT(live_line(state()), HasSubstr("[13/53] 41 s, 1 did not pass; smoke/kill  life 1"));
}

}  // namespace
}  // namespace savegate::cli
