#include "harness/oracles/gpu_memory.h"

#include <gmock/gmock.h>

#include "harness/oracles.h"
#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::Contains;
using testing::HasSubstr;

constexpr std::uint64_t kGiB = 1ULL << 30;

void record(JobBuilder& job, const std::string& phase, std::int64_t step, std::uint64_t reserved,
            std::uint64_t peak) {
  for (int rank = 0; rank < job.world(); ++rank) {
    Event& event = job.event(rank, EventKind::kMemory);
    event.name = phase;
    event.step = step;
    event.memory = {{"gpu_allocated", 8 * kGiB},
                    {"gpu_reserved", reserved},
                    {"gpu_free", 100 * kGiB},
                    {"gpu_reserved_peak", peak},
                    {"gpu_wakeable", 100 * kGiB}};
  }
}

void save(JobBuilder& job, int number) {
  job.update(number);
  record(job, "update", number, 8 * kGiB, 10 * kGiB);
  record(job, "before save", number, 8 * kGiB, 8 * kGiB);
  job.begin_save(number);
  job.write_files(number);
  job.publish_marker(number);
  job.publish_pointer(number);
  job.end_save(number);
  for (int rank = 0; rank < job.world(); ++rank) {
    Event& durable = job.event(rank, EventKind::kDurable);
    durable.step = number;
    durable.save = number;
  }
  record(job, "save", number, 8 * kGiB, 8 * kGiB);
}

// Two saves on GPUs and half a third; the resume at the second does the third step again.
JobBuilder gpu_job(std::uint64_t reserved_after_load = 8 * kGiB,
                   std::uint64_t first_peak = 10 * kGiB) {
  JobBuilder job;
  job.life("save 3");
  save(job, 1);
  save(job, 2);
  job.update(3);
  record(job, "update", 3, 8 * kGiB, 10 * kGiB);
  job.collect();
  job.begin_life("save 3");
  record(job, "before load", 0, 0, 0);
  for (int rank = 0; rank < job.world(); ++rank) job.resume(rank, 2);
  record(job, "load", 2, reserved_after_load, reserved_after_load);
  job.update(3);
  record(job, "update", 3, 8 * kGiB, first_peak);
  job.end();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) {
      for (Event& event : log.events) {
        if (event.kind == EventKind::kHello) event.device = "cuda";
      }
    }
  }
  return job;
}

void spoil(JobBuilder& job, const std::string& phase, const std::string& name,
           std::optional<std::uint64_t> value) {
  for (Life& life : job.evidence.lives) {
    for (Event& event : life.events[1].events) {
      if (event.kind == EventKind::kMemory && event.name == phase) event.memory[name] = value;
    }
  }
}

TEST(GpuMemoryRecordedTest, RecordsAroundEverySaveAndLoadPass) {
  const auto verdict = gpu_memory_recorded(gpu_job().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << testing::PrintToString(verdict.evidence);
}

TEST(GpuMemoryRecordedTest, AMissingRecordFailsAndIsNamed) {
  JobBuilder job = gpu_job();
  std::erase_if(job.at(0).events[1].events, [](const Event& event) {
    return event.kind == EventKind::kMemory && event.name == "before save" && event.step == 2;
  });
  const auto verdict = gpu_memory_recorded(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("no memory event \"before save\"")));
}

TEST(GpuMemoryRecordedTest, AFactThatWasNotObtainedFails) {
  JobBuilder job = gpu_job();
  spoil(job, "save", "gpu_reserved", std::nullopt);
  EXPECT_EQ(gpu_memory_recorded(job.evidence).outcome, Outcome::kFail);
}

TEST(GpuMemoryRecordedTest, OnCpuItIsSkippedEvenWhereItIsClaimed) {
  JobBuilder job = sound_job();
  job.evidence.scenario.requirements = {"G1", "G2", "G3", "G4"};
  for (const auto& verdict : judge(job.evidence).verdicts) {
    const bool of_gpu = verdict.requirement.starts_with("G");
    EXPECT_TRUE(!of_gpu || verdict.outcome == Outcome::kSkip) << verdict.requirement;
  }
}

TEST(LoadGivesCacheBackTest, AnAllocatorThatHoldsWhatItUsesPasses) {
  EXPECT_EQ(load_gives_cache_back(gpu_job().evidence).outcome, Outcome::kPass);
}

TEST(LoadGivesCacheBackTest, BlocksCachedDuringTheLoadFail) {
  EXPECT_EQ(load_gives_cache_back(gpu_job(12 * kGiB).evidence).outcome, Outcome::kFail);
}

// A pool's blocks of 32 MiB, each with something of a small state in it.
TEST(LoadGivesCacheBackTest, ASmallStateSpreadOverAFewBlocksPasses) {
  JobBuilder job = gpu_job(128 << 20);
  spoil(job, "load", "gpu_allocated", 50'404'120);
  EXPECT_EQ(load_gives_cache_back(job.evidence).outcome, Outcome::kPass);
}

