#include "harness/oracles/resume.h"

#include <gmock/gmock.h>

#include "harness/oracles.h"
#include "harness/oracles/evidence_builder.h"
#include "harness/oracles/outcome.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::HasSubstr;

template <class Spoil>
Evidence spoiled(std::size_t life, EventKind kind, Spoil spoil) {
  JobBuilder job = sound_job();
  for (EventLog& log : job.at(life).events) {
    for (Event& event : log.events) {
      if (event.kind == kind) spoil(event);
    }
  }
  return job.evidence;
}

void drop(Evidence& evidence, std::size_t life, EventKind kind) {
  for (EventLog& log : evidence.lives[life].events) {
    std::erase_if(log.events, [&](const Event& event) { return event.kind == kind; });
  }
}

TEST(RealSuccessTest, ASoundJobPasses) {
  EXPECT_EQ(real_success(sound_job().evidence).outcome, Outcome::kPass);
}

TEST(RealSuccessTest, ExitZeroWithoutDoneFails) {
  Evidence evidence = sound_job().evidence;
  drop(evidence, 1, EventKind::kDone);
  EXPECT_EQ(real_success(evidence).outcome, Outcome::kFail);
}

TEST(RealSuccessTest, ExitZeroBeforeUntilFails) {
  JobBuilder job = sound_job();
  job.at(1).spec.until = "save 4";
  EXPECT_EQ(real_success(job.evidence).outcome, Outcome::kFail);
}

TEST(RealSuccessTest, ExitZeroAfterAFailedSaveFails) {
  const auto evidence = spoiled(1, EventKind::kSaveEnd, [](Event& event) { event.ok = false; });
  EXPECT_EQ(real_success(evidence).outcome, Outcome::kFail);
}

TEST(RealSuccessTest, ARankWithoutAnyEventAmongOthersFails) {
  JobBuilder job = sound_job();
  job.at(1).events[1].events.clear();
  EXPECT_EQ(real_success(job.evidence).outcome, Outcome::kFail);
}

TEST(RealSuccessTest, WithoutExitZeroItIsSkipped) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (RankProcess& process : life.record.ranks) process.exit_status = 1;
  }
  EXPECT_EQ(real_success(job.evidence).outcome, Outcome::kSkip);
}

TEST(NewProcessesTest, ASoundJobPasses) {
  EXPECT_EQ(new_processes(sound_job().evidence).outcome, Outcome::kPass);
}

TEST(NewProcessesTest, OneLifeIsSkipped) {
  JobBuilder job;
  job.life("save 1");
  job.end();
  EXPECT_EQ(new_processes(job.evidence).outcome, Outcome::kSkip);
}

TEST(NewProcessesTest, TheSameProcessAgainFails) {
  JobBuilder job = sound_job();
  job.at(1).record.ranks[0].pid = job.at(0).record.ranks[0].pid;
  job.at(1).record.ranks[0].start_ticks = job.at(0).record.ranks[0].start_ticks;
  EXPECT_EQ(new_processes(job.evidence).outcome, Outcome::kFail);
}

TEST(NewProcessesTest, APidUsedAgainByANewProcessPasses) {
  JobBuilder job = sound_job();
  const std::int64_t pid = job.at(0).record.ranks[0].pid;
  job.at(1).record.ranks[0].pid = pid;
  job.at(1).events[0].events[0].pid = pid;
  EXPECT_EQ(new_processes(job.evidence).outcome, Outcome::kPass);
}

TEST(NewProcessesTest, AnotherPidInTheHelloFails) {
  const auto evidence = spoiled(1, EventKind::kHello, [](Event& event) { event.pid -= 100; });
  EXPECT_EQ(new_processes(evidence).outcome, Outcome::kFail);
}

TEST(WholeStateTest, ASoundJobPasses) {
  const auto verdict = whole_state(sound_job().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(WholeStateTest, MissingRngStreamsFail) {
  const auto evidence = spoiled(0, EventKind::kSaveBegin, [](Event& event) {
    std::erase_if(event.items, [](const Item& item) { return item.kind == "rng"; });
  });
  EXPECT_EQ(whole_state(evidence).outcome, Outcome::kFail);
}

TEST(WholeStateTest, AMissingKindFails) {
  const auto evidence = spoiled(0, EventKind::kSaveBegin, [](Event& event) {
    std::erase_if(event.items, [](const Item& item) { return item.kind == "scheduler"; });
  });
  EXPECT_EQ(whole_state(evidence).outcome, Outcome::kFail);
}

// One random stream and no scheduler, as an ordinary program has.
JobBuilder job_with_less_state() {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) {
      for (Event& event : log.events) {
        std::erase_if(event.items, [](const Item& item) {
          return item.kind == "scheduler" || (item.kind == "rng" && item.name != "rng.0");
        });
      }
    }
  }
  return job;
}

