#include "harness/oracles/memory_limit.h"

#include <gmock/gmock.h>
#include <signal.h>

#include "harness/oracles/death.h"
#include "harness/oracles/evidence_builder.h"
#include "harness/oracles/outcome.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::HasSubstr;

MemoryRecord end_of(int rank, const char* phase, const std::string& fact, std::uint64_t value) {
  MemoryRecord made;
  made.rank = rank;
  made.phase = phase;
  made.facts[fact] = value;
  return made;
}

// Limit 1000, threshold 0.95.
Evidence job_that_peaks_at(std::uint64_t peak) {
  JobBuilder job;
  job.life("save 1");
  job.save(1);
  job.end();
  job.at(0).spec.memory.bytes = 1000;
  job.at(0).memory = {end_of(kWholeJob, kJobEnd, "cgroup_peak", peak)};
  return job.evidence;
}

TEST(WithinMemoryLimitTest, UpToTheThresholdPasses) {
  EXPECT_EQ(within_memory_limit(job_that_peaks_at(950)).outcome, Outcome::kPass);
}

TEST(WithinMemoryLimitTest, BeyondItFailsThoughBelowTheLimit) {
  const auto verdict = within_memory_limit(job_that_peaks_at(951));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.at(0), HasSubstr("951 bytes at its peak"));
}

// A daemon of a large node has more threads, each with its buffer.
TEST(WithinMemoryLimitTest, WhatTheFileSystemsDaemonAllocatedIsNotTheJobs) {
  Evidence evidence = job_that_peaks_at(1050);
  evidence.lives[0].memory->front().facts["daemon_anon"] = 100;
  EXPECT_EQ(within_memory_limit(evidence).outcome, Outcome::kPass);
  evidence.lives[0].memory->front().facts["daemon_anon"] = 99;
  EXPECT_EQ(within_memory_limit(evidence).outcome, Outcome::kFail);
}

TEST(WithinMemoryLimitTest, APeakThatIsNotKnownProvesNothing) {
  Evidence evidence = job_that_peaks_at(1);
  evidence.lives[0].memory->front().facts["cgroup_peak"] = std::nullopt;
  EXPECT_EQ(within_memory_limit(evidence).outcome, Outcome::kInvalid);
}

// The guard lets it come to that.
TEST(WithinMemoryLimitTest, ThePeakUnderAGuardIsNotHeldAgainstTheSavePath) {
  Evidence evidence = job_that_peaks_at(951);
  evidence.lives[0].spec.memory.enforced_by = MemoryLimit::EnforcedBy::kGuard;
  EXPECT_EQ(within_memory_limit(evidence).outcome, Outcome::kPass);
}

TEST(WithinMemoryLimitTest, WithoutALimitItIsSkipped) {
  EXPECT_EQ(within_memory_limit(sound_job().evidence).outcome, Outcome::kSkip);
}

// A life in which rank 1 dies of SIGKILL, its peer leaves with an error.
JobBuilder job_with_a_death(const std::string& ended_by) {
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  job.left(0, 1);
  RankProcess& process = job.process(1);
  process.exit_status.reset();
  process.signal = SIGKILL;
  process.ended_by = ended_by;
  process.ended_ns = job.now();
  job.current().memory = {end_of(1, kRankEnd, "cgroup_oom_kills", 0)};
  return job;
}

std::optional<Death> death_in(JobBuilder& job) { return death_of(job.at(0), job.process(1)); }

TEST(DeathTest, TheGuardsKillIsNamed) {
  JobBuilder job = job_with_a_death("guard: the job held 951 bytes, 950 are allowed");
  EXPECT_EQ(death_in(job), Death::kGuard);
}

TEST(DeathTest, AKillThatTheCgroupCountedIsTheKernels) {
  JobBuilder job = job_with_a_death("");
  job.at(0).memory = {end_of(1, kRankEnd, "cgroup_oom_kills", 1)};
  EXPECT_EQ(death_in(job), Death::kCgroupOom);
}

