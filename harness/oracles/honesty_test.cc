#include "harness/oracles/honesty.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "harness/oracles/evidence_builder.h"
#include "harness/oracles/outcome.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::Contains;
using testing::HasSubstr;

TEST(ExecutedFaultsTest, ASoundJobPasses) {
  EXPECT_EQ(executed_faults(sound_job().evidence).outcome, Outcome::kPass);
}

TEST(ExecutedFaultsTest, ARequiredRuleWithoutAHitIsInvalid) {
  JobBuilder job = sound_job();
  faults::Rule rule;
  rule.name = "never";
  job.at(0).spec.plan.rules.push_back(rule);
  job.at(0).record.rules.push_back({.life = 1, .rule = "never", .required = true, .hits = 0});
  const auto verdict = executed_faults(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kInvalid);
  EXPECT_THAT(verdict.summary, HasSubstr("never fired"));
}

TEST(ExecutedFaultsTest, ARuleThatNeverFiredIsToldWhetherItsOperationWasEverThere) {
  JobBuilder job = sound_job();
  faults::Rule rule;
  rule.name = "never";
  rule.match.ops = faults::op_bit(faults::Op::kWrite);
  rule.match.ranks = {1};
  rule.action = faults::ErrnoAction{.error = EIO, .after = {}, .late = faults::LateAt::kClose};
  job.at(0).spec.plan.rules.push_back(rule);
  job.at(0).record.rules.push_back({.life = 1, .rule = "never", .required = true, .hits = 0});
  std::erase_if(job.at(0).trace.records,
                [](const auto& record) { return record.op == faults::Op::kClose; });
  EXPECT_THAT(executed_faults(job.evidence).summary,
              HasSubstr("never fired: there was no close by rank 1"));
}

TEST(ExecutedFaultsTest, ARuleThatIsNotRequiredMayStaySilent) {
  JobBuilder job = sound_job();
  faults::Rule rule;
  rule.name = "perhaps";
  rule.required = false;
  job.at(0).spec.plan.rules.push_back(rule);
  job.at(0).record.rules.push_back({.life = 1, .rule = "perhaps", .required = false, .hits = 0});
  EXPECT_EQ(executed_faults(job.evidence).outcome, Outcome::kPass);
}

TEST(ExecutedFaultsTest, ALimitThatNobodyMetIsInvalid) {
  JobBuilder job = sound_job();
  job.at(0).spec.limits.file_size = 4096;
  const auto verdict = executed_faults(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kInvalid);
  EXPECT_THAT(verdict.summary, HasSubstr("never met"));
}

TEST(ExecutedFaultsTest, ALimitIsMetByItsErrorOrItsSignal) {
  JobBuilder job = sound_job();
  job.at(0).spec.limits.file_size = 4096;
  Event failed = job.at(0).events[0].events.front();
  failed.error = EventError{};
  failed.error->errno_name = "EFBIG";
  job.at(0).events[0].events.push_back(failed);
  EXPECT_EQ(executed_faults(job.evidence).summary.find("never met"), std::string::npos);

  JobBuilder killed = sound_job();
  killed.at(0).spec.limits.file_size = 4096;
  killed.at(0).record.ranks[1].signal = SIGXFSZ;
  EXPECT_EQ(executed_faults(killed.evidence).summary.find("never met"), std::string::npos);
}

// The first save is still under way when the second begins, and a rule for the second hits a file.
Evidence hit_in_save_2(const std::string& path) {
  JobBuilder job;
  job.evidence.subject.claims.async = true;
  job.life("save 2");
  job.begin_save(1);
  job.begin_save(2);
  job.fired(0, "kill SIGKILL", faults::Op::kRename, path);
  job.at(0).spec.plan.rules.front().match.phase = "save 2";
  for (const int save : {1, 2}) {
    for (int rank = 0; rank < job.world(); ++rank) {
      Event& durable = job.event(rank, EventKind::kDurable);
      durable.step = save;
      durable.save = save;
    }
  }
  job.end();
  return job.evidence;
}

TEST(ExecutedFaultsTest, ARuleThatHitTheSaveBeforeIsInvalid) {
  const auto verdict = executed_faults(hit_in_save_2("step_1/marker.tmp"));
  EXPECT_EQ(verdict.outcome, Outcome::kInvalid);
  EXPECT_THAT(verdict.summary, HasSubstr("is for save 2 (step 2), but hit step_1/marker.tmp of "
                                         "save 1"));
}

