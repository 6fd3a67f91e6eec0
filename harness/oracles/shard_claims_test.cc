#include "harness/oracles/shard_claims.h"

#include <gmock/gmock.h>

#include "harness/oracles/evidence_builder.h"

namespace savegate::harness {
namespace {

using reports::Outcome;
using testing::Contains;
using testing::HasSubstr;

Item slice(const std::string& name, std::uint64_t first, std::uint64_t rows, char digest) {
  Item item;
  item.name = name;
  item.kind = "parameter";
  item.scope = "shard";
  item.dtype = "f32";
  item.global_shape = {8, 2};
  item.local_shape = {rows, 2};
  item.offset = {first, 0};
  item.bytes = rows * 8;
  item.digest = std::string(32, digest);
  return item;
}

// One save of four ranks, each with the slice that is given for it.
JobBuilder job_with(const std::vector<Item>& slices) {
  JobBuilder job(4);
  job.life("save 1");
  job.update(1);
  job.begin_save(1);
  for (std::size_t rank = 0; rank < slices.size(); ++rank) {
    job.current().events[rank].events.back().items.push_back(slices[rank]);
  }
  job.end_save(1);
  job.end();
  return job;
}

TEST(DisjointSlicesTest, SlicesSideBySidePass) {
  const JobBuilder job = job_with(
      {slice("w", 0, 2, 'a'), slice("w", 2, 2, 'b'), slice("w", 4, 2, 'c'), slice("w", 6, 2, 'd')});
  EXPECT_EQ(disjoint_slices(job.evidence).outcome, Outcome::kPass);
}

// Expert parallel under sharding, the expert's rank left out of the key.
TEST(DisjointSlicesTest, TwoRanksWithOneKeyAndRangeFail) {
  const JobBuilder job = job_with({slice("expert", 0, 4, 'a'), slice("expert", 0, 4, 'b'),
                                   slice("expert", 4, 4, 'c'), slice("expert", 4, 4, 'd')});
  const auto verdict = disjoint_slices(job.evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFail);
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("rank 0 `expert` offset [0,0]")));
  EXPECT_THAT(verdict.evidence, Contains(HasSubstr("rank 2 `expert` offset [4,0]")));
}

TEST(DisjointSlicesTest, KeysThatCarryTheExpertsRankPass) {
  const JobBuilder job = job_with({slice("expert.0", 0, 4, 'a'), slice("expert.1", 0, 4, 'b'),
                                   slice("expert.0", 4, 4, 'c'), slice("expert.1", 4, 4, 'd')});
  EXPECT_EQ(disjoint_slices(job.evidence).outcome, Outcome::kPass);
}

TEST(DisjointSlicesTest, RangesThatOverlapInPartFail) {
  const JobBuilder job = job_with({slice("w", 0, 4, 'a'), slice("w", 3, 5, 'b')});
  EXPECT_EQ(disjoint_slices(job.evidence).outcome, Outcome::kFail);
}

TEST(DisjointSlicesTest, OneKeyForTwoShapesFails) {
  Item other = slice("w", 4, 4, 'b');
  other.global_shape = {16, 2};
  EXPECT_EQ(disjoint_slices(job_with({slice("w", 0, 4, 'a'), other}).evidence).outcome,
            Outcome::kFail);
}

// Sharding within a node, replicas across nodes.
TEST(DisjointSlicesTest, ASliceHeldTwiceWithTheSameBytesPasses) {
  const JobBuilder job = job_with(
      {slice("w", 0, 4, 'a'), slice("w", 4, 4, 'b'), slice("w", 0, 4, 'a'), slice("w", 4, 4, 'b')});
  EXPECT_EQ(disjoint_slices(job.evidence).outcome, Outcome::kPass);
}

TEST(DisjointSlicesTest, ACollisionOnDiskFailsThoughTheEventsHideIt) {
  JobBuilder job = job_with({});
  Checkpoint checkpoint;
  checkpoint.path = "step_1";
  checkpoint.step = 1;
  checkpoint.complete = true;
  checkpoint.items = {{0, slice("expert", 0, 4, 'a')}, {1, slice("expert", 0, 4, 'b')}};
  job.at(0).checkpoints.push_back(checkpoint);
  EXPECT_EQ(disjoint_slices(job.evidence).outcome, Outcome::kFail);
}

TEST(DisjointSlicesTest, WithoutSlicesItIsSkipped) {
  EXPECT_EQ(disjoint_slices(sound_job().evidence).outcome, Outcome::kSkip);
}

}  // namespace
}  // namespace savegate::harness