TEST(DeathTest, TheKernelsKillOfAnotherRankIsNotThisOnes) {
  JobBuilder job = job_with_a_death("");
  job.at(0).memory->push_back(end_of(0, kRankEnd, "cgroup_oom_kills", 1));
  EXPECT_EQ(death_in(job), Death::kCrash);
}

TEST(DeathTest, ARulesKillIsNoCrash) {
  JobBuilder job = job_with_a_death("rule");
  EXPECT_EQ(death_in(job), Death::kKilled);
}

TEST(DeathTest, TheRunnersKillIsNoDeath) {
  JobBuilder job = job_with_a_death("runner: no progress for 30.0 s");
  EXPECT_EQ(death_in(job), std::nullopt);
}

JobBuilder job_out_of_memory(std::uint64_t refusals) {
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  EventError error;
  error.errno_name = "ENOMEM";
  job.fail_save_of(1, 1, error);
  job.event(1, EventKind::kMemory).memory["gpu_refusals"] = refusals;
  return job;
}

TEST(DeathTest, ADeviceThatRefusedForGoodIsNamed) {
  JobBuilder job = job_out_of_memory(1);
  EXPECT_EQ(death_in(job), Death::kGpuOutOfMemory);
}

TEST(DeathTest, ARankThatOnlySaysSoHasLeftByItself) {
  JobBuilder job = job_out_of_memory(0);
  EXPECT_EQ(death_in(job), std::nullopt);
}

TEST(WithinMemoryLimitTest, AnotherDeathThanTheStatedOneFails) {
  JobBuilder job = job_with_a_death("");
  job.at(0).spec.expect.death = Death::kCgroupOom;
  const auto verdict = within_memory_limit(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.at(0), HasSubstr("death: crash, expected was cgroup-oom"));
}

TEST(WithinMemoryLimitTest, NoDeathWhereOneIsStatedProvesNothing) {
  Evidence evidence = sound_job().evidence;
  evidence.lives[0].spec.expect.death = Death::kGuard;
  EXPECT_EQ(within_memory_limit(evidence).outcome, Outcome::kInvalid);
}

TEST(WithinMemoryLimitTest, ASurvivorMayEndByASignalOfItsOwn) {
  JobBuilder job = job_with_a_death("guard: the job held 951 bytes, 950 are allowed");
  job.process(0).exit_status.reset();
  job.process(0).signal = SIGABRT;
  job.at(0).spec.expect.death = Death::kGuard;
  EXPECT_NE(within_memory_limit(job.evidence).outcome, Outcome::kFail);
}

TEST(WithinMemoryLimitTest, TheVerdictNamesTheDeath) {
  JobBuilder job = job_with_a_death("guard: the job held 951 bytes, 950 are allowed");
  job.at(0).spec.expect.death = Death::kGuard;
  EXPECT_THAT(within_memory_limit(job.evidence).summary, HasSubstr("death: life 1 rank 1: guard"));
}

// A guard that looked on has put nobody to the test.
TEST(ExpectedOutcomeTest, AGuardThatKilledNobodyProvesNothing) {
  Evidence evidence = job_that_peaks_at(1);
  evidence.lives[0].spec.memory.enforced_by = MemoryLimit::EnforcedBy::kGuard;
  evidence.lives[0].spec.expect.outcome = harness::Outcome::kKilled;
  EXPECT_EQ(expected_outcome(evidence).outcome, Outcome::kInvalid);
}

TEST(ExpectedOutcomeTest, ALifeThatTheGuardEndedIsOneWithAKill) {
  JobBuilder job = job_with_a_death("guard: the job held 951 bytes, 950 are allowed");
  job.at(0).spec.expect.outcome = harness::Outcome::kKilled;
  EXPECT_EQ(expected_outcome(job.evidence).outcome, Outcome::kPass);
}

}  // namespace
}  // namespace savegate::harness
