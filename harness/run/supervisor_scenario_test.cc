#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "faults/fired.h"
#include "harness/run/files.h"
#include "harness/run/proc.h"
#include "harness/run/supervisor.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kNever = 600'000 * kMillisecond;

// Ranks are shell scripts; events and fired records are what they (or the test) write.
class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() {
    watch_.events_directory = directory_.path() + "/events";
    watch_.fired_path = directory_.path() + "/fired.jsonl";
    watch_.within_ns = kNever;
    watch_.no_progress_ns = kNever;
    EXPECT_TRUE(make_directories(watch_.events_directory));
    EXPECT_TRUE(write_file(watch_.fired_path, ""));
  }

  void add_rank(const std::string& script) {
    const int rank = static_cast<int>(ranks_.size());
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    UniqueFd output(ends[0]);
    const UniqueFd rank_end(ends[1]);
    ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
    SpawnRequest request;
    request.command = {"sh", "-c", script};
    request.environment =
        environment_with({"SAVEGATE_EVENTS=" + events_file(watch_.events_directory, rank),
                          "FIRED=" + watch_.fired_path});
    request.output = rank_end.get();
    auto process = Process::spawn(request);
    auto log = BoundedLog::create(log_path(rank), 64 * 1024);
    ASSERT_TRUE(process && log);
    ranks_.push_back(WatchedRank{.rank = rank,
                                 .process = std::move(*process),
                                 .output = std::move(output),
                                 .log = std::move(*log)});
  }

  std::string log_path(int rank) const {
    return directory_.path() + "/rank-" + std::to_string(rank) + ".log";
  }

  Supervision supervise() {
    Supervisor supervisor(watch_, std::move(ranks_));
    auto seen = supervisor.run();
    EXPECT_TRUE(seen) << seen.error().to_string();
    return seen ? *seen : Supervision{};
  }

  // As the daemon would write it, in a form that a shell can print.
  static std::string fired(int rank, const std::string& action, int error) {
    faults::FiredRecord record;
    record.time_ns = monotonic_ns();
    record.rule = "the rule";
    record.hit = 1;
    record.action = action;
    record.caller.rank = rank;
    record.op = faults::Op::kWrite;
    record.error = error;
    return "echo '" + faults::to_json_line(record) + "' >> $FIRED; ";
  }

  TestDirectory directory_;
  Watch watch_;
  std::vector<WatchedRank> ranks_;
};

TEST_F(SupervisorTest, RecordsHowEveryRankEnded) {
  add_rank("exit 0");
  add_rank("exit 3");
  add_rank("kill -9 $$");
  const Supervision seen = supervise();
  ASSERT_EQ(seen.ranks.size(), 3U);
  EXPECT_EQ(seen.ranks[0].exit_status, 0);
  EXPECT_EQ(seen.ranks[1].exit_status, 3);
  EXPECT_EQ(seen.ranks[2].signal, SIGKILL);
  EXPECT_EQ(seen.ranks[2].ended_by, "");
  EXPECT_GE(seen.ranks[1].ended_ns, seen.ranks[1].started_ns);
  EXPECT_EQ(seen.hung, "");
  EXPECT_TRUE(seen.stray.empty());
}

TEST_F(SupervisorTest, KeepsOutputAndCountsIt) {
  add_rank("echo to stdout; echo to stderr >&2");
  const Supervision seen = supervise();
  EXPECT_EQ(read_file(log_path(0)).value_or(""), "to stdout\nto stderr\n");
  EXPECT_EQ(seen.ranks.at(0).log_bytes, 20U);
  EXPECT_EQ(seen.ranks.at(0).log_dropped, 0U);
}

TEST_F(SupervisorTest, AFloodIsBoundedAndSaidSo) {
  add_rank("head -c 1000000 /dev/zero");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.ranks.at(0).log_bytes, 1'000'000U);
  EXPECT_EQ(seen.ranks.at(0).log_dropped, 1'000'000U - 64 * 1024);
  EXPECT_THAT(read_file(log_path(0)).value_or(""), HasSubstr("bytes left out here"));
}

TEST_F(SupervisorTest, AJobWithoutProgressIsHungAndItsRanksSayWhereTheyWait) {
  watch_.no_progress_ns = 100 * kMillisecond;
  add_rank("exec sleep 1000");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "no progress for 0.1 s");
  EXPECT_EQ(seen.ranks.at(0).signal, SIGKILL);
  EXPECT_THAT(seen.ranks.at(0).ended_by, StartsWith("runner: no progress for 0.1 s, gone "));
  EXPECT_THAT(seen.ranks.at(0).waiting_in, StartsWith("state S"));
}

// What imports for long may have shown nothing but its warnings yet, and is not hung.
TEST_F(SupervisorTest, AJobThatStartsHasLongerUntilItSaysMoreThanHello) {
  watch_.no_progress_ns = 100 * kMillisecond;
  watch_.start_ns = kNever;
  add_rank(
      "echo a warning; echo '{\"event\":\"hello\"}' >> $SAVEGATE_EVENTS; sleep 0.5; "
      "echo '{\"event\":\"update\"}' >> $SAVEGATE_EVENTS; exec sleep 1000");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "no progress for 0.1 s");
  const auto said = read_file(events_file(watch_.events_directory, 0));
  EXPECT_THAT(said.value_or(""), HasSubstr("update"));
}