TEST(WholeStateTest, WithoutAClaimWhatWasToldIsJudgedAndWhatWasNotIsNamed) {
  JobBuilder job = job_with_less_state();
  EXPECT_EQ(whole_state(job.evidence).outcome, Outcome::kFail);
  job.evidence.subject.claims.state.clear();
  job.evidence.subject.claims.rng_streams = 0;
  const auto verdict = whole_state(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass);
  EXPECT_THAT(verdict.summary, HasSubstr("never told of: scheduler"));
  EXPECT_THAT(verdict.summary, HasSubstr("rng (1 a rank)"));
}

TEST(WholeStateTest, WithoutAClaimAnItemThatIsNotRestoredFails) {
  JobBuilder job = job_with_less_state();
  job.evidence.subject.claims.state.clear();
  job.evidence.subject.claims.rng_streams = 0;
  for (Event& event : job.at(1).events[0].events) {
    if (event.kind == EventKind::kResumed) event.items.pop_back();
  }
  EXPECT_EQ(whole_state(job.evidence).outcome, Outcome::kFail);
}

TEST(WholeStateTest, FewerRngStreamsThanClaimedFail) {
  JobBuilder job = sound_job();
  job.evidence.subject.claims.rng_streams = 5;
  EXPECT_EQ(whole_state(job.evidence).outcome, Outcome::kFail);
}

TEST(WholeStateTest, AnItemThatIsNotRestoredFails) {
  const auto evidence =
      spoiled(1, EventKind::kResumed, [](Event& event) { event.items.pop_back(); });
  EXPECT_EQ(whole_state(evidence).outcome, Outcome::kFail);
}

TEST(WholeStateTest, AnUnexpectedItemFails) {
  const auto evidence = spoiled(1, EventKind::kResumed, [](Event& event) {
    event.items.push_back(JobBuilder::item("stranger", "parameter", 0, 2));
  });
  EXPECT_EQ(whole_state(evidence).outcome, Outcome::kFail);
}

TEST(WholeStateTest, ASampleConsumedTwiceFails) {
  const auto evidence = spoiled(1, EventKind::kUpdate, [](Event& event) {
    event.samples = {{0, 0}};
  });
  EXPECT_EQ(whole_state(evidence).outcome, Outcome::kFail);
}

TEST(WholeStateTest, ASampleLeftOutFails) {
  const auto evidence = spoiled(1, EventKind::kUpdate, [](Event& event) {
    event.samples = {{event.samples[0].first + 2, event.samples[0].second + 2}};
  });
  EXPECT_EQ(whole_state(evidence).outcome, Outcome::kFail);
}

TEST(WholeStateTest, ARangeOfAsManySamplesAsThereAreNumbersIsJudgedAtOnce) {
  const auto evidence = spoiled(1, EventKind::kUpdate, [](Event& event) {
    event.samples = {{event.samples[0].first, INT64_MAX}};
  });
  EXPECT_EQ(whole_state(evidence).outcome, Outcome::kPass);
}

TEST(WholeStateTest, RanksThatConsumeTheSameSamplesInOneStepAreReplicas) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) {
      for (Event& event : log.events) {
        if (event.kind == EventKind::kUpdate) event.samples = {{*event.step, *event.step}};
      }
    }
  }
  EXPECT_EQ(whole_state(job.evidence).outcome, Outcome::kPass);
}

