#include "faults/trace.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace savegate::faults {
namespace {

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() {
    std::string name = (std::filesystem::temp_directory_path() / "trace_test.XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ + "/trace.bin";
  }
  ~TraceTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
  std::string path_;
};

TraceRecord example(std::uint64_t n) {
  TraceRecord record;
  record.begin_seq = 2 * n + 1;
  record.end_seq = 2 * n + 2;
  record.begin_ns = 100 * n;
  record.end_ns = 100 * n + 50;
  record.op = n % 2 == 0 ? Op::kWrite : Op::kRename;
  record.caller = {
      .rank = static_cast<int>(n % 4) - 1, .relation = Relation::kChild, .pid = 4711, .tid = 4712};
  record.path = "step_2/shard-" + std::to_string(n % 3);
  record.path2 = n % 2 == 0 ? "" : "latest";
  record.phase = "save 2/commit";
  record.attempt = 1;
  record.file = 77 + n;
  record.offset = n << 40;
  record.requested = 4096;
  record.returned = 4095;
  record.effective = 4094;
  record.error = n % 2 == 0 ? 0 : EXDEV;
  record.flags = 0x8042;
  record.faulted = n % 3 == 0;
  return record;
}

void expect_equal(const TraceRecord& a, const TraceRecord& b) {
  EXPECT_EQ(a.begin_seq, b.begin_seq);
  EXPECT_EQ(a.end_seq, b.end_seq);
  EXPECT_EQ(a.begin_ns, b.begin_ns);
  EXPECT_EQ(a.end_ns, b.end_ns);
  EXPECT_EQ(a.op, b.op);
  EXPECT_EQ(a.caller.rank, b.caller.rank);
  EXPECT_EQ(a.caller.relation, b.caller.relation);
  EXPECT_EQ(a.caller.pid, b.caller.pid);
  EXPECT_EQ(a.caller.tid, b.caller.tid);
  EXPECT_EQ(a.path, b.path);
  EXPECT_EQ(a.path2, b.path2);
  EXPECT_EQ(a.phase, b.phase);
  EXPECT_EQ(a.attempt, b.attempt);
  EXPECT_EQ(a.file, b.file);
  EXPECT_EQ(a.offset, b.offset);
  EXPECT_EQ(a.requested, b.requested);
  EXPECT_EQ(a.returned, b.returned);
  EXPECT_EQ(a.effective, b.effective);
  EXPECT_EQ(a.error, b.error);
  EXPECT_EQ(a.flags, b.flags);
  EXPECT_EQ(a.faulted, b.faulted);
}

TEST_F(TraceTest, ReadsBackWhatItWrote) {
  {
    auto writer = TraceWriter::create(path_).value();
    for (std::uint64_t n = 0; n < 10; ++n) writer->append(example(n));
  }
  const Trace trace = read_trace(path_).value();
  EXPECT_FALSE(trace.cut);
  ASSERT_EQ(trace.records.size(), 10U);
  for (std::uint64_t n = 0; n < 10; ++n) expect_equal(trace.records[n], example(n));
}

TEST_F(TraceTest, FlushBringsEveryRecordToTheFile) {
  auto writer = TraceWriter::create(path_).value();
  for (std::uint64_t n = 0; n < 3; ++n) {
    writer->append(example(n));
    ASSERT_TRUE(writer->flush());
    EXPECT_EQ(read_trace(path_)->records.size(), n + 1);
  }
}

TEST_F(TraceTest, CutAnywhereReadsUpToTheLastWholeRecord) {
  std::vector<std::uintmax_t> whole;  // sizes at which all is whole
  {
    auto writer = TraceWriter::create(path_).value();
    whole.push_back(std::filesystem::file_size(path_));
    for (std::uint64_t n = 0; n < 4; ++n) {
      writer->append(example(n));
      ASSERT_TRUE(writer->flush());
      whole.push_back(std::filesystem::file_size(path_));
    }
  }
  for (std::uintmax_t size = whole.back(); size-- > 0;) {
    std::filesystem::resize_file(path_, size);
    auto trace = read_trace(path_);
    ASSERT_TRUE(trace) << trace.error().to_string();
    std::size_t records = 0;
    while (records + 1 < whole.size() && whole[records + 1] <= size) ++records;
    EXPECT_EQ(trace->records.size(), records) << size;
    if (size == whole[records] || size < whole[0]) {
      EXPECT_EQ(trace->cut, size < whole[0]) << size;
    }
  }
}

TEST_F(TraceTest, DamageIsAnErrorAndNoCut) {
  {
    auto writer = TraceWriter::create(path_).value();
    writer->append(example(0));
  }
  std::ofstream(path_, std::ios::app | std::ios::binary) << "garbage";
  auto trace = read_trace(path_);
  ASSERT_FALSE(trace);
  EXPECT_EQ(trace.error().offset, std::filesystem::file_size(path_) - 7);
  std::ofstream(path_, std::ios::binary) << "SGTRACE\x09";
  EXPECT_FALSE(read_trace(path_));
}

TEST_F(TraceTest, NeverOverwritesATrace) {
  std::ofstream(path_) << "kept";
  auto writer = TraceWriter::create(path_);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().error, EEXIST);
}

// A trace that lost records must not pass for a whole one.
TEST_F(TraceTest, FailedWriteIsToldByFlush) {
  auto writer = TraceWriter::create(path_).value();
  ASSERT_TRUE(writer->flush());
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = before;
  small.rlim_cur = 64;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  writer->append(example(0));
  auto flushed = writer->flush();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().error, EFBIG);
  EXPECT_FALSE(writer->flush());
  EXPECT_TRUE(read_trace(path_)->cut);
}

TEST_F(TraceTest, ThreadsTickAndAppendTogether) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  {
    auto writer = TraceWriter::create(path_).value();
    std::vector<std::thread> threads;
    threads.reserve(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&writer, t] {
        for (int i = 0; i < kEach; ++i) {
          TraceRecord record = example(static_cast<std::uint64_t>(t));
          record.begin_seq = writer->tick();
          record.end_seq = writer->tick();
          writer->append(record);
          if (i % 100 == 0) {
            EXPECT_TRUE(writer->flush());
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const Trace trace = read_trace(path_).value();
  ASSERT_EQ(trace.records.size(), static_cast<std::size_t>(kThreads * kEach));
  for (std::size_t i = 1; i < trace.records.size(); ++i) {
    EXPECT_LT(trace.records[i - 1].end_seq, trace.records[i].end_seq);
  }
}

}  // namespace
}  // namespace savegate::faults
