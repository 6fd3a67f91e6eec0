#include "reports/perfetto.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace savegate::reports {
namespace {

using Json = nlohmann::json;

Json printed() {
  SceneLife life{.number = 2, .begin_ns = 1'000'000, .end_ns = 9'000'000};
  life.slices = {{.kind = SliceKind::kSave,
                  .rank = 1,
                  .process = 7,
                  .thread = 7,
                  .begin_ns = 2'000'000,
                  .end_ns = 8'000'000,
                  .name = "save 2",
                  .detail = "failed"},
                 {.kind = SliceKind::kWrite,
                  .rank = 1,
                  .process = 7,
                  .thread = 9,
                  .begin_ns = 3'000'000,
                  .end_ns = 3'500'000,
                  .name = "write \"x\"\xff",
                  .detail = "",
                  .failed = true}};
  life.instants = {{.kind = InstantKind::kFault,
                    .rank = 1,
                    .process = 7,
                    .thread = 9,
                    .time_ns = 3'250'000,
                    .name = "fault: disk full",
                    .detail = "ENOSPC"},
                   {.kind = InstantKind::kKill,
                    .rank = 0,
                    .process = 6,
                    .thread = 6,
                    .time_ns = 2'500'000,
                    .name = "kill: it",
                    .detail = ""}};
  life.unsynced = {{3'500'000, 4096}, {4'000'000, 0}};
  Scene scene;
  scene.world = 2;
  scene.lives = {life};
  return Json::parse(print_perfetto(scene));
}

TEST(PerfettoTest, EveryEventHasTheFieldsOfItsPhaseWithTheirTypes) {
  const Json trace = printed();
  ASSERT_EQ(trace["traceEvents"].size(), 2U + 1U + 2U + 2U + 2U + 2U);
  for (const Json& event : trace["traceEvents"]) {
    ASSERT_TRUE(event["ph"].is_string() && event["name"].is_string()) << event;
    ASSERT_TRUE(event["pid"].is_number_integer() && event["tid"].is_number_integer()) << event;
    if (event["ph"] == "M") continue;
    ASSERT_TRUE(event["ts"].is_number() && event["ts"] >= 0) << event;
    if (event["ph"] == "X") {
      EXPECT_TRUE(event["dur"].is_number() && event["dur"] >= 0) << event;
    }
    if (event["ph"] == "i") {
      EXPECT_EQ(event["s"], "p");
    }
    if (event["ph"] == "C") {
      EXPECT_TRUE(event["args"]["bytes"].is_number_unsigned());
    }
  }
}

TEST(PerfettoTest, TimesNeverGoBack) {
  double last = 0;
  const Json trace = printed();
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") continue;
    EXPECT_GE(event["ts"].get<double>(), last);
    last = event["ts"];
  }
  EXPECT_EQ(last, 3000.0);  // microseconds from the beginning of the first life
}

TEST(PerfettoTest, EveryProcessWithEventsIsARankOrTheFileSystemByName) {
  std::map<int, std::string> names;
  std::set<int> used;
  const Json trace = printed();
  for (const Json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name")
      names[event["pid"]] = event["args"]["name"].get<std::string>();
    else
      used.insert(event["pid"].get<int>());
  }
  for (const int process : used) EXPECT_TRUE(names.contains(process)) << process;
  std::set<std::string> words;
  for (const auto& [process, name] : names) words.insert(name);
  EXPECT_EQ(words, (std::set<std::string>{"life 2 rank 0", "life 2 rank 1", "life 2 file system"}));
}

}  // namespace
}  // namespace savegate::reports
