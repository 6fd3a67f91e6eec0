#include "harness/oracles/durability.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using faults::Op;
using reports::Outcome;

void arm(JobBuilder& job) {
  faults::Rule rule;
  rule.name = "power";
  rule.action = faults::LoseAction{};
  job.current().spec.plan.rules.push_back(rule);
}

// Two saves, the power goes, and what a reader then finds is changed by `loss`.
template <class Loss>
Evidence after_power_loss(Loss loss) {
  JobBuilder job;
  job.life("save 2");
  arm(job);
  job.save(1);
  job.save(2);
  job.end();
  loss(job);
  return job.evidence;
}

void lose(JobBuilder& job, const std::string& path) { job.fired(0, "lose", Op::kWrite, path); }

Checkpoint& newest(JobBuilder& job) { return job.current().checkpoints.back(); }

TEST(PowerLossTest, WhatIsStillCompletePasses) {
  const auto verdict = survives_power_loss(after_power_loss([](JobBuilder&) {}));
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(PowerLossTest, AnAnnouncedCheckpointThatLostAShardFails) {
  const auto verdict = survives_power_loss(after_power_loss([](JobBuilder& job) {
    newest(job).complete = false;
    lose(job, JobBuilder::shard(2, 0) + ".tmp");
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence,
              testing::Contains(testing::HasSubstr("never synced step_2/shard-0")));
}

TEST(PowerLossTest, ASaveThatIsGoneFails) {
  const auto verdict = survives_power_loss(
      after_power_loss([](JobBuilder& job) { job.current().checkpoints.pop_back(); }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
}

// A third save was under way: its marker was on disk, its shard was not.
template <class Marker>
Outcome with_a_third_marker(Marker marker) {
  return survives_power_loss(after_power_loss([&](JobBuilder& job) {
           Checkpoint third;
           third.path = "step_3";
           third.step = 3;
           job.current().checkpoints.push_back(third);
           job.current().record.tree_after.push_back(
               {.path = JobBuilder::marker(3), .type = 'f', .size = 9, .digest = {}});
           job.operation(0, Op::kRename, "step_3/shard-0.tmp", "step_3/shard-0");
           lose(job, "step_3/shard-0.tmp");
           marker(job);
         }))
      .outcome;
}

TEST(PowerLossTest, AMarkerThatOutlivesItsDataFails) {
  EXPECT_EQ(with_a_third_marker([](JobBuilder&) {}), Outcome::kFail);
}

TEST(PowerLossTest, AMarkerThatWentWithItsDataPasses) {
  EXPECT_EQ(with_a_third_marker([](JobBuilder& job) { lose(job, JobBuilder::marker(3)); }),
            Outcome::kPass);
}

// Each save writes into `staging/`, then renames it. The loss is of the second save's file.
template <class Afterwards>
Outcome with_a_staging_directory(std::int64_t lost_step, Afterwards afterwards) {
  return survives_power_loss(after_power_loss([&](JobBuilder& job) {
           for (const std::int64_t step : {1, 2}) {
             const std::uint64_t written =
                 job.operation(0, Op::kWrite, "staging/shard-0").begin_seq;
             if (step == lost_step) {
               auto& lost = job.fired(0, "lose", Op::kWrite, "staging/shard-0");
               lost.seq = written;
             }
             job.operation(0, Op::kRename, "staging", JobBuilder::directory(step));
           }
           afterwards(job);
         }))
      .outcome;
}

// The oldest one is not there whole; its marker is: a loss of its own files would be a violation.
void spoil_the_oldest(JobBuilder& job) { job.current().checkpoints.front().complete = false; }

TEST(PowerLossTest, ALossIsOfTheStepThatItsFileBelongsTo) {
  EXPECT_EQ(with_a_staging_directory(1, spoil_the_oldest), Outcome::kFail);
  EXPECT_EQ(with_a_staging_directory(2, spoil_the_oldest), Outcome::kPass);
}

TEST(PowerLossTest, WhatAReplacedOrDeletedFileLostIsNotMissed) {
  EXPECT_EQ(with_a_staging_directory(1,
                                     [](JobBuilder& job) {
                                       spoil_the_oldest(job);
                                       job.operation(0, Op::kRename, "new", "step_1/shard-0");
                                     }),
            Outcome::kPass);
  EXPECT_EQ(with_a_staging_directory(1,
                                     [](JobBuilder& job) {
                                       spoil_the_oldest(job);
                                       job.operation(0, Op::kUnlink, "step_1/shard-0");
                                     }),
            Outcome::kPass);
}

// Two saves; the second one's shard is damaged before the life in which the power goes, `then`.
template <class Then>
Outcome with_damage_before(Then then) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.save(2);
  job.end();
  job.life("save 3");
  arm(job);
  job.tamper(JobBuilder::shard(2, 0));
  then(job);
  job.end();
  for (Checkpoint& checkpoint : job.current().checkpoints) {
    checkpoint.complete = checkpoint.step == 1;
  }
  return survives_power_loss(job.evidence).outcome;
}

TEST(PowerLossTest, WhatTheScenarioDamagedIsNotTakenForALoss) {
  EXPECT_EQ(with_damage_before([](JobBuilder&) {}), Outcome::kSkip);
}

TEST(PowerLossTest, WhatWasSavedAgainAfterTheDamageIsJudged) {
  EXPECT_EQ(with_damage_before([](JobBuilder& job) { job.save(2); }), Outcome::kFail);
}

TEST(PowerLossTest, WhatADiskLiedAboutIsNotJudged) {
  EXPECT_EQ(survives_power_loss(after_power_loss([](JobBuilder& job) {
              newest(job).complete = false;
              job.fired(0, "lie", Op::kFsync, JobBuilder::shard(2, 0));
            })).outcome,
            Outcome::kSkip);
}

TEST(PowerLossTest, WithoutAClaimOrAPowerLossItIsSkipped) {
  EXPECT_EQ(survives_power_loss(sound_job().evidence).outcome, Outcome::kSkip);
  Evidence evidence = after_power_loss([](JobBuilder& job) { newest(job).complete = false; });
  evidence.subject.claims.durable = false;
  EXPECT_EQ(survives_power_loss(evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