TEST(WholeStateTest, SamplesOfALostStepMayComeAgain) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.update(2);
  job.begin_save(2);
  job.kill(0);
  job.kill(1);
  job.collect();
  job.life("save 2");
  job.save(2);
  job.end();
  const auto verdict = whole_state(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

Evidence changed_contract(bool refused, const std::string& text) {
  JobBuilder job;
  job.life("save 1");
  job.save(1);
  job.end();
  job.begin_life("save 2");
  job.current().spec.expect.names = "data";
  for (int rank = 0; rank < 2; ++rank) {
    if (refused) {
      job.refuse(rank, text);
    } else {
      job.resume(rank, 1);
    }
  }
  job.end();
  return job.evidence;
}

TEST(RunContractTest, WithoutAContractItIsSkipped) {
  EXPECT_EQ(run_contract(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(RunContractTest, ARefusalByNamePasses) {
  EXPECT_EQ(run_contract(changed_contract(true, "contract: data changed")).outcome, Outcome::kPass);
}

TEST(RunContractTest, ARefusalWithoutTheNameFails) {
  EXPECT_EQ(run_contract(changed_contract(true, "cannot load")).outcome, Outcome::kFail);
}

TEST(RunContractTest, AResumeFails) {
  EXPECT_EQ(run_contract(changed_contract(false, "")).outcome, Outcome::kFail);
}

TEST(RealUpdateTest, ASoundJobPasses) {
  EXPECT_EQ(real_update(sound_job().evidence).outcome, Outcome::kPass);
}

TEST(RealUpdateTest, AnUpdateThatChangesNothingIsInvalid) {
  const auto evidence = spoiled(1, EventKind::kUpdate, [](Event& event) { event.changed = false; });
  EXPECT_EQ(real_update(evidence).outcome, Outcome::kInvalid);
}

TEST(RealUpdateTest, WithoutAResumeItIsSkipped) {
  JobBuilder job;
  job.life("save 1");
  job.save(1);
  job.end();
  EXPECT_EQ(real_update(job.evidence).outcome, Outcome::kSkip);
}

JobBuilder saved_again() {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.update(2);
  job.begin_save(2);
  job.kill(0);
  job.kill(1);
  job.collect();
  job.life("save 2");
  job.save(2);
  job.end();
  return job;
}

TEST(RealUpdateTest, AStepReachedAgainWithTheSameBytesPasses) {
  EXPECT_EQ(real_update(saved_again().evidence).outcome, Outcome::kPass);
}

TEST(RealUpdateTest, AStepReachedAgainWithOtherBytesFails) {
  JobBuilder job = saved_again();
  for (Event& event : job.at(1).events[0].events) {
    if (event.kind == EventKind::kSaveBegin) event.items[2].digest = std::string(32, '0');
  }
  EXPECT_EQ(real_update(job.evidence).outcome, Outcome::kFail);
  job.evidence.subject.claims.deterministic = false;
  EXPECT_EQ(real_update(job.evidence).outcome, Outcome::kPass);
}

std::string outcome_of_first(const JobBuilder& job) {
  const View view(job.evidence);
  return outcome_of(view, job.evidence.lives.front());
}

TEST(OutcomeTest, EachHasItsName) {
  EXPECT_EQ(outcome_of_first(sound_job()), "complete");
  EXPECT_EQ(outcome_of_first(saved_again()), "killed");

  JobBuilder refused;
  refused.begin_life("save 1");
  for (int rank = 0; rank < 2; ++rank) refused.refuse(rank, "no");
  refused.collect();
  EXPECT_EQ(outcome_of_first(refused), "refuse-together");

  JobBuilder failed;
  failed.life("save 1");
  failed.begin_save(1);
  for (int rank = 0; rank < 2; ++rank) failed.fail_save_of(rank, 1, {});
  failed.collect();
  EXPECT_EQ(outcome_of_first(failed), "fail-together");

  JobBuilder hung;
  hung.life("save 1");
  for (int rank = 0; rank < 2; ++rank) hung.end_by_runner(rank);
  hung.collect();
  EXPECT_EQ(outcome_of_first(hung), "hung");

  JobBuilder held;
  held.life("save 1");
  held.begin_save(1);
  held.fired(1, "hang", faults::Op::kWrite, "step_1/shard-1.tmp");
  held.fail_save_of(0, 1, {});
  held.end_by_runner(1);
  held.collect();
  EXPECT_EQ(outcome_of_first(held), "held");

  JobBuilder mixed;
  mixed.life("save 1");
  mixed.save(1);
  mixed.left(0, 1);
  mixed.end();
  EXPECT_EQ(outcome_of_first(mixed), "mixed");
}

// Its launcher started none.
TEST(OutcomeTest, ALifeWithoutARankProvesNothing) {
  JobBuilder job = sound_job();
  job.at(0).record.ranks.clear();
  EXPECT_EQ(expected_outcome(job.evidence).outcome, Outcome::kInvalid);
}

TEST(OutcomeTest, AnotherThanExpectedFails) {
  JobBuilder job = sound_job();
  EXPECT_EQ(expected_outcome(job.evidence).outcome, Outcome::kPass);
  job.at(0).spec.expect.outcome = savegate::harness::Outcome::kFailTogether;
  const auto verdict = expected_outcome(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("life 1 was to be fail-together, and was complete"));
}

TEST(OutcomeTest, WithoutItsFaultAnotherOutcomeProvesNothing) {
  JobBuilder job = sound_job();
  job.at(0).spec.expect.outcome = savegate::harness::Outcome::kKilled;
  job.at(0).record.rules.push_back({.life = 1, .rule = "kill", .required = true, .hits = 0});
  EXPECT_EQ(expected_outcome(job.evidence).outcome, Outcome::kInvalid);
}

TEST(OutcomeTest, WithoutItsLimitMetAnotherOutcomeProvesNothing) {
  JobBuilder job = sound_job();
  job.at(0).spec.expect.outcome = savegate::harness::Outcome::kFailTogether;
  job.at(0).spec.limits.file_size = 1 << 20;
  EXPECT_EQ(expected_outcome(job.evidence).outcome, Outcome::kInvalid);
}

TEST(OutcomeTest, ARankThatDiedIsQuotedWithTheLastThatItPrinted) {
  JobBuilder job = sound_job();
  job.at(1).record.ranks[1].exit_status = 1;
  job.at(1).last_words = {"", "life-2/logs/rank-1.log: ModuleNotFoundError: No module named 'x'"};
  const auto verdict = expected_outcome(job.evidence);
  ASSERT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.at(0), HasSubstr("rank 1 pid 201 left with exit status 1"));
  EXPECT_THAT(verdict.evidence.at(1), HasSubstr("ModuleNotFoundError"));
}

TEST(OutcomeTest, WithoutItsTamperingAnotherOutcomeProvesNothing) {
  JobBuilder job = sound_job();
  job.at(1).spec.expect.outcome = savegate::harness::Outcome::kRefuseTogether;
  job.at(1).record.tampered.emplace_back("not done: remove: there is no pointer file");
  EXPECT_EQ(expected_outcome(job.evidence).outcome, Outcome::kInvalid);
}

TEST(JudgeTest, ASoundJobPassesWithAllItsClaims) {
  JobBuilder job = sound_job();
  job.evidence.scenario.requirements = {"H1", "F1", "F2", "F3", "F6", "C2", "C8", "C12", "R1"};
  const auto result = judge(job.evidence);
  EXPECT_EQ(result.outcome, Outcome::kPass);
  EXPECT_EQ(result.verdicts.size(), all_oracles().size());
  ASSERT_EQ(result.lives.size(), 2U);
  EXPECT_EQ(result.lives[1].outcome, "complete");
  EXPECT_EQ(result.lives[1].files, 5);
}

TEST(JudgeTest, AClaimThatWasSkippedIsInvalid) {
  JobBuilder job = sound_job();
  job.evidence.scenario.requirements = {"C10"};
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kInvalid);
}

TEST(JudgeTest, AClaimThatTheSubjectNeedNotOfferStaysSkipped) {
  JobBuilder job = sound_job();
  job.evidence.subject.claims.durable = false;
  job.evidence.scenario.requirements = {"F6", "C6"};  // nor does it tell of collectives
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kPass);
}

TEST(JudgeTest, ABlackBoxIsJudgedByItsProcesses) {
  JobBuilder job = sound_job();
  for (Life& life : job.evidence.lives) {
    for (EventLog& log : life.events) log.events.clear();
  }
  job.evidence.scenario.requirements = {"F2", "C8"};
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kInvalid);
  job.evidence.subject.events = false;
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kPass);
  job.process(0).exit_status = 1;
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kFail);
}

TEST(JudgeTest, WhatAFileSystemThatDiedLeavesBehindIsInvalid) {
  JobBuilder job = sound_job();
  job.process(0).exit_status = 1;
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kFail);
  job.current().record.daemon_died = true;
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kInvalid);
}

TEST(JudgeTest, WhatARankDidNotSayWhereItsEventsWereLostIsInvalid) {
  JobBuilder job = sound_job();
  job.current().events[1].events.pop_back();  // `done`
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kFail);
  job.current().events[1].errors.emplace_back("life-2/logs/rank-1.log:1: events lost: ENOSPC");
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kInvalid);
}

TEST(JudgeTest, AClaimThatNoOracleJudgesIsInvalid) {
  JobBuilder job = sound_job();
  job.evidence.scenario.requirements = {"F9"};
  EXPECT_EQ(judge(job.evidence).outcome, Outcome::kInvalid);
}

}  // namespace
}  // namespace savegate::harness
