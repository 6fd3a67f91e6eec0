// Whole scenarios on the real daemon, with subjects of a few lines of shell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "harness/evidence.h"
#include "harness/run/files.h"
#include "harness/run/sandbox.h"
#include "harness/run/scenario_runner.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class ScenarioRunnerTest : public ::testing::Test {
 protected:
  ScenarioRunnerTest() {
    scenario_.suite = "test";
    scenario_.name = "scenario";
    scenario_.world = 2;
    add_life();
    subject_.name = "shell";
    subject_.directory = directory_.path() + "/subject";
    subject_.layout.shard = {"shard-*"};
    EXPECT_TRUE(make_directories(subject_.directory));
    EXPECT_TRUE(make_directories(store()));
    subject_.toml = "name = \"shell\"\ncommand = [\"sh\"]\n[layout]\nshard = [\"shard-*\"]\n";
  }

  void add_life() {
    LifeSpec life;
    life.until = "save 1";
    life.expect.outcome = Outcome::kAny;
    scenario_.lives.push_back(life);
  }
  void script(const std::string& text) { subject_.command = {"sh", "-c", text}; }
  void add_rule(const std::string& toml) {
    auto plan = faults::parse_plan(toml, "test");
    ASSERT_TRUE(plan) << plan.error().to_string();
    scenario_.lives.back().plan = *plan;
  }
  std::string store() const { return directory_.path() + "/store"; }
  std::string folder() const { return store() + "/scenario"; }
  std::string in_life(int life, const std::string& file) const {
    return read_file(folder() + "/life-" + std::to_string(life) + "/" + file).value_or("missing");
  }

  // In a sandbox of its own, as the command line does.
  void run() {
    RunOptions options;
    options.store_directory = store();
    options.bin = SAVEGATE_BIN_DIR;
    const auto code = run_in_sandbox([&] {
      const auto done = run_scenario(scenario_, subject_, options);
      if (done) return 0;
      return write_file(directory_.path() + "/error", done.error().to_string()) ? 1 : 2;
    });
    ASSERT_TRUE(code) << code.error().to_string();
    code_ = *code;
    error_ = read_file(directory_.path() + "/error").value_or("");
  }
  LifeRecord record(int life) const {
    auto read = life_from_json(in_life(life, "life.json"));
    EXPECT_TRUE(read) << read.error().to_string();
    return read ? *read : LifeRecord{};
  }

  TestDirectory directory_;
  Scenario scenario_;
  Subject subject_;
  int code_ = -1;
  std::string error_;
};

