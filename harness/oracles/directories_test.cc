#include "harness/oracles/directories.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using faults::Op;
using reports::Outcome;

// The second save is complete and was never announced; the next life does it again, from `uncommit`
// on.
template <class Uncommit>
Evidence saved_over(Uncommit uncommit) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.update(2);
  job.begin_save(2);
  job.write_files(2);
  job.publish_marker(2);
  job.kill(1);
  job.collect();
  job.life("save 2");
  job.update(2);
  job.begin_save(2);
  uncommit(job);
  job.write_files(2);
  job.publish_marker(2);
  job.publish_pointer(2);
  job.end_save(2);
  job.end();
  return job.evidence;
}

void remove_files(JobBuilder& job) {
  for (int rank = 0; rank < job.world(); ++rank) {
    job.operation(0, Op::kUnlink, JobBuilder::shard(2, rank));
    job.operation(0, Op::kUnlink, fmt::format("step_2/state-{}", rank));
  }
}

TEST(UncommittedFirstTest, AMarkerAndOldFilesThatGoFirstPass) {
  const auto verdict = uncommitted_first(saved_over([](JobBuilder& job) {
    job.operation(0, Op::kUnlink, JobBuilder::marker(2));
    remove_files(job);
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(UncommittedFirstTest, FilesWrittenUnderTheOldMarkerFail) {
  const auto verdict = uncommitted_first(saved_over([](JobBuilder&) {}));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.front(), testing::HasSubstr("step_2/marker, is still there"));
}

TEST(UncommittedFirstTest, AFileThatWasReplacedIsNotSaidToBeTheOldOne) {
  const auto verdict = uncommitted_first(saved_over([](JobBuilder&) {}));
  EXPECT_THAT(verdict.evidence, testing::Each(testing::Not(testing::HasSubstr("is still that"))));
}

// As where an older step's shard lies in it, and training goes on from that step.
TEST(UncommittedFirstTest, WhatTheScenarioDamagedMayBeSavedOver) {
  Evidence evidence = saved_over([](JobBuilder&) {});
  LifeRecord& record = evidence.lives.at(1).record;
  record.tampered.push_back("flip " + JobBuilder::shard(2, 0) + " byte 4096");
  for (FileEntry& entry : record.tree_before) {
    if (entry.path == JobBuilder::shard(2, 0)) entry.digest = std::string(32, 'f');
  }
  EXPECT_EQ(uncommitted_first(evidence).outcome, Outcome::kSkip);
}

TEST(UncommittedFirstTest, OldFilesThatGoBeforeTheirMarkerFail) {
  const auto verdict = uncommitted_first(saved_over([](JobBuilder& job) {
    remove_files(job);
    job.operation(0, Op::kUnlink, JobBuilder::marker(2));
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
}

TEST(UncommittedFirstTest, AnOldDirectoryMovedAsidePasses) {
  const auto verdict = uncommitted_first(
      saved_over([](JobBuilder& job) { job.operation(0, Op::kRename, "step_2", "old"); }));
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

// A step is saved again, into `directory` beside or over that of the first attempt.
reports::Outcome saved_again_into(const std::string& directory) {
  JobBuilder job;
  job.evidence.subject.layout.marker.emplace_back("step_*/*/marker");
  job.evidence.subject.layout.shard.emplace_back("step_*/*/shard-*");
  job.life("save 2");
  job.save(1);
  job.update(2);
  job.begin_save(2);
  job.kill(1);
  job.collect();
  job.life("save 2");
  for (const char* name : {"shard-0", "marker"}) {
    FileEntry& left = job.current().record.tree_before.emplace_back();
    left.type = 'f';
    left.path = fmt::format("step_2/attempt-1/{}", name);
  }
  job.update(2);
  job.begin_save(2);
  job.operation(0, Op::kCreate, directory + "/shard-0");
  job.operation(0, Op::kCreate, directory + "/marker");
  job.end_save(2);
  job.end();
  return uncommitted_first(job.evidence).outcome;
}

TEST(UncommittedFirstTest, AMarkerVouchesForItsOwnDirectoryAlone) {
  EXPECT_EQ(saved_again_into("step_2/attempt-1"), Outcome::kFail);
  EXPECT_EQ(saved_again_into("step_2/attempt-2"), Outcome::kPass);
}

// Old RNG files beside a new model.
TEST(UncommittedFirstTest, AnOldFileLeftBesideTheNewMarkerFails) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.begin_save(2);
  job.publish(1, "step_2/state-7");
  job.kill(1);
  job.collect();
  job.life("save 2");
  job.save(2);
  job.end();
  const auto verdict = uncommitted_first(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.front(), testing::HasSubstr("step_2/state-7 is still that"));
}

TEST(UncommittedFirstTest, WithoutAStepSavedTwiceItIsSkipped) {
  EXPECT_EQ(uncommitted_first(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(UncommittedFirstTest, WithoutAMarkerInTheLayoutItIsSkipped) {
  Evidence evidence = saved_over([](JobBuilder&) {});
  evidence.subject.layout.marker.clear();
  EXPECT_EQ(uncommitted_first(evidence).outcome, Outcome::kSkip);
}

// Four saves; after the third one `rotate` deletes something.
template <class Rotate>
Evidence rotated(Rotate rotate, std::int64_t keep_every = 0) {
  JobBuilder job;
  job.evidence.subject.keep_every = keep_every;
  job.life("save 4");
  for (int number = 1; number <= 3; ++number) job.save(number);
  rotate(job);
  job.save(4);
  job.end();
  return job.evidence;
}

auto deletes(int step) {
  return [step](JobBuilder& job) { job.operation(0, Op::kUnlink, JobBuilder::marker(step)); };
}

TEST(RotationSparesTest, AnOldCheckpointMayGo) {
  const auto verdict = rotation_spares(rotated(deletes(1)));
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(RotationSparesTest, TheOneThatThePointerNamesIsToStay) {
  const auto verdict = rotation_spares(rotated(deletes(3)));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.front(), testing::HasSubstr("which the pointer names"));
}

TEST(RotationSparesTest, WithoutAPointerTheNewestCompleteOneIsToStay) {
  Evidence evidence = rotated(deletes(3));
  evidence.subject.layout.pointer.clear();
  EXPECT_EQ(rotation_spares(evidence).outcome, Outcome::kFail);
  evidence.subject.layout.marker.clear();
  evidence.subject.layout.auxiliary.emplace_back("step_*/marker");
  EXPECT_EQ(rotation_spares(evidence).outcome, Outcome::kFail);
}

TEST(RotationSparesTest, OneThatIsKeptForEvaluationIsToStay) {
  EXPECT_EQ(rotation_spares(rotated(deletes(2), /*keep_every=*/2)).outcome, Outcome::kFail);
  EXPECT_EQ(rotation_spares(rotated(deletes(1), /*keep_every=*/2)).outcome, Outcome::kPass);
}

TEST(RotationSparesTest, OneThatIsBeingReadIsToStay) {
  JobBuilder job = sound_job();
  job.begin_life("save 4");
  job.operation(0, Op::kUnlink, JobBuilder::marker(3));
  for (int rank = 0; rank < job.world(); ++rank) job.resume(rank, 3);
  job.end();
  const auto verdict = rotation_spares(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence, testing::Contains(testing::HasSubstr("which rank 1 was reading")));
}

TEST(RotationSparesTest, OneThatIsBeingWrittenIsToStay) {
  JobBuilder job;
  job.life("save 1");
  job.update(1);
  job.begin_save(1);
  job.write_files(1);
  job.operation(0, Op::kUnlink, JobBuilder::shard(1, 1));
  job.publish_marker(1);
  job.publish_pointer(1);
  job.end_save(1);
  job.end();
  const auto verdict = rotation_spares(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.front(), testing::HasSubstr("which was being written"));
}

TEST(RotationSparesTest, AFileThatIsWrittenAnewInTheSameSaveIsARetry) {
  JobBuilder job;
  job.life("save 1");
  job.update(1);
  job.begin_save(1);
  job.write_files(1);
  job.operation(0, Op::kUnlink, JobBuilder::shard(1, 1));
  job.publish(1, JobBuilder::shard(1, 1));
  job.publish_marker(1);
  job.publish_pointer(1);
  job.end_save(1);
  job.end();
  EXPECT_NE(rotation_spares(job.evidence).outcome, Outcome::kFail);
}

TEST(RotationSparesTest, DebrisOfAKeptStepMayGo) {
  const auto without_marker = [](JobBuilder& job) {
    job.operation(0, Op::kUnlink, JobBuilder::marker(1));
    job.operation(0, Op::kUnlink, JobBuilder::shard(1, 0));
  };
  Evidence evidence = rotated(without_marker);
  std::erase_if(evidence.lives[0].trace.records, [](const faults::TraceRecord& record) {
    return record.path.starts_with(JobBuilder::marker(1)) || record.path2 == JobBuilder::marker(1);
  });
  evidence.subject.keep_every = 1;
  EXPECT_NE(rotation_spares(evidence).outcome, Outcome::kFail);
}

TEST(RotationSparesTest, WherePointersMoveBetweenSavesTheNewestCompleteOneIsToStay) {
  JobBuilder job;
  job.life("save 4");
  for (int number = 1; number <= 3; ++number) job.save(number);
  job.publish_pointer(3);  // once more, by no save
  job.operation(0, Op::kUnlink, JobBuilder::marker(3));
  job.end();
  EXPECT_EQ(rotation_spares(job.evidence).outcome, Outcome::kFail);
}

TEST(RotationSparesTest, WhatNoPointerEverNamedMayGo) {
  JobBuilder job;
  job.life("save 1");
  job.update(1);
  job.begin_save(1);
  job.write_files(1);
  job.publish_marker(1);
  job.kill(1);
  job.collect();
  job.life("save 1");
  job.operation(0, Op::kUnlink, JobBuilder::marker(1));
  job.end();
  EXPECT_EQ(rotation_spares(job.evidence).outcome, Outcome::kPass);
}

TEST(RotationSparesTest, WithoutADeletionItIsSkipped) {
  EXPECT_EQ(rotation_spares(sound_job().evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
