#include "harness/oracles/host_memory.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::HasSubstr;

constexpr std::uint64_t kMiB = 1 << 20;

MemoryRecord record_of(int rank, const std::string& phase, std::optional<std::int64_t> step) {
  MemoryRecord record;
  record.rank = rank;
  record.phase = phase;
  record.step = step;
  record.time_ns = static_cast<std::uint64_t>(step.value_or(0)) * 1000;
  record.facts = {{"rss", kMiB}};
  return record;
}

// Each rank's process after the save of a step.
using At = std::function<std::uint64_t(std::uint64_t step)>;
Evidence job_that_holds(std::uint64_t saves, const std::string& fact, const At& at) {
  JobBuilder job;
  job.life("save 1");
  job.current().memory.emplace();
  for (std::uint64_t step = 1; step <= saves; ++step) {
    for (int rank = 0; rank < job.world(); ++rank) {
      MemoryRecord record = record_of(rank, "save", static_cast<std::int64_t>(step));
      record.facts = {{"threads", 3}, {"anonymous", 50 * kMiB}};
      record.facts[fact] = at(step);
      job.current().memory->push_back(record);
    }
  }
  return job.evidence;
}

TEST(NothingGrowsTest, OneDescriptorASaveIsFoundWithinTwenty) {
  const auto verdict =
      nothing_grows(job_that_holds(20, "open_files", [](std::uint64_t step) { return 10 + step; }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.at(0), HasSubstr("rank 0: open_files grows by 1.00 a save"));
}

// Its saves end with `save_end` alone: nothing is measured after them.
TEST(NothingGrowsTest, ALeakOfASynchronousSaveWithoutDurableIsFound) {
  Evidence evidence =
      job_that_holds(20, "open_files", [](std::uint64_t step) { return 10 + step; });
  for (MemoryRecord& record : *evidence.lives[0].memory) record.phase = "before save";
  EXPECT_EQ(nothing_grows(evidence).outcome, Outcome::kFail);
}

TEST(NothingGrowsTest, ALeakOfEachKindIsFoundWithinTwenty) {
  for (const char* fact : {"open_files", "deleted_files", "threads", "children"}) {
    const auto leaking = [](std::uint64_t step) { return 10 + step; };
    EXPECT_EQ(nothing_grows(job_that_holds(20, fact, leaking)).outcome, Outcome::kFail) << fact;
  }
  for (const char* fact : {"anonymous", "pss_shmem", "pinned"}) {
    const auto leaking = [](std::uint64_t step) { return (10 + step) * kMiB; };
    EXPECT_EQ(nothing_grows(job_that_holds(20, fact, leaking)).outcome, Outcome::kFail) << fact;
  }
}

// A rank that was measured once in many saves shows no trend, neither a leak nor its absence.
TEST(NothingGrowsTest, PhasesThatShareAMeasurementAreOnePoint) {
  Evidence evidence = job_that_holds(20, "open_files", [](std::uint64_t) { return 10; });
  for (MemoryRecord& record : *evidence.lives[0].memory) record.time_ns = 7;
  EXPECT_EQ(nothing_grows(evidence).outcome, Outcome::kSkip);
}

TEST(NothingGrowsTest, AMebibyteASaveIsFoundAmongTheNoiseOfAnAllocator) {
  const auto noisy = [](std::uint64_t step) {
    return 50 * kMiB + step * kMiB + (step % 3) * 200'000;
  };
  EXPECT_EQ(nothing_grows(job_that_holds(20, "anonymous", noisy)).outcome, Outcome::kFail);
}

TEST(NothingGrowsTest, WherePagesWereWalkedTooRarelyTheCountedOnesAreJudged) {
  Evidence evidence =
      job_that_holds(20, "rss_anon", [](std::uint64_t step) { return (50 + step) * kMiB; });
  for (MemoryRecord& record : *evidence.lives[0].memory) {
    if (*record.step % 5 != 0) record.facts.erase("anonymous");
  }
  const auto verdict = nothing_grows(evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.at(0), HasSubstr("rank 0: rss_anon grows by"));
}

TEST(NothingGrowsTest, AFrameworkMayFillItsPoolsInItsFirstDozensOfSaves) {
  const auto at = [](std::uint64_t step) { return 50 * kMiB + step * 752'000; };
  EXPECT_EQ(nothing_grows(job_that_holds(20, "anonymous", at)).outcome, Outcome::kPass);
  EXPECT_EQ(nothing_grows(job_that_holds(40, "anonymous", at)).outcome, Outcome::kFail);
}

TEST(NothingGrowsTest, OfCountedPagesLessThanThreeArenasASaveIsNone) {
  Evidence evidence =
      job_that_holds(20, "rss_anon", [](std::uint64_t step) { return 50 * kMiB + step * 350'000; });
  for (MemoryRecord& record : *evidence.lives[0].memory) record.facts.erase("anonymous");
  EXPECT_EQ(nothing_grows(evidence).outcome, Outcome::kPass);
}

TEST(NothingGrowsTest, AnAllocatorsNoiseAloneIsNone) {
  const auto noisy = [](std::uint64_t step) { return 50 * kMiB + (step % 3) * 200'000; };
  EXPECT_EQ(nothing_grows(job_that_holds(100, "anonymous", noisy)).outcome, Outcome::kPass);
}

TEST(NothingGrowsTest, WhatFillsDuringTheFirstSavesIsNone) {
  const auto filling = [](std::uint64_t step) { return std::min<std::uint64_t>(step, 5) * kMiB; };
  EXPECT_EQ(nothing_grows(job_that_holds(20, "anonymous", filling)).outcome, Outcome::kPass);
}

// Files that are written and read stay in the page cache, and mapped ones in the process.
TEST(NothingGrowsTest, FilePagesAreNotJudged) {
  const auto growing = [](std::uint64_t step) { return step * 1024 * kMiB; };
  for (const char* fact : {"pss_file", "cgroup_file", "cgroup_current"}) {
    EXPECT_EQ(nothing_grows(job_that_holds(20, fact, growing)).outcome, Outcome::kPass) << fact;
  }
}

// A rank's pages are shared with the fork server and its other ranks, of which one after another
// ends.
TEST(NothingGrowsTest, ALargerShareOfTheSamePagesIsNone) {
  const auto shared_by_fewer = [](std::uint64_t step) { return (20 + 2 * step) * kMiB; };
  EXPECT_EQ(nothing_grows(job_that_holds(20, "pss_anon", shared_by_fewer)).outcome, Outcome::kPass);
}

// One of ten steps is saved, and each save keeps a descriptor.
TEST(NothingGrowsTest, GrowthIsOfSavesHoweverManyStepsLieBetweenThem) {
  Evidence evidence =
      job_that_holds(200, "open_files", [](std::uint64_t step) { return 10 + (step - 1) / 10; });
  for (MemoryRecord& record : *evidence.lives[0].memory) {
    if (*record.step % 10 != 0) record.phase = "update";
  }
  const auto verdict = nothing_grows(evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.at(0), HasSubstr("grows by 1.00 a save"));
}

// Half of the samples of a step were taken while the save had its files open.
TEST(NothingGrowsTest, TheLeastOfAStepCounts) {
  Evidence evidence =
      job_that_holds(20, "open_files", [](std::uint64_t /*step*/) { return std::uint64_t{10}; });
  auto records = *evidence.lives[0].memory;
  for (MemoryRecord& record : records) record.facts["open_files"] = 10 + *record.step;
  auto& all = *evidence.lives[0].memory;
  all.insert(all.end(), records.begin(), records.end());
  EXPECT_EQ(nothing_grows(evidence).outcome, Outcome::kPass);
}

TEST(NothingGrowsTest, AFewSavesShowNoTrend) {
  const auto verdict =
      nothing_grows(job_that_holds(9, "open_files", [](std::uint64_t step) { return step; }));
  EXPECT_EQ(verdict.outcome, Outcome::kSkip);
}

JobBuilder recorded_job() {
  JobBuilder job;
  job.life("save 1");
  job.update(1);
  job.end();
  job.at(0).memory.emplace();
  for (int rank = 0; rank < job.world(); ++rank) {
    job.at(0).memory->push_back(record_of(rank, "load", std::nullopt));
    job.at(0).memory->push_back(record_of(rank, "update", 1));
  }
  return job;
}

TEST(HostMemoryRecordedTest, EveryPhaseWithItsRecordPasses) {
  const auto verdict = host_memory_recorded(recorded_job().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_THAT(verdict.summary, HasSubstr("4 phases, 0 not obtained"));
}

TEST(HostMemoryRecordedTest, APhaseWithoutARecordProvesNothing) {
  JobBuilder job = recorded_job();
  job.at(0).memory->pop_back();
  const auto verdict = host_memory_recorded(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kInvalid);
  EXPECT_THAT(verdict.evidence.at(0), HasSubstr("no memory record of \"update\""));
}

TEST(HostMemoryRecordedTest, WhatCouldNotBeMeasuredIsCounted) {
  JobBuilder job = recorded_job();
  job.at(0).memory->back().missing = "not obtained: the process had ended";
  EXPECT_THAT(host_memory_recorded(job.evidence).summary, HasSubstr("1 not obtained"));
}

TEST(HostMemoryRecordedTest, AnOlderStoreIsSkipped) {
  EXPECT_EQ(host_memory_recorded(sound_job().evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
