#include "harness/evidence.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace savegate::harness {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

LifeRecord example_life() {
  LifeRecord life;
  life.number = 1;
  life.started_ns = 1;
  life.ended_ns = 2;
  RankProcess process;
  process.pid = 4712;
  process.start_ticks = 99;
  process.signal = 9;
  process.ended_by = "rule";
  life.ranks = {process};
  life.tree_after = {{.path = "step_1/shard-0", .type = 'f', .size = 5, .digest = "00"}};
  life.tampered = {"remove latest"};
  life.hogged = {"rank 1: 2097152 bytes left free"};
  life.rules = {{.life = 1, .rule = "kill", .required = true, .hits = 1}};
  life.hung = "no progress for 30.0 s";
  life.directory = "/tmp/m1";
  life.records = {{.path = "metrics.jsonl", .bytes = 12, .digest = "00", .digest_after = "01"}};
  return life;
}

TEST(LifeRecordTest, ItSurvivesPrintingAndParsing) {
  const std::string text = print_life(example_life());
  const auto life = life_from_json(text);
  ASSERT_TRUE(life) << life.error().to_string();
  EXPECT_EQ(print_life(*life), text);
}

TEST(LifeRecordTest, WhatRecordsFoundComesBack) {
  const auto life = life_from_json(print_life(example_life()));
  ASSERT_TRUE(life) << life.error().to_string();
  EXPECT_EQ(life->directory, "/tmp/m1");
  ASSERT_EQ(life->records.size(), 1U);
  EXPECT_EQ(life->records.front().bytes, 12U);
  EXPECT_EQ(life->records.front().digest_after, "01");
}

TEST(LifeRecordTest, AMissingFieldIsNamed) {
  const auto life = life_from_json("{}");
  ASSERT_FALSE(life);
  EXPECT_THAT(life.error().text, HasSubstr("`number` is missing"));
}

TEST(CheckpointTest, ItSurvivesPrintingAndParsing) {
  Item item;
  item.name = "w";
  item.global_shape = {2};
  const Checkpoint checkpoint{.path = "step_1",
                              .step = 1,
                              .complete = true,
                              .announced = false,
                              .error = "",
                              .items = {{1, item}}};
  const std::string text = print_checkpoint(checkpoint);
  const auto read = checkpoint_from_json(text);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(print_checkpoint(*read), text);
  EXPECT_EQ(read->items.front().second, item);
}

class StoredEvidenceTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(directory_);
    fs::create_directories(directory_ + "/life-1/events");
    Scenario scenario;
    scenario.name = "stored";
    scenario.world = 1;
    scenario.lives.resize(1);
    scenario.lives[0].until = "save 1";
    write("scenario.json", print_scenario(scenario));
    write("subject.toml", "name = \"made-up\"\ncommand = [\"true\"]\n");
    write("provenance.json", "{\"kernel\":\"6.1\"}\n");
    write("life-1/life.json", print_life(example_life()));
    write("life-1/fired.jsonl", "");
    write("life-1/events/rank-0.jsonl", "{\"event\":\"done\",\"time_ns\":1,\"rank\":0}\n");
    auto trace = faults::TraceWriter::create(directory_ + "/life-1/trace.bin");
    ASSERT_TRUE(trace);
    ASSERT_TRUE((*trace)->flush());
    trace->reset();
    ASSERT_TRUE(write_manifest(directory_));
  }
  void TearDown() override { fs::remove_all(directory_); }

  void write(const std::string& path, const std::string& content) {
    std::ofstream(directory_ + "/" + path, std::ios::binary) << content;
  }
  std::vector<std::string> problems() {
    const auto evidence = load_evidence(directory_);
    if (!evidence) return {evidence.error().to_string()};
    return evidence->problems;
  }

  const std::string directory_ = testing::TempDir() + "savegate-evidence-" +
                                 std::to_string(::getpid()) + "-" +
                                 testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(StoredEvidenceTest, WholeEvidenceHasNoProblems) {
  EXPECT_THAT(problems(), IsEmpty());
  const auto evidence = load_evidence(directory_);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->scenario.name, "stored");
  ASSERT_EQ(evidence->lives.size(), 1U);
  EXPECT_EQ(evidence->lives[0].events[0].events.size(), 1U);
}

