#include "harness/event.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace savegate::harness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string parse_error(const std::string& line) {
  const auto event = parse_event(line);
  return event ? "" : event.error().text;
}

TEST(EventTest, EveryKindSurvivesPrintingAndParsing) {
  for (
      const char* line : {
          R"({"event":"hello","time_ns":1,"rank":1,"contract":1,"world":2,"pid":4712,"device":"cpu","versions":{"a":"1"}})",
          R"({"event":"resumed","time_ns":1,"rank":1,"step":null,"ok":true})",
          R"({"event":"resumed","time_ns":1,"rank":1,"step":null,"ok":false,"path":"step_2","error":{"text":"gone","errno_name":"ENOENT","rank":1,"path":"step_2/shard"}})",
          R"({"event":"update","time_ns":1,"rank":0,"step":3,"changed":true,"samples":[[40,47]]})",
          R"({"event":"save_begin","time_ns":1,"rank":0,"attempt":2,"step":3,"save":3,"items":[{"name":"w","kind":"parameter","scope":"shard","dtype":"bf16","global_shape":[512,64],"local_shape":[256,64],"offset":[256,0],"bytes":32768,"digest":"99aa06d3014798d86001c324468d497f"}]})",
          R"({"event":"save_end","time_ns":1,"rank":0,"step":3,"save":3,"ok":true})",
          R"({"event":"durable","time_ns":1,"rank":0,"step":3,"save":3,"ok":false,"error":{"text":"write","offset":1,"requested":2,"returned":0}})",
          R"({"event":"export","time_ns":1,"rank":0,"step":3,"digest":"00"})",
          R"({"event":"memory","time_ns":1,"rank":0,"name":"save","memory":{"gpu_allocated":null,"host_rss":10}})",
          R"({"event":"collective_enter","time_ns":1,"rank":0,"name":"world","number":7,"collective":"barrier"})",
          R"({"event":"collective_exit","time_ns":1,"rank":0,"name":"world","number":7,"collective":"barrier"})",
          R"({"event":"phase","time_ns":1,"rank":0,"name":"commit"})",
          R"({"event":"phase","time_ns":1,"rank":0,"pid":4713,"name":"written"})",
          R"({"event":"done","time_ns":1,"rank":0})",
          R"({"event":"hook_error","time_ns":1,"rank":0,"error":{"text":"TypeError"},"name":"items"})",
      }) {
    const auto event = parse_event(line);
    ASSERT_TRUE(event) << line << ": " << event.error().to_string();
    EXPECT_EQ(print_event(*event), line);
  }
}

TEST(EventTest, TheLineOfTheContractsExamplesParse) {
  std::ifstream contract(SAVEGATE_SOURCE_DIR "/docs/subject-contract.md");
  ASSERT_TRUE(contract);
  int examples = 0;
  for (std::string line; std::getline(contract, line);) {
    if (!line.starts_with("{\"event\"")) continue;
    ++examples;
    EXPECT_EQ(parse_error(line), "") << line;
  }
  EXPECT_GE(examples, 12);
}

TEST(EventTest, WhatMustBeThereIsAskedFor) {
  EXPECT_THAT(parse_error("oops"), HasSubstr("no JSON"));
  EXPECT_THAT(parse_error(R"({"event":"wave","time_ns":1,"rank":0})"), HasSubstr("\"wave\""));
  EXPECT_THAT(parse_error(R"({"event":"done","rank":0})"), HasSubstr("`time_ns` is missing"));
  EXPECT_THAT(parse_error(R"({"event":"resumed","time_ns":1,"rank":0})"), HasSubstr("`step`"));
  EXPECT_THAT(parse_error(R"({"event":"update","time_ns":1,"rank":0,"step":1,"changed":null})"),
              HasSubstr("`changed` is missing"));
  EXPECT_THAT(parse_error(R"({"event":"hello","time_ns":1,"rank":0,"contract":2,"world":1})"),
              HasSubstr("contract version 2"));
  EXPECT_THAT(parse_error(R"({"event":"save_end","time_ns":1,"rank":0,"step":1})"),
              HasSubstr("`ok` is missing"));
}

TEST(EventTest, AFieldOfAnotherTypeIsNamed) {
  EXPECT_THAT(parse_error(R"({"event":"done","time_ns":"soon","rank":0})"), HasSubstr("`time_ns`"));
  EXPECT_THAT(
      parse_error(R"({"event":"memory","time_ns":1,"rank":0,"name":"x","memory":{"host_rss":-1}})"),
      HasSubstr("memory.host_rss"));
  EXPECT_THAT(
      parse_error(
          R"({"event":"update","time_ns":1,"rank":0,"step":1,"changed":true,"samples":[[1]]})"),
      HasSubstr("`samples`"));
}

class EventLogTest : public testing::Test {
 protected:
  EventLog read(const std::string& content) {
    const std::string path =
        testing::TempDir() + "savegate-events-" + std::to_string(::getpid()) + ".jsonl";
    std::ofstream(path, std::ios::binary) << content;
    EventLog log = read_events(path, "events/rank-1.jsonl");
    std::filesystem::remove(path);
    return log;
  }
};

TEST_F(EventLogTest, ALineCutByAKillIsNoError) {
  const EventLog log = read("{\"event\":\"done\",\"time_ns\":1,\"rank\":0}\n{\"event\":\"do");
  EXPECT_EQ(log.events.size(), 1U);
  EXPECT_TRUE(log.errors.empty());
}

TEST_F(EventLogTest, ABrokenLineIsQuotedWithItsPlace) {
  const EventLog log = read("{\"event\":\"done\",\"time_ns\":1,\"rank\":0}\nTraceback\n");
  EXPECT_EQ(log.events.front().line, 1);
  EXPECT_THAT(log.errors, ElementsAre("events/rank-1.jsonl:2: event: no JSON: `Traceback`"));
}

TEST_F(EventLogTest, AMissingFileIsAnEmptyLog) {
  const EventLog log = read_events("/nonexistent/rank-0.jsonl", "events/rank-0.jsonl");
  EXPECT_TRUE(log.events.empty());
  EXPECT_TRUE(log.errors.empty());
}

}  // namespace
}  // namespace savegate::harness
