#include "harness/oracles/load_transient.h"

#include <gtest/gtest.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;

constexpr std::uint64_t kMega = 1 << 20;

void measured(Life& life, const std::string& phase, std::int64_t step, std::uint64_t rss,
              std::uint64_t peak) {
  life.memory.emplace();
  for (int rank = 0; rank < 2; ++rank) {
    MemoryRecord made;
    made.rank = rank;
    made.phase = phase;
    made.step = step;
    made.facts = {{"rss", rss}, {"rss_peak", peak}};
    life.memory->push_back(made);
  }
}

// A state of 64 MiB, which a process of 100 MiB saved.
Evidence load_that_peaks_at(std::uint64_t peak, const std::string& claimed = "M5") {
  JobBuilder job;
  job.evidence.scenario.requirements = {claimed};
  job.life("save 1");
  job.save(1);
  job.end();
  job.life("save 2");
  job.end();
  for (EventLog& log : job.at(1).events) {
    for (Event& event : log.events) {
      for (Item& item : event.items) item.bytes = 0;
      if (!event.items.empty()) event.items.front().bytes = 64 * kMega;
    }
  }
  measured(job.at(0), "save", 1, 100 * kMega, 100 * kMega);
  measured(job.at(1), "load", 1, 100 * kMega, peak);
  return job.evidence;
}

TEST(LoadStaysInBudgetTest, ALoadInPiecesPasses) {
  EXPECT_EQ(load_stays_in_budget(load_that_peaks_at(110 * kMega)).outcome, Outcome::kPass);
}

TEST(LoadStaysInBudgetTest, ASecondCopyFails) {
  EXPECT_EQ(load_stays_in_budget(load_that_peaks_at(164 * kMega)).outcome, Outcome::kFail);
}

TEST(LoadStaysInBudgetTest, ASecondPinnedSetFails) {
  Evidence evidence = load_that_peaks_at(110 * kMega);
  for (Life& life : evidence.lives) {
    for (MemoryRecord& made : *life.memory) made.facts["pinned"] = 0;
  }
  evidence.lives[1].memory->front().facts["pinned"] = 64 * kMega;
  EXPECT_EQ(load_stays_in_budget(evidence).outcome, Outcome::kFail);
}

// The last record is of a process that has given most of its memory back already.
TEST(LoadStaysInBudgetTest, AProcessThatWasLeavingIsNotWhatALoadIsHeldAgainst) {
  Evidence evidence = load_that_peaks_at(110 * kMega);
  auto& memory = *evidence.lives[0].memory;
  memory.push_back(memory.front());
  memory.back().facts["rss"] = 2 * kMega;
  EXPECT_EQ(load_stays_in_budget(evidence).outcome, Outcome::kPass);
}

// Elsewhere a second copy may be meant: a load that adopts nothing before all of it was checked.
TEST(LoadStaysInBudgetTest, WithoutTheClaimItIsSkipped) {
  EXPECT_EQ(load_stays_in_budget(load_that_peaks_at(164 * kMega, "F1")).outcome, Outcome::kSkip);
}

TEST(LoadStaysInBudgetTest, WithoutAMeasurementItIsSkipped) {
  Evidence evidence = load_that_peaks_at(164 * kMega);
  for (MemoryRecord& record : *evidence.lives[1].memory) record.facts.clear();
  EXPECT_EQ(load_stays_in_budget(evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
