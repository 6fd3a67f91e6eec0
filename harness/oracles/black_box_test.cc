// A program without events is judged by its processes and its files.
#include "harness/oracles/black_box.h"

#include <gmock/gmock.h>

#include "harness/oracles/commit.h"
#include "harness/oracles/complete_set.h"
#include "harness/oracles/errors.h"
#include "harness/oracles/evidence_builder.h"
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

}  // namespace
}  // namespace savegate::harness
