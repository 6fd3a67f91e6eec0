#include "harness/oracles/snapshot.h"

#include <gmock/gmock.h>

#include "harness/oracles.h"
#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::Contains;
using testing::HasSubstr;

void durable(JobBuilder& job, int number) {
  for (int rank = 0; rank < job.world(); ++rank) {
    Event& event = job.event(rank, EventKind::kDurable);
    event.step = number;
    event.save = number;
  }
}

// The second update runs between the call of the first save and its end; the job is then killed,
// and resumes from that save.
JobBuilder job_with_an_update_in_between() {
  JobBuilder job;
  job.evidence.subject.claims.async = true;
  job.life("save 2");
  job.update(1);
  job.begin_save(1);
  job.end_save(1);
  job.update(2);
  job.write_files(1);
  job.publish_marker(1);
  job.publish_pointer(1);
  durable(job, 1);
  job.begin_save(2);
  job.end_save(2);
  job.kill(0);
  job.kill(1);
  job.collect();
  job.life("save 1");
  job.end();
  return job;
}

// The verdict when all oracles have judged and the scenario is held to its claims.
Outcome judged(const Evidence& evidence) {
  for (const auto& verdict : judge(evidence).verdicts) {
    if (verdict.requirement == "G5") return verdict.outcome;
  }
  return Outcome::kFail;
}

TEST(ConsistentSnapshotTest, AnUpdateThatLeavesNoTracePasses) {
  const auto verdict = consistent_snapshot(job_with_an_update_in_between().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(ConsistentSnapshotTest, AnItemOfTheLaterStepInTheCheckpointFailsAndNamesTheStep) {
  JobBuilder job = job_with_an_update_in_between();
  job.at(0).checkpoints.at(0).items.at(0).second = JobBuilder::item("weight", "parameter", 0, 2);
  const auto verdict = consistent_snapshot(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("is that of step 2")));
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("update step=2")));
}

// A buffer that is used again too early is torn: its bytes are those of no step.
TEST(ConsistentSnapshotTest, AnItemOfNoStepInTheCheckpointFails) {
  JobBuilder job = job_with_an_update_in_between();
  job.at(0).checkpoints.at(0).items.at(0).second.digest = std::string(32, '0');
  EXPECT_EQ(consistent_snapshot(job.evidence).outcome, Outcome::kFail);
}

TEST(ConsistentSnapshotTest, ARestoreOfAnotherStateFails) {
  JobBuilder job = job_with_an_update_in_between();
  for (Event& event : job.at(1).events[1].events) {
    for (Item& item : event.items) item.digest = std::string(32, '0');
  }
  EXPECT_EQ(consistent_snapshot(job.evidence).outcome, Outcome::kFail);
}

TEST(ConsistentSnapshotTest, WithoutAnUpdateInBetweenAClaimIsInvalid) {
  JobBuilder job = sound_job();
  job.evidence.subject.claims.async = true;
  job.evidence.scenario.requirements = {"G5"};
  EXPECT_EQ(consistent_snapshot(job.evidence).outcome, Outcome::kSkip);
  EXPECT_EQ(judged(job.evidence), Outcome::kInvalid);
}

TEST(ConsistentSnapshotTest, AnUpdateThatChangedNothingProvesNothing) {
  JobBuilder job = job_with_an_update_in_between();
  for (Event& event : job.at(0).events[0].events) event.changed = false;
  for (Event& event : job.at(0).events[1].events) event.changed = false;
  EXPECT_EQ(consistent_snapshot(job.evidence).outcome, Outcome::kSkip);
}

TEST(ConsistentSnapshotTest, ASynchronousSubjectIsSkippedEvenWhereItIsClaimed) {
  JobBuilder job = sound_job();
  job.evidence.scenario.requirements = {"G5"};
  EXPECT_EQ(judged(job.evidence), Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
