#include "harness/oracles/export.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::HasSubstr;

void exported(JobBuilder& job, std::int64_t step, char digest) {
  for (int rank = 0; rank < job.world(); ++rank) {
    Event& event = job.event(rank, EventKind::kExport);
    event.step = step;
    event.digest = std::string(32, digest);
  }
}

// Exports of steps 1 and 2; a kill in the second save; the resume at step 1 exports `first` at once
// and `later` at step 2.
JobBuilder job_with(char first, char later) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  exported(job, 1, 'a');
  job.update(2);
  exported(job, 2, 'b');
  job.begin_save(2);
  job.kill(0);
  job.kill(1);
  job.collect();
  job.life("save 2");
  exported(job, 1, first);
  job.update(2);
  exported(job, 2, later);
  job.end();
  return job;
}

TEST(FirstExportAfterRestoreTest, TheSameExportsPass) {
  EXPECT_EQ(first_export_after_restore(job_with('a', 'b').evidence).outcome, Outcome::kPass);
}

TEST(FirstExportAfterRestoreTest, OneThatMatchesAStepLaterIsCalledStaleDerivedState) {
  const auto verdict = first_export_after_restore(job_with('x', 'b').evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("stale derived state"));
}

TEST(FirstExportAfterRestoreTest, OneThatStaysDifferentFailsWithoutThatName) {
  const auto verdict = first_export_after_restore(job_with('x', 'y').evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, Not(HasSubstr("stale")));
}

TEST(FirstExportAfterRestoreTest, TwoRanksMayExportDifferentWeights) {
  JobBuilder job = job_with('a', 'b');
  for (Life& life : job.evidence.lives) {
    for (Event& event : life.events[1].events) {
      if (event.kind == EventKind::kExport) event.digest = std::string(32, 'c');
    }
  }
  EXPECT_EQ(first_export_after_restore(job.evidence).outcome, Outcome::kPass);
}

TEST(FirstExportAfterRestoreTest, WithoutAnExportOfTheRestoredStepItIsSkipped) {
  EXPECT_EQ(first_export_after_restore(sound_job().evidence).outcome, Outcome::kSkip);
  JobBuilder job = job_with('a', 'b');
  for (EventLog& log : job.at(1).events) {
    std::erase_if(log.events, [](const Event& event) {
      return event.kind == EventKind::kExport && event.step == 1;
    });
  }
  EXPECT_EQ(first_export_after_restore(job.evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
