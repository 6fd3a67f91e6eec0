#include "harness/oracles/bitwise.h"

#include <gmock/gmock.h>

#include "harness/oracles/complete_set.h"
#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::HasSubstr;

TEST(BitwiseReadBackTest, ASoundJobPasses) {
  EXPECT_EQ(bitwise_read_back(sound_job().evidence).outcome, Outcome::kPass);
}

TEST(BitwiseReadBackTest, AFlippedByteFails) {
  JobBuilder job = sound_job();
  job.at(0).checkpoints.back().items[3].second.digest = std::string(32, '0');
  EXPECT_EQ(bitwise_read_back(job.evidence).outcome, Outcome::kFail);
}

TEST(BitwiseReadBackTest, AnItemThatCannotBeReadFails) {
  JobBuilder job = sound_job();
  job.at(0).checkpoints.back().items.pop_back();
  const auto verdict = bitwise_read_back(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.front(), HasSubstr("cannot be read"));
}

TEST(BitwiseReadBackTest, AnIncompleteCheckpointIsNotJudged) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (Checkpoint& checkpoint : life.checkpoints) checkpoint.complete = false;
  }
  EXPECT_EQ(bitwise_read_back(job.evidence).outcome, Outcome::kSkip);
}

TEST(BitwiseReadBackTest, AReaderThatFailedIsNotObtained) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    life.checkpoints.clear();
    life.record.reader_error = "not obtained: the reader ended with exit status 1";
  }
  const auto verdict = bitwise_read_back(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kSkip);
  EXPECT_THAT(verdict.summary, HasSubstr("exit status 1"));
}

TEST(BitwiseReadBackTest, ACheckpointWithoutItemsIsNoMatch) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (Checkpoint& checkpoint : life.checkpoints) checkpoint.items.clear();
  }
  EXPECT_EQ(bitwise_read_back(job.evidence).outcome, Outcome::kFail);
}

TEST(PerRankDigestsTest, ASoundJobPasses) {
  EXPECT_EQ(per_rank_digests(sound_job().evidence).outcome, Outcome::kPass);
}

TEST(PerRankDigestsTest, ARankThatRestoresItsNeighbourFails) {
  JobBuilder job = sound_job();
  for (Event& event : job.at(1).events[0].events) {
    if (event.kind == EventKind::kResumed) event.items = JobBuilder::items(1, 2);
  }
  const auto verdict = per_rank_digests(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.front(), HasSubstr("restored rank 0"));
  EXPECT_THAT(verdict.evidence.front(), HasSubstr("; rank 1 saved it as"));
}

TEST(PerRankDigestsTest, AFreshMomentFails) {
  JobBuilder job = sound_job();
  for (Event& event : job.at(1).events[1].events) {
    if (event.kind == EventKind::kResumed) event.items[1].digest = std::string(32, '0');
  }
  EXPECT_EQ(per_rank_digests(job.evidence).outcome, Outcome::kFail);
}

TEST(PerRankDigestsTest, OneLifeIsSkipped) {
  JobBuilder job;
  job.life("save 1");
  job.save(1);
  job.end();
  EXPECT_EQ(per_rank_digests(job.evidence).outcome, Outcome::kSkip);
}

TEST(PerRankDigestsTest, ARestoreWithoutItemsIsInvalid) {
  JobBuilder job = sound_job();
  for (EventLog& log : job.at(1).events) {
    for (Event& event : log.events) {
      if (event.kind == EventKind::kResumed) event.items.clear();
    }
  }
  EXPECT_EQ(per_rank_digests(job.evidence).outcome, Outcome::kInvalid);
}

TEST(CompleteSetTest, ASoundJobPasses) {
  EXPECT_EQ(complete_set(sound_job().evidence).outcome, Outcome::kPass);
}

TEST(CompleteSetTest, AMissingShardFails) {
  JobBuilder job = sound_job();
  std::erase_if(job.at(1).record.tree_after,
                [](const FileEntry& entry) { return entry.path == "step_3/shard-1"; });
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kFail);
}

TEST(CompleteSetTest, ASaveCalledASuccessThatTheReaderRefusesFails) {
  JobBuilder job = sound_job();
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kPass);
  for (Checkpoint& checkpoint : job.at(1).checkpoints) {
    if (checkpoint.step == 3) checkpoint.complete = false;
  }
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kFail);
}

