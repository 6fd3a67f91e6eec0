#include "harness/oracles/samples.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using IdsOfStep = std::function<std::int64_t(int rank, std::int64_t step)>;

// Three steps, of which the third is lost with the life and done again by the next one.
JobBuilder job_that_does_a_step_again(const IdsOfStep& id) {
  JobBuilder job;
  job.life("save 3");
  job.save(1);
  job.save(2);
  job.update(3);
  job.begin_save(3);
  job.kill(0);
  job.kill(1);
  job.collect();
  job.life("save 3");
  job.save(3);
  job.end();
  for (Life& life : job.evidence.lives) {
    for (std::size_t rank = 0; rank < life.events.size(); ++rank) {
      for (Event& event : life.events[rank].events) {
        if (event.kind != EventKind::kUpdate) continue;
        const std::int64_t own = id(static_cast<int>(rank), *event.step);
        event.samples = {{own, own}};
      }
    }
  }
  return job;
}

std::int64_t shuffled(int rank, std::int64_t step) { return (step * 7 + rank * 5) % 16; }
std::int64_t epoch_of_two_steps(int rank, std::int64_t step) { return (step - 1) % 2 * 2 + rank; }
std::int64_t position(int rank, std::int64_t step) { return (step - 1) * 2 + rank; }

SampleCheck check(const JobBuilder& job) { return check_samples(View(job.evidence)); }

// Rank 0 of the second life consumes another sample at its first step.
JobBuilder changed(JobBuilder job, std::int64_t id) {
  for (Event& event : job.at(1).events[0].events) {
    if (event.kind == EventKind::kUpdate) event.samples = {{id, id}};
  }
  return job;
}

TEST(SamplesTest, PositionsAreDisjointAndComplete) {
  const SampleCheck found = check(job_that_does_a_step_again(position));
  EXPECT_THAT(found.flaws, IsEmpty());
  EXPECT_EQ(found.summary, "samples of 6 updates are disjoint and complete");
}

TEST(SamplesTest, APositionConsumedBeforeIsAFlaw) {
  const auto flaws = check(changed(job_that_does_a_step_again(position), 0)).flaws;
  EXPECT_THAT(flaws, ElementsAre(HasSubstr("sample 0 was consumed at step 1 already")));
}

TEST(SamplesTest, AShuffledDataSetIsNoFlaw) {
  const SampleCheck found = check(job_that_does_a_step_again(shuffled));
  EXPECT_THAT(found.flaws, IsEmpty());
  EXPECT_THAT(found.summary, HasSubstr("no positions in a stream"));
  EXPECT_THAT(found.summary, HasSubstr("2 updates that a resume did again"));
}

TEST(SamplesTest, AShuffledStepDoneAgainWithOtherSamplesIsAFlaw) {
  const auto flaws = check(changed(job_that_does_a_step_again(shuffled), 1)).flaws;
  EXPECT_THAT(flaws, ElementsAre(HasSubstr("samples 1, but 5 in life 1")));
}

TEST(SamplesTest, ASecondEpochIsNoFlaw) {
  const SampleCheck found = check(job_that_does_a_step_again(epoch_of_two_steps));
  EXPECT_THAT(found.flaws, IsEmpty());
  EXPECT_THAT(found.summary, HasSubstr("life 1 alone"));
}

// The first life's ids are positions by themselves, the second one's go back in it.
TEST(SamplesTest, AnEpochThatEndsInAResumedLifeIsNoFlaw) {
  JobBuilder job = sound_job();
  job.life("save 4");
  job.save(4);
  job.save(5);
  job.end();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (Event& event : job.current().events[rank].events) {
      if (event.kind != EventKind::kUpdate || event.step != 5) continue;
      event.samples = {{static_cast<std::int64_t>(rank), static_cast<std::int64_t>(rank)}};
    }
  }
  EXPECT_THAT(check(job).flaws, IsEmpty());
}

// What a cursor that a restore forgot does: it goes on from the beginning, and never back.
TEST(SamplesTest, AResumedLifeThatBeginsTheDataAnewIsAFlaw) {
  JobBuilder job = sound_job();
  job.life("save 4");
  job.save(4);
  job.save(5);
  job.end();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (Event& event : job.current().events[rank].events) {
      if (event.kind != EventKind::kUpdate) continue;
      const std::int64_t id = (*event.step - 4) * 2 + static_cast<std::int64_t>(rank);
      event.samples = {{id, id}};
    }
  }
  EXPECT_THAT(check(job).flaws, ElementsAre(HasSubstr("already")));
}

TEST(SamplesTest, WhereNoUpdateTellsOfSamplesThatIsSaid) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) {
      for (Event& event : log.events) event.samples.clear();
    }
  }
  EXPECT_EQ(check(job).summary, "no update tells of its samples");
}

}  // namespace
}  // namespace savegate::harness