TEST(LoadGivesCacheBackTest, AHigherPeakInTheFirstStepThanInTheUninterruptedRunFails) {
  EXPECT_EQ(load_gives_cache_back(gpu_job(8 * kGiB, 14 * kGiB).evidence).outcome, Outcome::kFail);
}

TEST(LoadGivesCacheBackTest, WithoutFactsItIsSkipped) {
  JobBuilder job = gpu_job();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) {
      std::erase_if(log.events,
                    [](const Event& event) { return event.kind == EventKind::kMemory; });
    }
  }
  EXPECT_EQ(load_gives_cache_back(job.evidence).outcome, Outcome::kSkip);
  EXPECT_EQ(others_can_allocate(job.evidence).outcome, Outcome::kSkip);
}

TEST(OthersCanAllocateTest, TheSameAsBeforePasses) {
  EXPECT_EQ(others_can_allocate(gpu_job().evidence).outcome, Outcome::kPass);
}

TEST(OthersCanAllocateTest, LessThanBeforeFails) {
  JobBuilder job = gpu_job();
  spoil(job, "save", "gpu_wakeable", 99 * kGiB);
  EXPECT_EQ(others_can_allocate(job.evidence).outcome, Outcome::kFail);
}

// How large the device is has no part in it: 2 % of this one are 2 GiB.
TEST(OthersCanAllocateTest, AFewBlocksLessThanBeforePass) {
  JobBuilder job = gpu_job();
  spoil(job, "save", "gpu_wakeable", 100 * kGiB - (128 << 20));
  EXPECT_EQ(others_can_allocate(job.evidence).outcome, Outcome::kPass);
}

TEST(OthersCanAllocateTest, WithoutAProbeItIsSkipped) {
  JobBuilder job = gpu_job();
  spoil(job, "save", "gpu_wakeable", std::nullopt);
  for (Life& life : job.evidence.lives) {
    for (Event& event : life.events[0].events) event.memory.erase("gpu_wakeable");
  }
  EXPECT_EQ(others_can_allocate(job.evidence).outcome, Outcome::kSkip);
}

// A job whose rank 1 ends its second save with ENOMEM, by its allocator's counts of retries and
// refusals.
JobBuilder out_of_memory_job(std::optional<std::uint64_t> retries,
                             std::optional<std::uint64_t> refusals, const std::string& path = "") {
  JobBuilder job = gpu_job();
  job.begin_life("save 4");
  for (int rank = 0; rank < job.world(); ++rank) {
    job.current().events[static_cast<std::size_t>(rank)].events.front().device = "cuda";
    EventError error;
    error.text = "allocate: ENOMEM";
    error.errno_name = "ENOMEM";
    error.rank = 1;
    error.path = path;
    job.fail_save_of(rank, 4, error);
    Event& failure = job.event(rank, EventKind::kMemory);
    failure.name = "failure";
    failure.memory = {{"gpu_retries", rank == 1 ? retries : 0},
                      {"gpu_refusals", rank == 1 ? refusals : 0}};
  }
  job.collect();
  return job;
}

TEST(RetryIsNoEndTest, AnAllocationThatWasRefusedForGoodIsAnEnd) {
  const auto verdict = retry_is_no_end(out_of_memory_job(0, 1).evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_THAT(verdict.summary, HasSubstr("1 out-of-memory ends"));
}

TEST(RetryIsNoEndTest, AnAllocationThatWasGrantedAtTheSecondTryIsNone) {
  const auto verdict = retry_is_no_end(out_of_memory_job(1, 0).evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("gpu_retries 1")));
}

TEST(RetryIsNoEndTest, WithoutTheAllocatorsCountAnEndProvesNothing) {
  EXPECT_EQ(retry_is_no_end(out_of_memory_job(0, std::nullopt).evidence).outcome,
            Outcome::kInvalid);
}

TEST(RetryIsNoEndTest, AnErrorOfAFileIsNotOneOfADevice) {
  EXPECT_EQ(retry_is_no_end(out_of_memory_job(0, 0, "step_4/shard-1").evidence).outcome,
            Outcome::kSkip);
}

TEST(RetryIsNoEndTest, RetriesAreToldWithoutAnEnd) {
  JobBuilder job = gpu_job();
  spoil(job, "save", "gpu_retries", 3);
  const auto verdict = retry_is_no_end(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_THAT(verdict.summary, HasSubstr("3 retries"));
}

TEST(RetryIsNoEndTest, WhereNoAllocationFailedItIsSkipped) {
  EXPECT_EQ(retry_is_no_end(gpu_job().evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