TEST(CompleteSetTest, ASaveCalledASuccessThatIsNotThereFails) {
  JobBuilder job = sound_job();
  std::erase_if(job.at(1).checkpoints,
                [](const Checkpoint& checkpoint) { return checkpoint.step == 3; });
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kFail);
}

// Three saves, of which the reader does not find the first whole.
JobBuilder job_with_a_broken_first_save(bool rotated) {
  JobBuilder job;
  job.life("save 3");
  for (const int number : {1, 2, 3}) job.save(number);
  if (rotated) job.operation(0, faults::Op::kUnlink, JobBuilder::shard(1, 0));
  job.end();
  job.current().checkpoints.front().complete = false;
  return job;
}

TEST(CompleteSetTest, AnEarlierSaveCalledASuccessThatIsNotWholeFails) {
  EXPECT_EQ(complete_set(job_with_a_broken_first_save(false).evidence).outcome, Outcome::kFail);
  EXPECT_EQ(complete_set(job_with_a_broken_first_save(true).evidence).outcome, Outcome::kPass);
}

TEST(CompleteSetTest, AnEarlierSaveIsNotExcusedByATemporaryFileThatGoes) {
  JobBuilder job = job_with_a_broken_first_save(false);
  job.operation(0, faults::Op::kUnlink, JobBuilder::shard(1, 0) + ".tmp");
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kFail);
}

TEST(CompleteSetTest, AnEarlierSaveIsNotJudgedWhereTheReaderFailedOrTheDiskLied) {
  JobBuilder unread = job_with_a_broken_first_save(false);
  unread.current().record.reader_error = "the reader ran longer than 60 s";
  EXPECT_NE(complete_set(unread.evidence).outcome, Outcome::kFail);
  JobBuilder lied = job_with_a_broken_first_save(false);
  lied.fired(0, "lie", faults::Op::kFsync, JobBuilder::shard(1, 0));
  EXPECT_NE(complete_set(lied.evidence).outcome, Outcome::kFail);
}

TEST(CompleteSetTest, AnEmptyShardFails) {
  JobBuilder job = sound_job();
  for (FileEntry& entry : job.at(1).record.tree_after) {
    if (entry.path == "step_3/shard-1") entry.size = 0;
  }
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kFail);
}

TEST(CompleteSetTest, ATemporaryFileThatStaysFails) {
  JobBuilder job = sound_job();
  job.at(1).record.tree_after.push_back({.path = "step_3/shard-1.tmp", .size = 1, .digest = {}});
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kFail);
}

TEST(CompleteSetTest, DebrisOfAnEarlierDeathIsNoLeftover) {
  JobBuilder job = sound_job();
  const FileEntry debris{.path = "step_3/shard-1.tmp", .size = 1, .digest = {}};
  job.at(1).record.tree_before.push_back(debris);
  job.at(1).record.tree_after.push_back(debris);
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kPass);
}

JobBuilder job_with_damage(bool refused) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.save(2);
  job.end();
  job.begin_life("save 3");
  job.tamper("step_2/shard-1");
  for (int rank = 0; rank < job.world(); ++rank) {
    if (refused) {
      job.refuse(rank, "shard-1: digest differs");
    } else {
      job.resume(rank, 2);
    }
  }
  job.end();
  return job;
}

TEST(BitwiseReadBackTest, WhatTheScenarioDamagedSaysNothingOfHowItWasWritten) {
  JobBuilder job = job_with_damage(false);
  for (Checkpoint& checkpoint : job.at(1).checkpoints) {
    if (checkpoint.step == 2) checkpoint.items[0].second.digest = std::string(32, '0');
  }
  EXPECT_EQ(bitwise_read_back(job.evidence).outcome, Outcome::kPass);
}

TEST(CompleteSetTest, ARefusedDamageIsFoundInTime) {
  EXPECT_EQ(complete_set(job_with_damage(true).evidence).outcome, Outcome::kPass);
}

TEST(CompleteSetTest, AResumeFromADamagedShardFails) {
  EXPECT_EQ(complete_set(job_with_damage(false).evidence).outcome, Outcome::kFail);
}

TEST(CompleteSetTest, TamperingThatChangedNothingIsInvalid) {
  JobBuilder job = sound_job();
  job.at(1).record.tampered.emplace_back("flip step_2/shard-1 byte 0");
  EXPECT_EQ(complete_set(job.evidence).outcome, Outcome::kInvalid);
}

}  // namespace
}  // namespace savegate::harness
