#include "harness/oracles/carried_over.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;

JobBuilder moved_job() {
  JobBuilder job = sound_job();
  job.at(0).record.directory = "/mnt/a";
  job.at(1).record.directory = "/mnt/b";
  return job;
}

// A life after two saves, in which each rank does what `load` says.
template <class Load>
JobBuilder loading_job(Load load) {
  JobBuilder job;
  job.life("save 2");
  job.save(1);
  job.save(2);
  job.end();
  job.begin_life("save 3");
  for (int rank = 0; rank < job.world(); ++rank) load(job, rank);
  job.end();
  job.at(0).record.directory = "/mnt/a";
  job.at(1).record.directory = "/mnt/b";
  return job;
}

void starts_afresh(JobBuilder& job, int rank) { job.resume(rank, std::nullopt); }
void refuses(JobBuilder& job, int rank) { job.refuse(rank, "format 2 is not known"); }
void dies(JobBuilder& job, int rank) {
  job.left(rank, 0);
  job.process(rank).exit_status.reset();
  job.process(rank).signal = 11;
}

TEST(MovedDirectoryTest, ARestoreFromAnotherPathPasses) {
  EXPECT_EQ(moved_directory_works(moved_job().evidence).outcome, Outcome::kPass);
}

TEST(MovedDirectoryTest, ARefusalWithAReasonPasses) {
  EXPECT_EQ(moved_directory_works(loading_job(refuses).evidence).outcome, Outcome::kPass);
}

TEST(MovedDirectoryTest, AFreshStartFails) {
  const auto verdict = moved_directory_works(loading_job(starts_afresh).evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence.front(), testing::HasSubstr("lie at /mnt/b"));
}

TEST(MovedDirectoryTest, ACrashFails) {
  EXPECT_EQ(moved_directory_works(loading_job(dies).evidence).outcome, Outcome::kFail);
}

// It was restored from where the checkpoints no longer are.
TEST(MovedDirectoryTest, ARestoreFromTheOldPathFails) {
  const auto verdict = moved_directory_works(loading_job([](JobBuilder& job, int rank) {
                                               job.resume(rank, 2).path = "/mnt/a/step_2";
                                             }).evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
}

// A save path without step directories restores from the root itself.
TEST(MovedDirectoryTest, AnAbsolutePathWithinTheNewRootPasses) {
  for (const std::string path : {"/mnt/b", "/mnt/b/step_2"}) {
    const JobBuilder job =
        loading_job([&](JobBuilder& each, int rank) { each.resume(rank, 2).path = path; });
    EXPECT_EQ(moved_directory_works(job.evidence).outcome, Outcome::kPass) << path;
  }
  const JobBuilder beside = loading_job(
      [](JobBuilder& each, int rank) { each.resume(rank, 2).path = "/mnt/b-old/step_2"; });
  EXPECT_EQ(moved_directory_works(beside.evidence).outcome, Outcome::kFail);
}

TEST(MovedDirectoryTest, ADamagedCheckpointSaysNothing) {
  JobBuilder job = loading_job(starts_afresh);
  job.at(1).record.tampered.emplace_back("remove latest");
  EXPECT_EQ(moved_directory_works(job.evidence).outcome, Outcome::kSkip);
}

TEST(MovedDirectoryTest, AtTheSamePathItIsSkipped) {
  JobBuilder job = moved_job();
  job.at(1).record.directory = "/mnt/a";
  EXPECT_EQ(moved_directory_works(job.evidence).outcome, Outcome::kSkip);
}

JobBuilder with_record(const std::string& digest_after) {
  JobBuilder job = sound_job();
  job.evidence.subject.records = {"metrics.jsonl"};
  job.at(1).record.records = {{"metrics.jsonl", 24, "before", digest_after}};
  return job;
}

TEST(RecordsTest, ARecordThatWasAppendedToPasses) {
  EXPECT_EQ(records_survive(with_record("before").evidence).outcome, Outcome::kPass);
}

TEST(RecordsTest, ARecordThatIsShorterOrOtherFails) {
  EXPECT_EQ(records_survive(with_record("").evidence).outcome, Outcome::kFail);
  EXPECT_EQ(records_survive(with_record("other").evidence).outcome, Outcome::kFail);
}

// Steps that are done again may be recorded again.
TEST(RecordsTest, AResumeAtAnEarlierStepMayCutLaterRecordsOff) {
  JobBuilder job = with_record("");
  for (EventLog& log : job.at(1).events) {
    for (Event& event : log.events) {
      if (event.kind == EventKind::kResumed) event.step = 1;
    }
  }
  EXPECT_EQ(records_survive(job.evidence).outcome, Outcome::kSkip);
}

TEST(RecordsTest, WithoutRecordsItIsSkipped) {
  EXPECT_EQ(records_survive(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(FormatsTest, AnOlderFormatThatIsLoadedPasses) {
  JobBuilder job = sound_job();
  job.at(0).spec.change = kOlderCode;
  EXPECT_EQ(older_formats_load(job.evidence).outcome, Outcome::kPass);
}

TEST(FormatsTest, AnOlderFormatThatIsRefusedOrForgottenFails) {
  for (JobBuilder job : {loading_job(refuses), loading_job(starts_afresh), loading_job(dies)}) {
    job.at(0).spec.change = kOlderCode;
    EXPECT_EQ(older_formats_load(job.evidence).outcome, Outcome::kFail);
  }
}

TEST(FormatsTest, ANewerFormatIsRefusedWithAReason) {
  JobBuilder job = loading_job(refuses);
  job.at(1).spec.change = kOlderCode;
  EXPECT_EQ(older_formats_load(job.evidence).outcome, Outcome::kPass);
}

TEST(FormatsTest, ANewerFormatThatIsTakenForNothingOrCrashesFails) {
  for (JobBuilder job : {loading_job(starts_afresh), loading_job(dies)}) {
    job.at(1).spec.change = kOlderCode;
    EXPECT_EQ(older_formats_load(job.evidence).outcome, Outcome::kFail);
  }
}

TEST(FormatsTest, WithOneVersionItIsSkipped) {
  EXPECT_EQ(older_formats_load(sound_job().evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
