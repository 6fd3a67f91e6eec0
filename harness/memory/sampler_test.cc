#include "harness/memory/sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "harness/run/files.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

TEST(PhaseEndTest, EventsThatEndAPhaseAreTold) {
  const auto end = phase_ended_by(R"({"event":"durable","time_ns":1,"rank":0,"step":3,"ok":true})");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->phase, "save");
  EXPECT_EQ(end->step, 3);
}

TEST(PhaseEndTest, AnItemThatIsCalledAsAKeyIsNoKey) {
  const auto end = phase_ended_by(R"({"event":"durable","items":[{"name":"step"}],"step":4})");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->step, 4);
}

// As Python's json module writes it.
TEST(PhaseEndTest, BlanksBehindColonsAreRead) {
  const auto end = phase_ended_by(R"({"event": "update", "step": 12})");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->step, 12);
}

TEST(PhaseEndTest, AFreshStartHasNoStep) {
  const auto end = phase_ended_by(R"({"event":"resumed","step":null,"ok":true})");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->phase, "load");
  EXPECT_EQ(end->step, std::nullopt);
}

TEST(PhaseEndTest, OtherLinesEndNone) {
  for (const char* line : {R"({"event":"done"})", R"({"event":)", R"({"event")", "", "durable"}) {
    EXPECT_FALSE(phase_ended_by(line)) << line;
  }
}

class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() : sampler_(MemorySampler::create(path())) {}
  std::string path() const { return directory_.path() + "/memory.jsonl"; }
  // But for those of the ranks' ends.
  std::vector<MemoryRecord> records() {
    auto all = all_records();
    std::erase_if(all, [](const MemoryRecord& record) { return record.phase == kRankEnd; });
    return all;
  }
  std::vector<MemoryRecord> all_records() {
    EXPECT_TRUE(sampler_->finish());
    std::istringstream in(read_file(path()).value_or(""));
    std::vector<MemoryRecord> all;
    for (std::string line; std::getline(in, line);) {
      auto record = parse_memory_record(line);
      EXPECT_TRUE(record) << line;
      if (record) all.push_back(std::move(*record));
    }
    return all;
  }
  TestDirectory directory_;
  Result<MemorySampler> sampler_;
};

constexpr const char* kUpdate = R"({"event":"update","step":1})";

TEST_F(SamplerTest, APhaseIsRecordedWithWhatTheProcessHolds) {
  sampler_->watch(0, ::getpid());
  sampler_->on_event_line(0, kUpdate);
  sampler_->run(monotonic_ns());
  const auto all = records();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].phase, "update");
  EXPECT_EQ(all[0].step, 1);
  EXPECT_EQ(all[0].pid, ::getpid());
  EXPECT_FALSE(all[0].node.empty());
  EXPECT_GT(fact_of(all[0].facts, "pss_anon").value_or(0), 0U);
  EXPECT_GT(fact_of(all[0].facts, "open_files").value_or(0), 0U);
}

// A large process must not be walked again and again.
TEST_F(SamplerTest, PhasesThatFollowAtOnceShareAMeasurement) {
  sampler_->watch(0, ::getpid());
  sampler_->on_event_line(0, kUpdate);
  const std::uint64_t first_ns = monotonic_ns();
  sampler_->run(first_ns);
  sampler_->on_event_line(0, R"({"event":"export","step":1})");
  sampler_->on_event_line(0, R"({"event":"save_begin","step":1})");
  EXPECT_GT(sampler_->next_ns(), first_ns);
  sampler_->run(sampler_->next_ns());
  const auto all = records();
  ASSERT_EQ(all.size(), 3U);
  EXPECT_LT(all[0].time_ns, all[1].time_ns);
  EXPECT_EQ(all[1].time_ns, all[2].time_ns);
}

TEST_F(SamplerTest, ARankThatHasEndedIsRecordedAsNotObtained) {
  sampler_->watch(0, 1 << 30);
  sampler_->on_event_line(0, kUpdate);
  sampler_->ended(0);
  const auto all = records();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].facts.empty());
  EXPECT_FALSE(all[0].missing.empty());
}

TEST_F(SamplerTest, TheKernelsKillsAreThoseSinceTheRankBegan) {
  if (!memory_cgroup_of(::getpid())) GTEST_SKIP() << "no memory controller is mounted";
  sampler_->watch(0, ::getpid());
  sampler_->ended(0);
  const auto all = all_records();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].phase, kRankEnd);
  EXPECT_EQ(fact_of(all[0].facts, "cgroup_oom_kills"), 0U);
}

// A launcher's ranks are known from what they say.
TEST_F(SamplerTest, ARankIsWatchedFromItsHelloOn) {
  sampler_->on_event_line(1, R"({"event":"hello","pid":)" + std::to_string(::getpid()) + "}");
  sampler_->on_event_line(1, kUpdate);
  sampler_->run(monotonic_ns());
  const auto all = records();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].rank, 1);
  EXPECT_TRUE(all[0].missing.empty());
}

}  // namespace
}  // namespace savegate::harness