// Output is progress: such a job ends by itself although it lasts longer than the deadline.
TEST_F(SupervisorTest, OutputIsProgress) {
  watch_.no_progress_ns = 400 * kMillisecond;
  add_rank("for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "");
  EXPECT_EQ(seen.ranks.at(0).exit_status, 0);
}

TEST_F(SupervisorTest, AFloodIsNoProgress) {
  watch_.no_progress_ns = 100 * kMillisecond;
  add_rank("yes & kill -STOP $$");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "no progress for 0.1 s");
  EXPECT_EQ(seen.ranks.at(0).signal, SIGKILL);
  EXPECT_TRUE(seen.stray.empty());
}

TEST_F(SupervisorTest, FileOperationsAreProgress) {
  watch_.no_progress_ns = 400 * kMillisecond;
  std::uint64_t operations = 0;
  watch_.operations = [&operations] { return std::optional(++operations); };
  add_rank("sleep 1");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "");
  EXPECT_GT(operations, 0U);
}

// The deadline of failing together counts from the first rank that goes.
TEST_F(SupervisorTest, RanksThatStayAfterAFailureAreEnded) {
  watch_.within_ns = 100 * kMillisecond;
  add_rank("exit 1");
  add_rank("exec sleep 1000");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "0.1 s after the first failure");
  EXPECT_GT(seen.first_failure_ns, 0U);
  EXPECT_EQ(seen.ranks.at(0).exit_status, 1);
  EXPECT_EQ(seen.ranks.at(0).ended_by, "");
  EXPECT_THAT(seen.ranks.at(1).ended_by, StartsWith("runner: 0.1 s after the first failure"));
}

TEST_F(SupervisorTest, AFaultStartsTheDeadlineWhereItIsToFailTheSave) {
  watch_.within_ns = 100 * kMillisecond;
  add_rank(fired(0, "errno ENOSPC", ENOSPC) + "exec sleep 1000");
  EXPECT_EQ(supervise().hung, "0.1 s after the first failure");
}

TEST_F(SupervisorTest, AFaultThatIsToBeRiddenOutStartsNoDeadline) {
  watch_.within_ns = 0;
  watch_.fault_is_failure = false;
  add_rank(fired(0, "errno EINTR", EINTR) + "sleep 0.1");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "");
  EXPECT_GT(seen.first_failure_ns, 0U);
}

TEST_F(SupervisorTest, AReportedFailureStartsTheDeadline) {
  watch_.within_ns = 100 * kMillisecond;
  add_rank(
      "echo "
      "'{\"event\":\"save_end\",\"time_ns\":1000,\"rank\":0,\"step\":2,\"save\":2,\"ok\":false}' "
      ">> $SAVEGATE_EVENTS; exec sleep 1000");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "0.1 s after the first failure");
}

TEST_F(SupervisorTest, AKillByARuleIsToldFromOthers) {
  add_rank(fired(0, "kill SIGKILL before rank", 0) + "kill -9 $$");
  add_rank("kill -9 $$");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.ranks.at(0).ended_by, "rule");
  EXPECT_EQ(seen.ranks.at(1).ended_by, "");
}

TEST_F(SupervisorTest, AHeldRankIsEndedOnceTheOthersLeft) {
  watch_.expects_held = true;
  add_rank(fired(0, "hang", 0) + "exec sleep 1000");
  add_rank("exit 1");
  const Supervision seen = supervise();
  EXPECT_EQ(seen.hung, "");
  EXPECT_EQ(seen.ranks.at(0).signal, SIGKILL);
  EXPECT_THAT(seen.ranks.at(0).ended_by, StartsWith("runner: held by rule the rule, gone "));
}

TEST_F(SupervisorTest, WhatARankLeavesBehindIsNamedAndEnded) {
  const std::string pid_file = directory_.path() + "/pid";
  add_rank("setsid sleep 1000 & echo $! > " + pid_file + "; exit 0");
  const Supervision seen = supervise();
  ASSERT_EQ(seen.stray.size(), 1U);
  EXPECT_THAT(seen.stray.at(0), HasSubstr("(sleep)"));
  const pid_t pid = std::stoi(read_file(pid_file).value_or("0"));
  const auto status = read_proc_status(pid);
  EXPECT_TRUE(!status || status->state == 'Z') << "still there: " << status->state;
}

TEST_F(SupervisorTest, TheDeathOfTheDaemonIsAFailure) {
  SpawnRequest request;
  request.command = {"true"};
  auto daemon = Process::spawn(request);
  ASSERT_TRUE(daemon);
  watch_.daemon_pidfd = daemon->pidfd();
  watch_.within_ns = 100 * kMillisecond;
  add_rank("exec sleep 1000");
  const Supervision seen = supervise();
  EXPECT_TRUE(seen.daemon_died);
  EXPECT_EQ(seen.hung, "0.1 s after the first failure");
  daemon->wait_for(kNever);
}

TEST_F(SupervisorTest, ProgressIsReported) {
  std::vector<LifeProgress> reports;
  watch_.progress = [&reports](const LifeProgress& progress) { reports.push_back(progress); };
  add_rank("echo; sleep 0.3; echo");
  supervise();
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.at(0).ranks.size(), 1U);
}

}  // namespace
}  // namespace savegate::harness
