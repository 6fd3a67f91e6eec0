#include "harness/oracles/staging.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::HasSubstr;

void record(JobBuilder& job, const std::string& phase, std::uint64_t held) {
  for (int rank = 0; rank < job.world(); ++rank) {
    Event& event = job.event(rank, EventKind::kMemory);
    event.name = phase;
    event.memory = {{"host_staging", held}, {"host_staging_used", held == 0 ? 0 : 600}};
  }
}

// Two saves, after which so many bytes are held.
JobBuilder job_that_holds(std::uint64_t after_first, std::uint64_t after_last) {
  JobBuilder job;
  job.life("save 2");
  for (const std::uint64_t after : {after_first, after_last}) {
    record(job, "before save", 0);
    record(job, "snapshot", 1024);
    record(job, "save", after);
  }
  job.end();
  return job;
}

TEST(StagingGivenBackTest, WhatIsGivenBackPassesWithBothSizes) {
  const auto verdict = staging_given_back(job_that_holds(0, 0).evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_THAT(verdict.summary, HasSubstr("asked for 600 bytes and held 1024"));
}

TEST(StagingGivenBackTest, WhatIsKeptAfterTheLastSaveFails) {
  EXPECT_EQ(staging_given_back(job_that_holds(0, 1024).evidence).outcome, Outcome::kFail);
}

// The next snapshot may have been taken by then.
TEST(StagingGivenBackTest, WhatIsHeldBetweenSavesIsNoFinding) {
  EXPECT_EQ(staging_given_back(job_that_holds(1024, 0).evidence).outcome, Outcome::kPass);
}

TEST(StagingGivenBackTest, ARankThatWasKilledIsNotJudged) {
  JobBuilder job = job_that_holds(0, 1024);
  for (EventLog& log : job.at(0).events) {
    std::erase_if(log.events, [](const Event& event) { return event.kind == EventKind::kDone; });
  }
  EXPECT_EQ(staging_given_back(job.evidence).outcome, Outcome::kSkip);
}

TEST(StagingGivenBackTest, WithoutSnapshotsItIsSkipped) {
  EXPECT_EQ(staging_given_back(sound_job().evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
