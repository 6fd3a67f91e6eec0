#include "harness/oracles/restore.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;

enum class Rank { kRefuses, kResumes, kFresh, kWaits };

// Two saves, then damage to a file, then what each rank does with it.
JobBuilder damaged_job(const std::string& path, Rank zero, Rank one) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.save(2);
  job.end();
  job.begin_life("save 3");
  job.remove_file(path);
  job.current().spec.expect.outcome = savegate::harness::Outcome::kRefuseTogether;
  for (int rank = 0; rank < 2; ++rank) {
    switch (rank == 0 ? zero : one) {
      case Rank::kRefuses:
        job.refuse(rank, "shard-1 is missing");
        break;
      case Rank::kResumes:
        job.resume(rank, 2);
        break;
      case Rank::kFresh:
        job.resume(rank, std::nullopt);
        break;
      case Rank::kWaits:
        job.end_by_runner(rank);
        break;
    }
  }
  job.end();
  return job;
}

constexpr const char* kShard = "step_2/shard-1";

TEST(RefuseTogetherTest, WithoutARefusalItIsSkipped) {
  EXPECT_EQ(refuse_together(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(RefuseTogetherTest, ARefusalByAllPasses) {
  const JobBuilder job = damaged_job(kShard, Rank::kRefuses, Rank::kRefuses);
  EXPECT_EQ(refuse_together(job.evidence).outcome, Outcome::kPass);
}

TEST(RefuseTogetherTest, ARankThatWaitsFails) {
  const JobBuilder job = damaged_job(kShard, Rank::kWaits, Rank::kRefuses);
  EXPECT_EQ(refuse_together(job.evidence).outcome, Outcome::kFail);
}

TEST(RefuseTogetherTest, ARankThatResumesFails) {
  const JobBuilder job = damaged_job(kShard, Rank::kResumes, Rank::kRefuses);
  EXPECT_EQ(refuse_together(job.evidence).outcome, Outcome::kFail);
}

TEST(RefuseTogetherTest, ARefusalThatComesTooLateFails) {
  JobBuilder job = damaged_job(kShard, Rank::kRefuses, Rank::kRefuses);
  job.current().spec.expect.within_ns = 1;
  EXPECT_EQ(refuse_together(job.evidence).outcome, Outcome::kFail);
}

TEST(RefuseTogetherTest, AnUpdateInARefusedLifeFails) {
  JobBuilder job = damaged_job(kShard, Rank::kRefuses, Rank::kRefuses);
  job.update(3);
  EXPECT_EQ(refuse_together(job.evidence).outcome, Outcome::kFail);
}

TEST(NoFreshStartTest, WithoutDamageItIsSkipped) {
  EXPECT_EQ(no_fresh_start(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(NoFreshStartTest, ARefusalPasses) {
  const JobBuilder job = damaged_job(kShard, Rank::kRefuses, Rank::kRefuses);
  EXPECT_EQ(no_fresh_start(job.evidence).outcome, Outcome::kPass);
}

TEST(NoFreshStartTest, AFreshStartFails) {
  const JobBuilder job = damaged_job(kShard, Rank::kFresh, Rank::kFresh);
  EXPECT_EQ(no_fresh_start(job.evidence).outcome, Outcome::kFail);
}

TEST(NoFreshStartTest, AResumeFromTheDamagedCheckpointFails) {
  const JobBuilder job = damaged_job(kShard, Rank::kRefuses, Rank::kResumes);
  EXPECT_EQ(no_fresh_start(job.evidence).outcome, Outcome::kFail);
}

// A rule damages a read of the restore; the ranks resume with `digest` in their first item.
Evidence damaged_read(const std::string& digest) {
  JobBuilder job;
  job.life("save 1");
  job.save(1);
  job.end();
  job.begin_life("save 2");
  job.fired(1, "corrupt flip out", faults::Op::kRead, "step_1/shard-1");
  for (int rank = 0; rank < 2; ++rank) {
    Event& resumed = job.resume(rank, 1);
    if (!digest.empty()) resumed.items[0].digest = digest;
  }
  job.end();
  return job.evidence;
}

TEST(NoFreshStartTest, ACorruptReadThatWasReadAgainPasses) {
  EXPECT_EQ(no_fresh_start(damaged_read("")).outcome, Outcome::kPass);
}

TEST(NoFreshStartTest, ACorruptReadThatWasUsedFails) {
  EXPECT_EQ(no_fresh_start(damaged_read(std::string(32, '0'))).outcome, Outcome::kFail);
}

TEST(ExpectedStepTest, ASoundJobPasses) {
  const auto verdict = expected_step(sound_job().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(ExpectedStepTest, AStatedStepIsHeldTo) {
  JobBuilder job = sound_job();
  job.at(1).spec.expect.resumed = {"save 2"};
  EXPECT_EQ(expected_step(job.evidence).outcome, Outcome::kPass);
  job.at(1).spec.expect.resumed = {"save 1"};
  EXPECT_EQ(expected_step(job.evidence).outcome, Outcome::kFail);
}

TEST(ExpectedStepTest, AStatedStepIsVoidWithoutTheFaultBeforeIt) {
  JobBuilder job = sound_job();
  job.at(1).spec.expect.resumed = {"save 1"};
  job.at(0).record.rules.push_back({.life = 1, .rule = "late", .required = true, .hits = 0});
  EXPECT_EQ(expected_step(job.evidence).outcome, Outcome::kPass);
}

// Two saves succeed after one that failed, in a subject that trains on.
TEST(ExpectedStepTest, AStatedStepMayBeOvertakenByASubjectThatTrainsOn) {
  JobBuilder job;
  job.life("save 3");
  job.save(1);
  job.update(2);
  job.begin_save(2);
  for (int rank = 0; rank < 2; ++rank) job.end_save_of(rank, 2).ok = false;
  job.save(3);
  job.end();
  job.life("save 4").spec.expect.resumed = {"save 1"};
  job.save(4);
  job.end();
  EXPECT_EQ(expected_step(job.evidence).outcome, Outcome::kFail);
  job.evidence.subject.on_save_failure = "continue";
  EXPECT_EQ(expected_step(job.evidence).outcome, Outcome::kPass);
}

TEST(ExpectedStepTest, AMissingTrackerIsNoStepZero) {
  const JobBuilder fresh = damaged_job("latest", Rank::kFresh, Rank::kFresh);
  EXPECT_EQ(expected_step(fresh.evidence).outcome, Outcome::kFail);
  const JobBuilder refused = damaged_job("latest", Rank::kRefuses, Rank::kRefuses);
  EXPECT_EQ(expected_step(refused.evidence).outcome, Outcome::kPass);
}

TEST(ExpectedStepTest, AnOlderStepFails) {
  JobBuilder job = sound_job();
  for (EventLog& log : job.at(1).events) {
    for (Event& event : log.events) {
      if (event.kind == EventKind::kResumed) event.step = 1;
    }
  }
  EXPECT_EQ(expected_step(job.evidence).outcome, Outcome::kFail);
}

TEST(ExpectedStepTest, APathOfAnotherStepFails) {
  JobBuilder job = sound_job();
  for (Event& event : job.at(1).events[0].events) {
    if (event.kind == EventKind::kResumed) event.path = "step_1";
  }
  EXPECT_EQ(expected_step(job.evidence).outcome, Outcome::kFail);
}

TEST(ExpectedStepTest, WithoutEventsItIsSkipped) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) log.events.clear();
  }
  EXPECT_EQ(expected_step(job.evidence).outcome, Outcome::kSkip);
}

// One save, a second one killed (complete on disk or not), then the next life.
template <class NextLife>
Evidence after_kill(bool complete, NextLife next) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.update(2);
  job.begin_save(2);
  job.write_files(2);
  if (complete) {
    job.publish_marker(2);
    job.publish_pointer(2);
  }
  job.kill(0);
  job.kill(1);
  job.collect();
  job.begin_life("save 3");
  next(job);
  job.end();
  return job.evidence;
}

auto resuming_at(std::optional<std::int64_t> step) {
  return [step](JobBuilder& job) {
    for (int rank = 0; rank < 2; ++rank) job.resume(rank, step);
  };
}

TEST(SurvivesKillsTest, WithoutAKillItIsSkipped) {
  EXPECT_EQ(survives_kills(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(SurvivesKillsTest, ThePreviousCheckpointIsSound) {
  EXPECT_EQ(survives_kills(after_kill(false, resuming_at(1))).outcome, Outcome::kPass);
}

TEST(SurvivesKillsTest, TheNewCheckpointIsSoundOnceItIsComplete) {
  EXPECT_EQ(survives_kills(after_kill(true, resuming_at(2))).outcome, Outcome::kPass);
  EXPECT_EQ(survives_kills(after_kill(false, resuming_at(2))).outcome, Outcome::kFail);
}

TEST(SurvivesKillsTest, AFreshStartLosesTheSavedStep) {
  EXPECT_EQ(survives_kills(after_kill(false, resuming_at(std::nullopt))).outcome, Outcome::kFail);
}

TEST(SurvivesKillsTest, AnErrorWhileACompleteOneExistsFails) {
  const auto evidence = after_kill(false, [](JobBuilder& job) {
    for (int rank = 0; rank < 2; ++rank) job.refuse(rank, "latest is empty");
  });
  EXPECT_EQ(survives_kills(evidence).outcome, Outcome::kFail);
}

TEST(SurvivesKillsTest, AMixtureOfTwoSavesFails) {
  const auto evidence = after_kill(true, [](JobBuilder& job) {
    job.resume(0, 2);
    job.resume(1, 2).items = JobBuilder::items(1, 1);
  });
  EXPECT_EQ(survives_kills(evidence).outcome, Outcome::kFail);
}

TEST(SurvivesKillsTest, RanksAtDifferentStepsFail) {
  const auto evidence = after_kill(true, [](JobBuilder& job) {
    job.resume(0, 2);
    job.resume(1, 1);
  });
  EXPECT_EQ(survives_kills(evidence).outcome, Outcome::kFail);
}

TEST(SurvivesKillsTest, AKillInTheFirstSaveMayBeginAfresh) {
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  job.kill(0);
  job.kill(1);
  job.collect();
  job.begin_life("save 1");
  for (int rank = 0; rank < 2; ++rank) job.resume(rank, std::nullopt);
  job.end();
  EXPECT_EQ(survives_kills(job.evidence).outcome, Outcome::kPass);
}

}  // namespace
}  // namespace savegate::harness
