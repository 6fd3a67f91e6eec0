#include "harness/oracles/commit.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using faults::Op;
using reports::Outcome;

EventError enospc(int step) {
  EventError error;
  error.text = "write: ENOSPC";
  error.errno_name = "ENOSPC";
  error.rank = 1;
  error.path = JobBuilder::shard(step, 1) + ".tmp";
  error.offset = 0;
  error.requested = 4096;
  return error;
}

// The second save fails on rank 1, and every rank says so; a second life goes on from the first.
JobBuilder failed_job() {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.update(2);
  job.begin_save(2);
  job.failing(1, Op::kWrite, "step_2/shard-1.tmp", ENOSPC);
  for (int rank = 0; rank < job.world(); ++rank) job.fail_save_of(rank, 2, enospc(2));
  job.collect();
  job.life("save 3");
  job.save(2);
  job.save(3);
  job.end();
  return job;
}

// Rank 1 is killed in the second save; `survivor` says what rank 0 does then.
template <class Survivor>
Evidence killed_job(Survivor survivor) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.begin_save(2);
  job.kill(1);
  survivor(job);
  job.collect();
  return job.evidence;
}

TEST(FailTogetherTest, WithoutAFailureItIsSkipped) {
  EXPECT_EQ(fail_together(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(FailTogetherTest, AllRanksLeavingWithAnErrorPass) {
  const auto verdict = fail_together(failed_job().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(FailTogetherTest, ARankThatReportsSuccessFails) {
  JobBuilder job = failed_job();
  job.at(0).events[0].events.back().ok = true;
  EXPECT_EQ(fail_together(job.evidence).outcome, Outcome::kFail);
}

TEST(FailTogetherTest, ARankThatTheRunnerHadToEndFails) {
  JobBuilder job = failed_job();
  RankProcess& process = job.at(0).record.ranks[0];
  process.ended_by = "runner: 10.0 s after the first failure";
  process.exit_status.reset();
  process.signal = 9;
  EXPECT_EQ(fail_together(job.evidence).outcome, Outcome::kFail);
}

TEST(FailTogetherTest, ARankThatLeavesTooLateFails) {
  JobBuilder job = failed_job();
  job.at(0).spec.expect.within_ns = 1;
  EXPECT_EQ(fail_together(job.evidence).outcome, Outcome::kFail);
}

TEST(FailTogetherTest, ARankThatCrashesFails) {
  JobBuilder job = failed_job();
  job.at(0).record.ranks[0].exit_status.reset();
  job.at(0).record.ranks[0].signal = 6;
  EXPECT_EQ(fail_together(job.evidence).outcome, Outcome::kFail);
}

TEST(FailTogetherTest, SurvivorsOfAKillThatLeavePass) {
  const auto evidence = killed_job([](JobBuilder& job) { job.fail_save_of(0, 2, enospc(2)); });
  EXPECT_EQ(fail_together(evidence).outcome, Outcome::kPass);
}

TEST(FailTogetherTest, ASurvivorThatCallsAnIncompleteSaveASuccessFails) {
  const auto evidence = killed_job([](JobBuilder& job) {
    job.end_save_of(0, 2);
    job.left(0, 1);
  });
  EXPECT_EQ(fail_together(evidence).outcome, Outcome::kFail);
}

TEST(FailTogetherTest, AKillAfterTheCommitLeavesATrueSuccess) {
  const auto evidence = killed_job([](JobBuilder& job) {
    job.write_files(2);
    job.publish_marker(2);
    job.publish_pointer(2);
    job.end_save_of(0, 2);
    job.left(0, 1);
  });
  EXPECT_EQ(fail_together(evidence).outcome, Outcome::kPass);
}

TEST(FailTogetherTest, AKillOfTheWholeJobLeavesNobodyToJudge) {
  const auto evidence = killed_job([](JobBuilder& job) { job.kill(0); });
  EXPECT_EQ(fail_together(evidence).outcome, Outcome::kSkip);
}

TEST(FailTogetherTest, AHeldRankIsNoOneWhoDidNotLeave) {
  const auto evidence = [] {
    JobBuilder job;
    job.life("save 1");
    job.begin_save(1);
    job.fired(1, "hang", Op::kWrite, "step_1/shard-1.tmp");
    job.fail_save_of(0, 1, enospc(1));
    job.end_by_runner(1);
    job.collect();
    return job.evidence;
  }();
  EXPECT_EQ(fail_together(evidence).outcome, Outcome::kPass);
}

TEST(TrackerStaysTest, WithoutAFailedSaveItIsSkipped) {
  EXPECT_EQ(tracker_stays(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(TrackerStaysTest, ATrackerLeftAlonePasses) {
  const auto verdict = tracker_stays(failed_job().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(TrackerStaysTest, AnAnnouncedIncompleteCheckpointFails) {
  JobBuilder job = failed_job();
  job.at(0).checkpoints.push_back({.path = "step_2",
                                   .step = 2,
                                   .complete = false,
                                   .announced = true,
                                   .error = "shard-1 is missing",
                                   .items = {}});
  EXPECT_EQ(tracker_stays(job.evidence).outcome, Outcome::kFail);
}

JobBuilder announced_and_failed(bool error_first) {
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  job.write_files(1);
  job.publish_marker(1);
  if (error_first) job.failing(1, Op::kWrite, "step_1/shard-1.tmp", ENOSPC);
  job.publish_pointer(1);
  if (!error_first) job.failing(0, Op::kFsyncdir, "", EIO);
  for (int rank = 0; rank < job.world(); ++rank) job.fail_save_of(rank, 1, enospc(1));
  job.collect();
  return job;
}

TEST(TrackerStaysTest, APointerMovedAfterTheErrorFails) {
  EXPECT_EQ(tracker_stays(announced_and_failed(true).evidence).outcome, Outcome::kFail);
}

TEST(TrackerStaysTest, AnErrorAfterThePointerMovedAdvancesNothing) {
  EXPECT_EQ(tracker_stays(announced_and_failed(false).evidence).outcome, Outcome::kPass);
}

TEST(TrackerStaysTest, ALifeThatResumesFromTheFailedStepFails) {
  JobBuilder job = failed_job();
  for (EventLog& log : job.at(1).events) {
    for (Event& event : log.events) {
      if (event.kind == EventKind::kResumed) event.step = 2;
    }
  }
  EXPECT_EQ(tracker_stays(job.evidence).outcome, Outcome::kFail);
}

TEST(TrackerStaysTest, ALifeThatLosesTheFirstSaveFails) {
  JobBuilder job = failed_job();
  for (EventLog& log : job.at(1).events) {
    for (Event& event : log.events) {
      if (event.kind == EventKind::kResumed) event.step.reset();
    }
  }
  EXPECT_EQ(tracker_stays(job.evidence).outcome, Outcome::kFail);
}

void enter(JobBuilder& job, int rank, std::uint64_t number, const std::string& kind) {
  Event& event = job.event(rank, EventKind::kCollectiveEnter);
  event.name = "world";
  event.number = number;
  event.collective = kind;
}

TEST(SameCollectivesTest, EqualSequencesPass) {
  JobBuilder job;
  job.life("save 1");
  for (int rank = 0; rank < 2; ++rank) enter(job, rank, 1, "barrier");
  job.end();
  EXPECT_EQ(same_collectives(job.evidence).outcome, Outcome::kPass);
}

TEST(SameCollectivesTest, WithoutCollectiveEventsItIsSkipped) {
  EXPECT_EQ(same_collectives(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(SameCollectivesTest, AnotherKindAtTheSamePlaceFails) {
  JobBuilder job;
  job.life("save 1");
  enter(job, 0, 1, "barrier");
  enter(job, 1, 1, "all_gather");
  job.end();
  EXPECT_EQ(same_collectives(job.evidence).outcome, Outcome::kFail);
}

TEST(SameCollectivesTest, ARankThatIsDoneWithOneFewerFails) {
  JobBuilder job;
  job.life("save 1");
  for (int rank = 0; rank < 2; ++rank) enter(job, rank, 1, "barrier");
  enter(job, 0, 2, "barrier");
  job.end();
  EXPECT_EQ(same_collectives(job.evidence).outcome, Outcome::kFail);
}

TEST(SameCollectivesTest, ARankThatDiedMayStopEarly) {
  JobBuilder job;
  job.life("save 1");
  for (int rank = 0; rank < 2; ++rank) enter(job, rank, 1, "barrier");
  job.kill(1);
  enter(job, 0, 2, "barrier");
  job.left(0, 1);
  job.collect();
  EXPECT_EQ(same_collectives(job.evidence).outcome, Outcome::kPass);
}

}  // namespace
}  // namespace savegate::harness