TEST(ExecutedFaultsTest, ARuleThatHitItsOwnSaveOrAnOlderOneThatIsDonePasses) {
  for (const char* path : {"step_2/marker.tmp", "step_0/marker", "latest.tmp"}) {
    EXPECT_EQ(executed_faults(hit_in_save_2(path)).outcome, Outcome::kPass) << path;
  }
}

TEST(ExecutedFaultsTest, WhatARuleThatStrayedWasToCauseProvesNothing) {
  Evidence evidence = hit_in_save_2("step_1/marker.tmp");
  evidence.lives[0].spec.expect.outcome = savegate::harness::Outcome::kFailTogether;
  EXPECT_EQ(expected_outcome(evidence).outcome, Outcome::kInvalid);
}

TEST(ExecutedFaultsTest, LostFiredRecordsAreInvalid) {
  JobBuilder job = sound_job();
  job.fired(0, "delay 20ms", faults::Op::kWrite, "x");
  job.current().fired.clear();
  EXPECT_EQ(executed_faults(job.evidence).outcome, Outcome::kInvalid);
}

TEST(ExecutedFaultsTest, ABrokenEventLineIsQuoted) {
  JobBuilder job = sound_job();
  job.at(1).events[1].errors.emplace_back("events/rank-1.jsonl:7: event: no JSON: `oops`");
  const auto verdict = executed_faults(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kInvalid);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("`oops`")));
}

// Each spoils one event of a sound job, which then proves nothing.
void expect_broken_protocol(const std::function<void(JobBuilder&)>& spoil, const char* said) {
  JobBuilder job = sound_job();
  spoil(job);
  const auto verdict = executed_faults(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kInvalid);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr(said)));
}

Event& first_of(JobBuilder& job, EventKind kind) {
  auto& events = job.at(1).events[1].events;
  return *std::find_if(events.begin(), events.end(),
                       [&](const Event& event) { return event.kind == kind; });
}

TEST(ExecutedFaultsTest, AnEventOfAnotherClockIsInvalid) {
  expect_broken_protocol(
      [](JobBuilder& job) {
        first_of(job, EventKind::kSaveBegin).time_ns = 1'800'000'000'000'000'000;
      },
      "CLOCK_MONOTONIC");
}

TEST(ExecutedFaultsTest, AHookThatFailedIsInvalid) {
  expect_broken_protocol(
      [](JobBuilder& job) {
        Event failed = first_of(job, EventKind::kSaveBegin);
        failed.kind = EventKind::kHookError;
        failed.name = "save_begin";
        failed.error = EventError{};
        failed.error->text = "TypeError: no bytes";
        job.at(1).events[1].events.push_back(failed);
      },
      "the subject's hook failed in `save_begin`: TypeError: no bytes");
}

TEST(ExecutedFaultsTest, AChildThatSpeaksAsItsRankIsInvalid) {
  expect_broken_protocol([](JobBuilder& job) { first_of(job, EventKind::kUpdate).pid = 4711; },
                         "said by process 4711, a child");
  expect_broken_protocol(
      [](JobBuilder& job) {
        auto& events = job.at(1).events[1].events;
        events.push_back(first_of(job, EventKind::kHello));
      },
      "said already in line");
}

TEST(ExecutedFaultsTest, AChildMayReportTheSaveThatItDoes) {
  JobBuilder job = sound_job();
  first_of(job, EventKind::kSaveEnd).pid = 4711;
  EXPECT_EQ(executed_faults(job.evidence).outcome, Outcome::kPass);
}

TEST(ExecutedFaultsTest, AnEventOfAnotherRankIsInvalid) {
  expect_broken_protocol([](JobBuilder& job) { first_of(job, EventKind::kUpdate).rank = 0; },
                         "says that it is of rank 0");
}

TEST(ExecutedFaultsTest, AHelloOfAnotherWorldIsInvalid) {
  expect_broken_protocol([](JobBuilder& job) { first_of(job, EventKind::kHello).world = 3; },
                         "speaks of 3 ranks");
}

TEST(ExecutedFaultsTest, ASaveThatEndsWithoutABeginningIsInvalid) {
  expect_broken_protocol([](JobBuilder& job) { first_of(job, EventKind::kSaveEnd).step = 7; },
                         "no save_begin");
}

TEST(ExecutedFaultsTest, ASaveWithoutItsNumberIsInvalid) {
  expect_broken_protocol([](JobBuilder& job) { first_of(job, EventKind::kSaveBegin).save.reset(); },
                         "which save");
}

TEST(ExecutedFaultsTest, ABlackBoxThatWritesNoFileIsInvalid) {
  JobBuilder job = sound_job();
  job.evidence.subject.events = false;
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) log.events.clear();
  }
  EXPECT_EQ(executed_faults(job.evidence).outcome, Outcome::kPass);
  for (Life& life : job.evidence.lives) life.trace.records.clear();
  EXPECT_EQ(executed_faults(job.evidence).outcome, Outcome::kInvalid);
}

