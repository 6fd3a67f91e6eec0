#include "harness/oracles/errors.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using faults::Op;
using faults::TraceRecord;
using reports::Outcome;

constexpr const char* kTemporary = "step_1/shard-1.tmp";

TraceRecord& short_write(JobBuilder& job) {
  TraceRecord& record = job.write(1, kTemporary, 0, 100);
  record.returned = 40;
  record.faulted = true;
  return record;
}

template <class Save>
Evidence save_with(Save save, bool ok) {
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  save(job);
  for (int rank = 0; rank < job.world(); ++rank) {
    if (ok) {
      job.end_save_of(rank, 1);
    } else {
      job.fail_save_of(rank, 1, {});
    }
  }
  job.end();
  return job.evidence;
}

TEST(ShortIoTest, WithoutAShortOperationItIsSkipped) {
  EXPECT_EQ(short_io_continued(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(ShortIoTest, AContinuedWritePasses) {
  const auto evidence = save_with(
      [](JobBuilder& job) {
        short_write(job);
        job.write(1, kTemporary, 40, 60);
      },
      true);
  EXPECT_EQ(short_io_continued(evidence).outcome, Outcome::kPass);
}

TEST(ShortIoTest, ADroppedRestFails) {
  const auto evidence = save_with(
      [](JobBuilder& job) {
        short_write(job);
        job.write(1, kTemporary, 100, 60);
      },
      true);
  EXPECT_EQ(short_io_continued(evidence).outcome, Outcome::kFail);
}

TEST(ShortIoTest, ARestContinuedOnlyInPartFails) {
  const auto evidence = save_with(
      [](JobBuilder& job) {
        short_write(job);
        job.write(1, kTemporary, 40, 20);
      },
      true);
  EXPECT_EQ(short_io_continued(evidence).outcome, Outcome::kFail);
}

TEST(ShortIoTest, AFailedSaveNeedNotContinue) {
  const auto evidence = save_with([](JobBuilder& job) { short_write(job); }, false);
  EXPECT_EQ(short_io_continued(evidence).outcome, Outcome::kPass);
}

TEST(ShortIoTest, AnInterruptedWriteIsTriedAgain) {
  const auto interrupted = [](JobBuilder& job) {
    TraceRecord& record = job.write(1, kTemporary, 0, 100);
    record.error = EINTR;
    record.returned = 0;
    record.faulted = true;
  };
  const auto retried = save_with(
      [&](JobBuilder& job) {
        interrupted(job);
        job.write(1, kTemporary, 0, 100);
      },
      true);
  EXPECT_EQ(short_io_continued(retried).outcome, Outcome::kPass);
  EXPECT_EQ(short_io_continued(save_with(interrupted, true)).outcome, Outcome::kFail);
}

Evidence restored_after_a_short_read(bool continued, bool right) {
  JobBuilder job = sound_job();
  job.begin_life("save 4");
  TraceRecord& record = job.operation(1, Op::kRead, "step_3/shard-1");
  record.requested = 4096;
  record.returned = 2048;
  record.faulted = true;
  if (continued) {
    TraceRecord& rest = job.operation(1, Op::kRead, "step_3/shard-1");
    rest.offset = 2048;
    rest.requested = 2048;
    rest.returned = 2048;
  }
  for (int rank = 0; rank < job.world(); ++rank) {
    Event& resumed = job.resume(rank, 3);
    if (!right && rank == 1) resumed.items.front().digest = std::string(32, '0');
  }
  job.end();
  return job.evidence;
}

TEST(ShortIoTest, AShortReadOfARestoreIsContinued) {
  EXPECT_EQ(short_io_continued(restored_after_a_short_read(true, true)).outcome, Outcome::kPass);
  EXPECT_EQ(short_io_continued(restored_after_a_short_read(false, false)).outcome, Outcome::kFail);
}

// A buffered reader asks for more than its program wants, and does not miss what it did not get.
TEST(ShortIoTest, AShortReadAheadIsNoFaultWhereAllRestoredBytesAreRight) {
  EXPECT_EQ(short_io_continued(restored_after_a_short_read(false, true)).outcome, Outcome::kPass);
}

EventError whole_error() {
  EventError error;
  error.text = "write: ENOSPC";
  error.errno_name = "ENOSPC";
  error.rank = 1;
  error.path = kTemporary;
  error.offset = 0;
  error.requested = 4096;
  error.returned = 0;
  return error;
}

Evidence failed_with(const EventError& error, Op op = Op::kWrite) {
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  job.failing(1, op, kTemporary, ENOSPC);
  for (int rank = 0; rank < job.world(); ++rank) job.fail_save_of(rank, 1, error);
  job.collect();
  return job.evidence;
}

TEST(FirstErrorTest, WithoutAFailedSaveItIsSkipped) {
  EXPECT_EQ(first_error_kept(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(FirstErrorTest, AWholeErrorPasses) {
  const auto verdict = first_error_kept(failed_with(whole_error()));
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(FirstErrorTest, TheFinalNameIsAsGoodAsTheTemporaryOne) {
  EventError error = whole_error();
  error.path = "step_1/shard-1";
  EXPECT_EQ(first_error_kept(failed_with(error)).outcome, Outcome::kPass);
}

void expect_error_fails(void (*spoil)(EventError&)) {
  EventError error = whole_error();
  spoil(error);
  EXPECT_EQ(first_error_kept(failed_with(error)).outcome, Outcome::kFail);
}

TEST(FirstErrorTest, AMaskedErrnoFails) {
  expect_error_fails([](EventError& error) { error.errno_name.clear(); });
}
TEST(FirstErrorTest, AnotherErrnoFails) {
  expect_error_fails([](EventError& error) { error.errno_name = "EIO"; });
}
TEST(FirstErrorTest, AnotherRankFails) {
  expect_error_fails([](EventError& error) { error.rank = 0; });
}
TEST(FirstErrorTest, AReportWithoutARankIsOfTheRankThatGivesIt) {
  EventError error = whole_error();
  error.rank.reset();
  EXPECT_EQ(first_error_kept(failed_with(error)).outcome, Outcome::kPass);
}

TEST(FirstErrorTest, AnotherRanksReportWithoutTheRankFails) {
  EventError error = whole_error();
  error.rank.reset();
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  job.failing(1, Op::kWrite, kTemporary, ENOSPC);
  job.fail_save_of(0, 1, error);
  job.fail_save_of(1, 1, EventError{});
  job.collect();
  EXPECT_EQ(first_error_kept(job.evidence).outcome, Outcome::kFail);
}

TEST(FirstErrorTest, AnotherPathFails) {
  expect_error_fails([](EventError& error) { error.path = "step_1/marker"; });
}
TEST(FirstErrorTest, AWriteWithoutOffsetFails) {
  expect_error_fails([](EventError& error) { error.offset.reset(); });
}

TEST(FirstErrorTest, AnFsyncHasNoOffset) {
  EventError error = whole_error();
  error.offset.reset();
  error.requested.reset();
  EXPECT_EQ(first_error_kept(failed_with(error, Op::kFsync)).outcome, Outcome::kPass);
}

// The save writes the shard, `failing` fails, and the shard gets its final name all the same.
Evidence late_error(Op failing, int error, bool ok) {
  return save_with(
      [&](JobBuilder& job) {
        job.operation(1, Op::kCreate, kTemporary);
        job.write(1, kTemporary, 0, 10);
        job.failing(1, failing, kTemporary, error).path2 =
            failing == Op::kRename ? "step_1/shard-1" : "";
        if (failing != Op::kRename) {
          job.operation(1, Op::kRename, kTemporary, "step_1/shard-1");
        }
      },
      ok);
}

TEST(LateErrorsTest, WithoutOneItIsSkipped) {
  EXPECT_EQ(late_errors_honoured(sound_job().evidence).outcome, Outcome::kSkip);
}

TEST(LateErrorsTest, AnErrorThatFailsTheSavePasses) {
  for (const Op op : {Op::kFsync, Op::kClose, Op::kRename}) {
    EXPECT_EQ(late_errors_honoured(late_error(op, EIO, false)).outcome, Outcome::kPass);
  }
}

TEST(LateErrorsTest, ASuccessAfterOneFails) {
  for (const Op op : {Op::kFsync, Op::kClose, Op::kRename}) {
    EXPECT_EQ(late_errors_honoured(late_error(op, EIO, true)).outcome, Outcome::kFail)
        << faults::op_name(op);
  }
}

TEST(LateErrorsTest, AnInterruptedFsyncMayBeTriedAgain) {
  EXPECT_EQ(late_errors_honoured(late_error(Op::kFsync, EINTR, true)).outcome, Outcome::kSkip);
}

TEST(LateErrorsTest, AFileWrittenAnewAfterAFailedFsyncIsSound) {
  const auto evidence = save_with(
      [](JobBuilder& job) {
        job.operation(1, Op::kCreate, kTemporary);
        job.failing(1, Op::kFsync, kTemporary, EIO);
        job.operation(1, Op::kUnlink, kTemporary);
        job.publish(1, "step_1/shard-1");
      },
      true);
  EXPECT_EQ(late_errors_honoured(evidence).outcome, Outcome::kPass);
}

// The program swallowed the error and went on: the shard is nowhere.
TEST(LateErrorsTest, ASuccessWithoutTheFileThatFailedFails) {
  for (const Op op : {Op::kFsync, Op::kClose}) {
    const auto evidence = save_with(
        [op](JobBuilder& job) {
          job.operation(1, Op::kCreate, kTemporary);
          job.write(1, kTemporary, 0, 10);
          job.failing(1, op, kTemporary, EIO);
          job.publish(0, "step_1/shard-0");
        },
        true);
    EXPECT_EQ(late_errors_honoured(evidence).outcome, Outcome::kFail) << faults::op_name(op);
  }
}

TEST(LateErrorsTest, ARetryThatIsNeverPublishedFails) {
  const auto evidence = save_with(
      [](JobBuilder& job) {
        job.operation(1, Op::kCreate, kTemporary);
        job.failing(1, Op::kFsync, kTemporary, EIO);
        job.operation(1, Op::kUnlink, kTemporary);
        job.operation(1, Op::kCreate, kTemporary);
      },
      true);
  EXPECT_EQ(late_errors_honoured(evidence).outcome, Outcome::kFail);
}

// A checkpoint that is written in a temporary directory, whose rename publishes all of it.
Evidence saved_in_a_directory(bool anew) {
  JobBuilder job;
  job.evidence.subject.layout.temporary = {"*.part"};
  job.life("save 1");
  job.begin_save(1);
  job.operation(1, Op::kCreate, "step_1.part/shard-1");
  job.failing(1, Op::kFsync, "step_1.part/shard-1", EIO);
  if (anew) {
    job.operation(1, Op::kUnlink, "step_1.part/shard-1");
    job.operation(1, Op::kCreate, "step_1.part/shard-1");
  }
  job.operation(0, Op::kRename, "step_1.part", "step_1");
  job.end_save(1);
  job.end();
  return job.evidence;
}

TEST(LateErrorsTest, ARenamedDirectoryPublishesTheFileThatFailed) {
  EXPECT_EQ(late_errors_honoured(saved_in_a_directory(false)).outcome, Outcome::kFail);
  EXPECT_EQ(late_errors_honoured(saved_in_a_directory(true)).outcome, Outcome::kPass);
}

TEST(LateErrorsTest, ADirectoryFsyncMattersWhileNamesAreUnsynced) {
  const auto with_names = [](bool names) {
    return save_with(
        [names](JobBuilder& job) {
          job.write_files(1);
          if (names) job.publish(0, "step_1/marker");
          job.failing(0, Op::kFsyncdir, "step_1", EIO);
        },
        true);
  };
  EXPECT_EQ(late_errors_honoured(with_names(true)).outcome, Outcome::kFail);
  EXPECT_EQ(late_errors_honoured(with_names(false)).outcome, Outcome::kPass);
}

}  // namespace
}  // namespace savegate::harness