TEST_F(ScenarioRunnerTest, RanksGetTheirEnvironmentAndWriteThroughTheMount) {
  script(
      "echo $RANK/$WORLD_SIZE/$LOCAL_RANK $SAVEGATE_LIFE $SAVEGATE_UNTIL $SAVEGATE_DEVICE; "
      "test -d $SAVEGATE_RENDEZVOUS && echo rank $RANK > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  EXPECT_EQ(in_life(1, "logs/rank-1.log"), "1/2/1 1 save 1 cpu\n");
  const LifeRecord life = record(1);
  EXPECT_THAT(life.tree_before, IsEmpty());
  EXPECT_THAT(life.tree_after,
              ElementsAre(Field(&FileEntry::path, "shard-0"), Field(&FileEntry::path, "shard-1")));
  EXPECT_EQ(life.ranks.at(1).exit_status, 0);
  EXPECT_GT(life.trace_records, 0U);
  EXPECT_FALSE(life.daemon_died);
}

TEST_F(ScenarioRunnerTest, TheEvidenceOfARunLoadsWithoutProblems) {
  script("true");
  run();
  ASSERT_EQ(code_, 0) << error_;
  const auto evidence = load_evidence(folder());
  ASSERT_TRUE(evidence) << evidence.error().to_string();
  EXPECT_THAT(evidence->problems, IsEmpty());
  EXPECT_EQ(evidence->lives.size(), 1U);
  EXPECT_EQ(evidence->provenance.at("seed"), "1");
  EXPECT_THAT(evidence->provenance.at("executable"), HasSubstr("/sh"));
}

TEST_F(ScenarioRunnerTest, ARuleActsOnItsRankAndIsCounted) {
  add_rule(
      "[[rule]]\nname = \"full\"\nmatch = { op = \"write\", rank = 1 }\n"
      "action = { errno = \"ENOSPC\" }\n");
  script("echo rank $RANK > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  const LifeRecord life = record(1);
  EXPECT_EQ(life.ranks.at(0).exit_status, 0);
  EXPECT_NE(life.ranks.at(1).exit_status, 0);
  ASSERT_EQ(life.rules.size(), 1U);
  EXPECT_EQ(life.rules.at(0).rule, "full");
  EXPECT_GE(life.rules.at(0).hits, 1U);
  EXPECT_THAT(in_life(1, "fired.jsonl"), HasSubstr("ENOSPC"));
  EXPECT_GT(life.first_failure_ns, 0U);
}

// It is lost when the mount ends, after the daemon was asked for its counts.
TEST_F(ScenarioRunnerTest, WhatIsLostAtTheEndIsCountedAndNotInTheTree) {
  add_rule(
      "[[rule]]\nname = \"lost\"\nmatch = { op = \"write\", rank = 1 }\naction = { lose = true "
      "}\n");
  script("echo rank $RANK > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  const LifeRecord life = record(1);
  EXPECT_EQ(life.ranks.at(1).exit_status, 0);
  EXPECT_EQ(life.rules.at(0).hits, 1U);
  EXPECT_EQ(life.tree_after.at(0).size, 7U);
  EXPECT_EQ(life.tree_after.at(1).size, 0U);
}

TEST_F(ScenarioRunnerTest, ALaterLifeSeesTheTreeOfTheEarlierOne) {
  add_life();
  script("echo life $SAVEGATE_LIFE >> $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  EXPECT_EQ(record(2).tree_before.size(), 2U);
  EXPECT_EQ(record(2).tree_before.at(0).digest, record(1).tree_after.at(0).digest);
  EXPECT_EQ(read_file(folder() + "/work/shard-0").value_or(""), "life 1\nlife 2\n");
}

TEST_F(ScenarioRunnerTest, TamperingIsDoneBetweenLivesAndRecorded) {
  add_life();
  Tamper removal;
  removal.rank = 1;
  scenario_.lives.back().tamper = {removal};
  script("echo x > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  EXPECT_THAT(record(2).tampered, ElementsAre("remove shard-1"));
  EXPECT_EQ(record(2).tree_before.size(), 1U);
}

TEST_F(ScenarioRunnerTest, AKillRuleEndsItsRankAndIsToldSo) {
  add_rule(
      "[[rule]]\nname = \"kill\"\nmatch = { op = \"write\", rank = 0 }\n"
      "action = { kill = \"SIGKILL\" }\n");
  script("echo x > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  EXPECT_EQ(record(1).ranks.at(0).signal, SIGKILL);
  EXPECT_EQ(record(1).ranks.at(0).ended_by, "rule");
}

TEST_F(ScenarioRunnerTest, AHeldRankDiesWhenItIsKilled) {
  scenario_.lives.back().expect.outcome = Outcome::kHeld;
  add_rule(
      "[[rule]]\nname = \"hold\"\nmatch = { op = \"write\", rank = 0 }\n"
      "action = { hang = true }\n");
  script("echo x > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  const LifeRecord life = record(1);
  EXPECT_EQ(life.ranks.at(0).signal, SIGKILL);
  EXPECT_THAT(life.ranks.at(0).ended_by, StartsWith("runner: held by rule hold, gone "));
  EXPECT_EQ(life.hung, "");
  EXPECT_THAT(life.stray, IsEmpty());
}

TEST_F(ScenarioRunnerTest, TheReaderSeesTheTreeWithoutTheMount) {
  ASSERT_TRUE(write_file(subject_.directory + "/reader",
                         R"(echo '{"path":"'$(cat $1/shard-0)'","step":1,"complete":true}')"));
  subject_.reader = {"sh", "{subject}/reader", "{dir}"};
  script("echo here > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  EXPECT_THAT(in_life(1, "checkpoints.jsonl"), HasSubstr("\"path\":\"here\""));
  EXPECT_EQ(record(1).reader_error, "");
}

TEST_F(ScenarioRunnerTest, AReaderThatFailsIsNotObtained) {
  subject_.reader = {"sh", "-c", "echo broken >&2; exit 4"};
  script("true");
  run();
  EXPECT_EQ(record(1).reader_error, "not obtained: the reader ended with exit status 4: broken\n");
}

TEST_F(ScenarioRunnerTest, AMissingProgramIsAnErrorWithItsName) {
  subject_.command = {"/no/such/program"};
  run();
  EXPECT_EQ(code_, 1);
  EXPECT_THAT(error_, HasSubstr("/no/such/program"));
}

TEST_F(ScenarioRunnerTest, ADaemonThatDiesIsRecordedAndEndsTheRun) {
  add_life();
  script("kill -9 $(pidof savegate-fs); ls $SAVEGATE_DIR");
  run();
  ASSERT_EQ(code_, 0) << error_;
  EXPECT_TRUE(record(1).daemon_died);
  EXPECT_FALSE(std::filesystem::exists(folder() + "/life-2"));
}

// The runner is process 1 for its ranks.
TEST_F(ScenarioRunnerTest, AnInterruptEndsTheRanksAndKeepsWhatWasCollected) {
  add_life();
  script("echo x > $SAVEGATE_DIR/shard-$RANK; kill -INT 1; exec sleep 1000");
  run();
  EXPECT_EQ(code_, 130) << error_;
  EXPECT_THAT(record(1).ranks.at(0).ended_by, StartsWith("runner: interrupted"));
  EXPECT_FALSE(std::filesystem::exists(folder() + "/life-2"));
  EXPECT_TRUE(load_evidence(folder()));
}

TEST_F(ScenarioRunnerTest, AJobThatHangsInAnOperationIsEndedByItsDeadline) {
  scenario_.lives.back().no_progress_ns = 200'000'000;
  add_rule(
      "[[rule]]\nname = \"hold\"\nmatch = { op = \"write\" }\n"
      "action = { hang = true }\n");
  script("echo x > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_EQ(code_, 0) << error_;
  const LifeRecord life = record(1);
  EXPECT_EQ(life.hung, "no progress for 0.2 s");
  EXPECT_EQ(life.ranks.at(1).signal, SIGKILL);
  EXPECT_THAT(life.ranks.at(1).waiting_in, HasSubstr("write"));
}

TEST_F(ScenarioRunnerTest, TheTreeIsRemovedOnDemand) {
  script("echo x > $SAVEGATE_DIR/shard-$RANK");
  run();
  ASSERT_TRUE(remove_trees(folder()));
  EXPECT_FALSE(std::filesystem::exists(folder() + "/work"));
}

}  // namespace
}  // namespace savegate::harness
