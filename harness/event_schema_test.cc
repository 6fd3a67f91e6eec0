// docs/event-schema.json says what subject-contract.md shows and what parse_event() takes.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "harness/event.h"
#include "reports/schema_testing.h"

namespace savegate::harness {
namespace {

using nlohmann::json;

const reports::Schema& schema() {
  static const reports::Schema kSchema(
      json::parse(std::ifstream(SAVEGATE_SOURCE_DIR "/docs/event-schema.json")));
  return kSchema;
}

std::vector<std::string> examples() {
  std::vector<std::string> lines;
  std::ifstream contract(SAVEGATE_SOURCE_DIR "/docs/subject-contract.md");
  for (std::string line; std::getline(contract, line);) {
    if (line.starts_with("{\"event\"")) lines.push_back(line);
  }
  return lines;
}

TEST(EventSchemaTest, EveryExampleOfTheContractFitsAndEveryKindHasOne) {
  std::set<std::string> kinds;
  for (const std::string& line : examples()) {
    EXPECT_EQ(schema().misfit(json::parse(line)), "") << line;
    kinds.insert(json::parse(line).at("event"));
  }
  for (int kind = 0; kind <= static_cast<int>(EventKind::kHookError); ++kind) {
    EXPECT_TRUE(kinds.contains(std::string(event_name(static_cast<EventKind>(kind)))));
  }
}

TEST(EventSchemaTest, WhatTheProgramPrintsFits) {
  for (const std::string& line : examples()) {
    const auto event = parse_event(line);
    ASSERT_TRUE(event) << line;
    EXPECT_EQ(schema().misfit(json::parse(print_event(*event))), "") << line;
  }
}

TEST(EventSchemaTest, WhatTheProgramRefusesDoesNotFit) {
  for (
      const char* line : {
          R"({"event":"wave","time_ns":1,"rank":0})",
          R"({"event":"done","rank":0})",
          R"({"event":"done","time_ns":"soon","rank":0})",
          R"({"event":"hello","time_ns":1,"rank":0,"contract":2,"world":1,"pid":1,"device":"cpu"})",
          R"({"event":"resumed","time_ns":1,"rank":0,"ok":true})",
          R"({"event":"update","time_ns":1,"rank":0,"step":1,"changed":null})",
          R"({"event":"update","time_ns":1,"rank":0,"step":1,"changed":true,"samples":[[1]]})",
          R"({"event":"save_end","time_ns":1,"rank":0,"step":1,"save":1})",
          R"({"event":"save_end","time_ns":1,"rank":0,"step":1,"save":1,"ok":false,"error":{}})",
          R"({"event":"export","time_ns":1,"rank":0,"step":1})",
          R"({"event":"memory","time_ns":1,"rank":0,"name":"x","memory":{"host_rss":-1}})",
          R"({"event":"collective_enter","time_ns":1,"rank":0,"name":"world","number":1})",
          R"({"event":"phase","time_ns":1,"rank":0})",
          R"({"event":"hook_error","time_ns":1,"rank":0})",
      }) {
    EXPECT_FALSE(parse_event(line)) << line;
    EXPECT_NE(schema().misfit(json::parse(line)), "") << line;
  }
}

}  // namespace
}  // namespace savegate::harness