TEST(ExecutedFaultsTest, ALifeThatWasNotRunIsInvalid) {
  JobBuilder job = sound_job();
  job.evidence.lives.pop_back();
  EXPECT_EQ(executed_faults(job.evidence).outcome, Outcome::kInvalid);
}

TEST(ExecutedFaultsTest, ZeroItemsComparedIsInvalid) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) {
      for (Event& event : log.events) event.items.clear();
    }
  }
  EXPECT_EQ(executed_faults(job.evidence).outcome, Outcome::kInvalid);
}

TEST(ExecutedFaultsTest, TamperingThatWasNotDoneIsInvalid) {
  JobBuilder job = sound_job();
  job.at(1).record.tampered.emplace_back("not done: remove: there is no shard file of rank 7");
  EXPECT_EQ(executed_faults(job.evidence).outcome, Outcome::kInvalid);
}

TEST(BoundToWhatWasRunTest, EveryNameIsNeeded) {
  JobBuilder job = sound_job();
  EXPECT_EQ(bound_to_what_was_run(job.evidence).outcome, Outcome::kPass);
  job.evidence.provenance.erase("kernel");
  EXPECT_EQ(bound_to_what_was_run(job.evidence).outcome, Outcome::kFail);
}

TEST(BoundToWhatWasRunTest, AnExecutableThatChangedFails) {
  JobBuilder job = sound_job();
  job.evidence.provenance["executable.digest.end"] = "another";
  EXPECT_EQ(bound_to_what_was_run(job.evidence).outcome, Outcome::kFail);
}

TEST(EvidenceUnalteredTest, AManifestProblemFails) {
  JobBuilder job = sound_job();
  EXPECT_EQ(evidence_unaltered(job.evidence).outcome, Outcome::kPass);
  job.evidence.problems.emplace_back("manifest: life-1/fired.jsonl was altered");
  EXPECT_EQ(evidence_unaltered(job.evidence).outcome, Outcome::kFail);
}

TEST(MeasuredNotGuessedTest, AProcessWithoutMemoryIsAGuess) {
  JobBuilder job = sound_job();
  EXPECT_EQ(measured_not_guessed(job.evidence).outcome, Outcome::kSkip);
  Event& memory = job.event(0, EventKind::kMemory);
  memory.memory = {{"host_rss", 4096}, {"gpu_allocated", std::nullopt}};
  EXPECT_EQ(measured_not_guessed(job.evidence).outcome, Outcome::kPass);
  job.event(0, EventKind::kMemory).memory = {{"host_rss", 0}};
  EXPECT_EQ(measured_not_guessed(job.evidence).outcome, Outcome::kFail);
}

TEST(MeasuredNotGuessedTest, GpuBytesWithoutAGpuAreAGuess) {
  JobBuilder job = sound_job();
  job.event(0, EventKind::kMemory).memory = {{"gpu_allocated", 0}};
  EXPECT_EQ(measured_not_guessed(job.evidence).outcome, Outcome::kFail);
}

void expect_item_fails(const std::function<void(Item&)>& spoil) {
  JobBuilder job = sound_job();
  EXPECT_EQ(identified_items(job.evidence).outcome, Outcome::kPass);
  for (Event& event : job.at(0).events[0].events) {
    if (event.kind == EventKind::kSaveBegin) spoil(event.items[0]);
  }
  EXPECT_EQ(identified_items(job.evidence).outcome, Outcome::kFail);
}

TEST(IdentifiedItemsTest, AnItemWithoutNameFails) {
  expect_item_fails([](Item& item) { item.name.clear(); });
}
TEST(IdentifiedItemsTest, AnItemWithoutShapeFails) {
  expect_item_fails([](Item& item) { item.local_shape.clear(); });
}
TEST(IdentifiedItemsTest, BytesThatDoNotFitTheShapeFail) {
  expect_item_fails([](Item& item) { item.bytes = 12; });
}
TEST(IdentifiedItemsTest, AShardOutsideTheGlobalShapeFails) {
  expect_item_fails([](Item& item) { item.offset = {1}; });
}
TEST(IdentifiedItemsTest, ANameUsedTwiceAtOneOffsetFails) {
  expect_item_fails([](Item& item) { item.name = "moment"; });
}
TEST(IdentifiedItemsTest, NoItemsAreSkipped) {
  JobBuilder job;
  job.life("save 1");
  job.end();
  EXPECT_EQ(identified_items(job.evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