TEST_F(StoredEvidenceTest, ALogThatTellsOfLostEventsIsAnErrorOfTheEvents) {
  fs::create_directories(directory_ + "/life-1/logs");
  write("life-1/logs/rank-0.log", "step 1\n50 %savegate: events lost: open: EACCES\nstep 2\n");
  const auto evidence = load_evidence(directory_);
  ASSERT_TRUE(evidence);
  EXPECT_THAT(evidence->lives[0].events[0].errors,
              ElementsAre("life-1/logs/rank-0.log:2: 50 %savegate: events lost: open: EACCES"));
}

// The program may have sent its stderr elsewhere, and the disk may have been full.
TEST_F(StoredEvidenceTest, AFileThatTellsOfLostEventsIsAnErrorOfTheEvents) {
  write("life-1/events/rank-0.jsonl.lost", "write: EBADF\n");
  const auto evidence = load_evidence(directory_);
  ASSERT_TRUE(evidence);
  EXPECT_THAT(evidence->lives[0].events[0].errors,
              ElementsAre("life-1/events/rank-0.jsonl.lost: events lost: write: EBADF"));
}

TEST_F(StoredEvidenceTest, AnEmptyFileTellsOfLostEventsToo) {
  write("life-1/events/rank-0.jsonl.lost", "");
  const auto evidence = load_evidence(directory_);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->lives[0].events[0].errors.size(), 1U);
}

TEST_F(StoredEvidenceTest, TheLastThatARankPrintedIsKept) {
  fs::create_directories(directory_ + "/life-1/logs");
  write("life-1/logs/rank-0.log", "Traceback\nValueError: no such shape\n \n");
  const auto evidence = load_evidence(directory_);
  ASSERT_TRUE(evidence);
  EXPECT_THAT(evidence->lives[0].last_words,
              ElementsAre("life-1/logs/rank-0.log: ValueError: no such shape"));
}

TEST_F(StoredEvidenceTest, AnAlteredFileIsFound) {
  write("life-1/events/rank-0.jsonl", "{\"event\":\"done\",\"time_ns\":2,\"rank\":0}\n");
  EXPECT_THAT(problems(), Contains(HasSubstr("life-1/events/rank-0.jsonl was altered")));
}

TEST_F(StoredEvidenceTest, AMissingFileIsFound) {
  fs::remove(directory_ + "/life-1/fired.jsonl");
  EXPECT_THAT(problems(), Contains(HasSubstr("life-1/fired.jsonl is missing")));
}

TEST_F(StoredEvidenceTest, AnAddedFileIsFound) {
  write("life-1/events/rank-7.jsonl", "");
  EXPECT_THAT(problems(), Contains(HasSubstr("rank-7.jsonl is not in it")));
}

TEST_F(StoredEvidenceTest, AMissingManifestIsFound) {
  fs::remove(directory_ + "/manifest.json");
  EXPECT_THAT(problems(), Contains(HasSubstr("manifest.json is missing")));
}

TEST_F(StoredEvidenceTest, ResultSceneAndWorkAreNoEvidence) {
  write("result.json", "{}");
  fs::create_directories(directory_ + "/work/step_1");
  write("work/step_1/shard", "bytes");
  fs::create_directories(directory_ + "/scene");
  write("scene/log", "text");
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(StoredEvidenceTest, ACutFiredRecordIsFound) {
  write("life-1/fired.jsonl", "{\"time_ns\":");
  EXPECT_THAT(problems(), Contains(HasSubstr("life-1/fired.jsonl:1: cut within the line")));
}

TEST_F(StoredEvidenceTest, ALifeThatWasNotRunIsNotThere) {
  fs::remove_all(directory_ + "/life-1");
  const auto evidence = load_evidence(directory_);
  ASSERT_TRUE(evidence);
  EXPECT_TRUE(evidence->lives.empty());
}

}  // namespace
}  // namespace savegate::harness
