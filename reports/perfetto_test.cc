#include "reports/perfetto.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "reports/trace_event_testing.h"

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

TEST(PerfettoTest, TheTraceKeepsToItsFormat) {
  const Json trace = printed();
  EXPECT_EQ(trace["traceEvents"].size(), 2U + 1U + 2U + 2U + 2U + 2U);
  EXPECT_EQ(trace_event_misfit(trace), "");
}

// A save in the background has collectives of its own.
TEST(PerfettoTest, SlicesThatOverlapAreOnThreadsOfTheirOwn) {
  SceneLife life{.number = 1, .begin_ns = 1, .end_ns = 90'000};
  const auto slice = [&](std::uint64_t begin_ns, std::uint64_t end_ns) {
    life.slices.push_back({.kind = SliceKind::kCollective,
                           .rank = 0,
                           .begin_ns = begin_ns,
                           .end_ns = end_ns,
                           .name = "all_gather",
                           .detail = ""});
  };
  slice(30'000, 60'000);
  slice(10'000, 40'000);
  slice(40'000, 50'000);
  Scene scene;
  scene.world = 1;
  scene.lives = {life};
  const Json trace = Json::parse(print_perfetto(scene));
  EXPECT_EQ(trace_event_misfit(trace), "");
  std::map<std::int64_t, int> slices;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") ++slices[event["tid"].get<std::int64_t>()];
  EXPECT_EQ(slices.size(), 2U);
}

TEST(PerfettoTest, WhatDoesNotKeepToTheFormatIsNamed) {
  Json trace = printed();
  for (Json& event : trace["traceEvents"])
    if (event["ph"] == "X") event["dur"] = -1;
  EXPECT_NE(trace_event_misfit(trace).find("dur"), std::string::npos);
}

TEST(PerfettoTest, AFaultIsOfItsProcessAndACounterIsInBytes) {
  const Json trace = printed();
  for (const Json& event : trace["traceEvents"]) {
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
