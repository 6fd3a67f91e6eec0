#include "harness/oracles/publish_order.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using faults::Op;
using reports::Outcome;
using testing::HasSubstr;

// One save whose files are written by `write_files` instead of the sound way.
template <class WriteFiles>
Evidence saved_with(WriteFiles write_files) {
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  write_files(job);
  job.end_save(1);
  job.end();
  return job.evidence;
}

TEST(PublishOrderTest, ASoundJobPasses) {
  const auto verdict = publish_order(sound_job().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(PublishOrderTest, WithoutAClaimOfDurabilityItIsSkipped) {
  JobBuilder job = sound_job();
  job.evidence.subject.claims.durable = false;
  EXPECT_EQ(publish_order(job.evidence).outcome, Outcome::kSkip);
}

TEST(PublishOrderTest, AShardWithoutFsyncFails) {
  JobBuilder job = sound_job();
  std::erase_if(job.at(0).trace.records, [](const faults::TraceRecord& record) {
    return record.op == Op::kFsync && record.path == "step_1/shard-1.tmp";
  });
  const auto verdict = publish_order(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("step_1/shard-1: no fsync"));
}

TEST(PublishOrderTest, AWriteAfterTheFsyncFails) {
  const auto verdict = publish_order(saved_with([](JobBuilder& job) {
    job.operation(1, Op::kCreate, "step_1/shard-1.tmp");
    job.operation(1, Op::kFsync, "step_1/shard-1.tmp");
    job.write(1, "step_1/shard-1.tmp", 0, 10);
    job.operation(1, Op::kRename, "step_1/shard-1.tmp", "step_1/shard-1");
    job.sync_directory(1, "step_1");
    job.publish_marker(1);
    job.publish_pointer(1);
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
}

TEST(PublishOrderTest, AShardWrittenUnderItsFinalNameFails) {
  const auto verdict = publish_order(saved_with([](JobBuilder& job) {
    job.operation(1, Op::kCreate, "step_1/shard-1");
    job.write(1, "step_1/shard-1", 0, 10);
    job.operation(1, Op::kFsync, "step_1/shard-1");
    job.sync_directory(1, "step_1");
    job.publish_marker(1);
    job.publish_pointer(1);
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("under its final name"));
}

TEST(PublishOrderTest, NoDirectoryFsyncBeforeTheMarkerFails) {
  const auto verdict = publish_order(saved_with([](JobBuilder& job) {
    job.publish(1, "step_1/shard-1");
    job.publish_marker(1);
    job.publish_pointer(1);
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("no fsync of directory `step_1`"));
}

TEST(PublishOrderTest, APointerWhoseDirectoryIsNeverSyncedFails) {
  const auto verdict = publish_order(saved_with([](JobBuilder& job) {
    job.write_files(1);
    job.publish_marker(1);
    job.publish(0, "latest");
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
}

TEST(PublishOrderTest, ALinkAsPointerHasNoBytesToSync) {
  const auto verdict = publish_order(saved_with([](JobBuilder& job) {
    job.write_files(1);
    job.publish_marker(1);
    job.operation(0, faults::Op::kSymlink, "latest.tmp");
    job.operation(0, faults::Op::kRename, "latest.tmp", "latest");
    job.sync_directory(0, "");
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(PublishOrderTest, ARenamedDirectoryPublishesItsFiles) {
  const auto verdict = publish_order(saved_with([](JobBuilder& job) {
    for (const char* name : {"shard-0", "shard-1", "marker"}) {
      const std::string path = std::string("step_1.tmp/") + name;
      job.operation(0, Op::kCreate, path);
      job.write(0, path, 0, 10);
      job.operation(0, Op::kFsync, path);
    }
    job.sync_directory(0, "step_1.tmp");
    job.operation(0, Op::kRename, "step_1.tmp", "step_1");
    job.sync_directory(0, "");
    job.publish_pointer(1);
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(PublishOrderTest, NoPublicationIsSkipped) {
  JobBuilder job;
  job.life("save 1");
  job.end();
  EXPECT_EQ(publish_order(job.evidence).outcome, Outcome::kSkip);
}

TEST(MarkerLastTest, ASoundJobPasses) {
  const auto verdict = marker_last(sound_job().evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kPass) << verdict.summary;
}

TEST(MarkerLastTest, AMarkerBeforeAShardFails) {
  const auto verdict = marker_last(saved_with([](JobBuilder& job) {
    job.publish_marker(1);
    job.write_files(1);
    job.publish_pointer(1);
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("was not finished"));
}

TEST(MarkerLastTest, AMarkerOverAMissingShardFails) {
  const auto verdict = marker_last(saved_with([](JobBuilder& job) {
    job.publish(0, "step_1/shard-0");
    job.publish_marker(1);
    job.publish_pointer(1);
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("1 of 2 shards"));
}

TEST(MarkerLastTest, APointerBeforeTheMarkerFails) {
  const auto verdict = marker_last(saved_with([](JobBuilder& job) {
    job.write_files(1);
    job.publish_pointer(1);
    job.publish_marker(1);
  }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("before the marker"));
}

// A pointer's name tells of no step: its save's files are those that it vouches for.
TEST(MarkerLastTest, APointerBeforeAShardFailsWhereThereIsNoMarker) {
  Evidence evidence = saved_with([](JobBuilder& job) {
    job.publish_pointer(1);
    job.write_files(1);
  });
  evidence.subject.layout.marker.clear();
  EXPECT_EQ(marker_last(evidence).outcome, Outcome::kFail);
}

// One save, and what comes when all ranks have called it durable.
template <class Later>
Evidence saved_and_then(Later later) {
  JobBuilder job;
  job.life("save 1");
  job.begin_save(1);
  job.write_files(1);
  job.publish_marker(1);
  job.end_save(1);
  later(job);
  job.end();
  return job.evidence;
}

TEST(MarkerLastTest, APointerThatMovesAfterTheSaveWasCalledDurableFails) {
  const auto verdict = marker_last(saved_and_then([](JobBuilder& job) { job.publish_pointer(1); }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("latest was published after all ranks had called"));
}

TEST(MarkerLastTest, AShardThatComesAfterTheSaveWasCalledDurableFails) {
  const auto verdict =
      marker_last(saved_and_then([](JobBuilder& job) { job.publish(1, "step_1/shard-2"); }));
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.summary, HasSubstr("step_1/shard-2 was published after"));
}

TEST(MarkerLastTest, AWriteAfterTheSaveWasCalledDurableFailsButNotTheKernelsOfAMapping) {
  for (const bool by_kernel : {false, true}) {
    JobBuilder job;
    job.life("save 1");
    job.begin_save(1);
    job.operation(0, Op::kCreate, "step_1/shard-0");
    job.end_save(1);
    auto& late = job.write(0, "step_1/shard-0", 0, 10);
    if (by_kernel) late.caller = {};
    job.end();
    const auto verdict = marker_last(job.evidence);
    EXPECT_EQ(verdict.outcome == Outcome::kFail, !by_kernel) << verdict.summary;
  }
}

// As an archive of good checkpoints is made.
TEST(MarkerLastTest, AnotherNameForWhatTheSaveHadPublishedIsNotLate) {
  JobBuilder job = sound_job();
  job.operation(0, Op::kLink, "step_1/shard-0", "step_1/shard-0-kept");
  EXPECT_EQ(marker_last(job.evidence).outcome, Outcome::kPass);
}

TEST(MarkerLastTest, ALayoutWithoutMarkerAndPointerIsSkipped) {
  JobBuilder job = sound_job();
  job.evidence.subject.layout.marker.clear();
  job.evidence.subject.layout.pointer.clear();
  EXPECT_EQ(marker_last(job.evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
