// A program without events is judged by its processes and its files.
#include "harness/oracles/black_box.h"

#include <gmock/gmock.h>

#include "harness/oracles/commit.h"
#include "harness/oracles/complete_set.h"
#include "harness/oracles/errors.h"
#include "harness/oracles/evidence_builder.h"
#include "harness/oracles/outcome.h"
#include "harness/oracles/restore.h"

namespace savegate::harness {
namespace {

using faults::Op;
using reports::Outcome;

// Two lives without a word; a kill acted in the first.
Evidence silent_job(int second_exit) {
  Evidence evidence = sound_job().evidence;
  evidence.subject.events = false;
  for (Life& life : evidence.lives) {
    for (EventLog& log : life.events) log.events.clear();
    life.checkpoints.clear();
  }
  faults::FiredRecord kill;
  kill.action = "kill SIGKILL";
  kill.caller.rank = 1;
  evidence.lives[0].fired.push_back(kill);
  for (RankProcess& process : evidence.lives[1].record.ranks) process.exit_status = second_exit;
  return evidence;
}

TEST(BlackBoxTest, AKillIsSurvivedWhereTheNextLifeRunsToItsEnd) {
  EXPECT_EQ(survives_kills(silent_job(0)).outcome, Outcome::kPass);
  EXPECT_EQ(survives_kills(silent_job(1)).outcome, Outcome::kFail);
}

TEST(BlackBoxTest, ALifeThatEndedWellLeavesNoTemporaryFileAndNoEmptyShard) {
  Evidence evidence = silent_job(0);
  EXPECT_EQ(complete_set(evidence).outcome, Outcome::kPass);
  FileEntry temporary{.path = "step_9/shard-0.tmp", .type = 'f', .size = 8, .digest = ""};
  evidence.lives[1].record.tree_after.push_back(temporary);
  EXPECT_EQ(complete_set(evidence).outcome, Outcome::kFail);
  evidence.lives[1].record.tree_after.back() = {
      .path = "step_9/shard-0", .type = 'f', .size = 0, .digest = ""};
  EXPECT_EQ(complete_set(evidence).outcome, Outcome::kFail);
}

// The write was short, the rest never came, and the program says with its exit status that all is
// well.
TEST(BlackBoxTest, ADroppedRestOfAWriteFailsWhereTheProgramEndsWell) {
  Evidence evidence = silent_job(0);
  faults::TraceRecord write;
  write.op = Op::kWrite;
  write.path = "step_9/shard-0.tmp";
  write.caller.rank = 0;
  write.requested = 100;
  write.returned = 40;
  write.faulted = true;
  evidence.lives[1].trace.records.push_back(write);
  EXPECT_EQ(short_io_continued(evidence).outcome, Outcome::kFail);
  for (RankProcess& process : evidence.lives[1].record.ranks) process.exit_status = 1;
  EXPECT_EQ(short_io_continued(evidence).outcome, Outcome::kPass);
}

TEST(BlackBoxTest, APointerThatMovesAfterTheFatalErrorFails) {
  JobBuilder job;
  job.life("save 1");
  job.failing(1, Op::kWrite, "step_1/shard-1.tmp", ENOSPC);
  job.publish_pointer(1);
  job.end();
  Evidence evidence = job.evidence;
  evidence.subject.events = false;
  for (EventLog& log : evidence.lives[0].events) log.events.clear();
  EXPECT_EQ(tracker_stays(evidence).outcome, Outcome::kSkip);  // the error was no failure
  evidence.lives[0].record.ranks[1].exit_status = 1;
  EXPECT_EQ(tracker_stays(evidence).outcome, Outcome::kFail);
}

// Rank 1 fails on an error; what rank 0 does then is known of its exit status.
Evidence silent_failure(int exit_of_rank_0) {
  JobBuilder job;
  job.life("save 1");
  job.failing(1, Op::kWrite, "step_1/shard-1.tmp", ENOSPC);
  job.left(1, 1);
  job.left(0, exit_of_rank_0);
  job.collect();
  job.evidence.subject.events = false;
  for (EventLog& log : job.current().events) log.events.clear();
  return job.evidence;
}

TEST(BlackBoxTest, ARankThatEndsWellAfterAnotherFailedCallsItASuccess) {
  const auto verdict = fail_together(silent_failure(0));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("rank 0")));
  EXPECT_EQ(fail_together(silent_failure(1)).outcome, Outcome::kPass);
}

TEST(BlackBoxTest, ARankThatEndsWellAfterAnotherWasKilledInAWriteCallsItASuccess) {
  const auto killed_at = [](Op op) {
    Evidence evidence = silent_failure(0);
    Life& life = evidence.lives[0];
    life.fired[0].action = "kill SIGKILL middle 50%";
    life.fired[0].op = op;
    life.record.ranks[1].exit_status.reset();
    life.record.ranks[1].signal = 9;
    life.record.ranks[1].ended_by = "rule";
    return fail_together(evidence).outcome;
  };
  EXPECT_EQ(killed_at(Op::kWrite), Outcome::kFail);
  EXPECT_EQ(killed_at(Op::kClose), Outcome::kPass);  // all may have been written
}

TEST(BlackBoxTest, AnExitStatusIsNoRefusalOfALoad) {
  EXPECT_EQ(refuse_together(silent_failure(0)).outcome, Outcome::kSkip);
  const Evidence evidence = silent_failure(1);
  EXPECT_EQ(outcome_of(View(evidence), evidence.lives[0]), "fail-together");
}

// What tells a program that refuses damaged files from one that does not.
TEST(BlackBoxTest, WhereARefusalIsExpectedAnErrorOfEveryRankIsOne) {
  const auto refusing = [](int exit_of_rank_0) {
    Evidence evidence = silent_failure(exit_of_rank_0);
    evidence.lives[0].spec.expect.outcome = savegate::harness::Outcome::kRefuseTogether;
    return expected_outcome(evidence).outcome;
  };
  EXPECT_EQ(refusing(1), Outcome::kPass);
  EXPECT_EQ(refusing(0), Outcome::kFail);
}

}  // namespace
}  // namespace savegate::harness
