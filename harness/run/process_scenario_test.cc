#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "harness/run/files.h"
#include "harness/run/proc.h"
#include "harness/run/process.h"
#include "harness/run/test_directory.h"

namespace savegate::harness {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kLong = 60'000'000'000;

Result<Process> shell(const std::string& script, int output = -1) {
  SpawnRequest request;
  request.command = {"sh", "-c", script};
  request.environment = environment_with({});
  request.output = output;
  return Process::spawn(request);
}

TEST(ProcessTest, GivesTheExitStatus) {
  auto process = shell("exit 7");
  ASSERT_TRUE(process);
  const auto status = process->wait_for(kLong);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 7);
  EXPECT_FALSE(status->signal);
}

TEST(ProcessTest, GivesTheSignalThatEndedIt) {
  auto process = shell("kill -TERM $$");
  ASSERT_TRUE(process);
  const auto status = process->wait_for(kLong);
  ASSERT_TRUE(status);
  EXPECT_EQ(status->signal, SIGTERM);
  EXPECT_FALSE(status->code);
}

TEST(ProcessTest, StandsInASessionOfItsOwnAndIsKnownByItsStartTime) {
  auto process = shell("exec sleep 1000");
  ASSERT_TRUE(process);
  const auto status = read_proc_status(process->pid());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->session, process->pid());
  EXPECT_EQ(read_start_ticks(process->pid()), process->start_ticks());
  EXPECT_GT(process->start_ticks(), 0U);
  process->kill_group(SIGKILL);
  EXPECT_EQ(process->wait_for(kLong)->signal, SIGKILL);
}

// A rank must not wait for a terminal, and both of its streams are one log.
TEST(ProcessTest, ReadsNothingAndWritesBothStreamsToTheOutput) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/out";
  const UniqueFd out(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  auto process = shell("cat; echo out; echo err >&2", out.get());
  ASSERT_TRUE(process);
  ASSERT_TRUE(process->wait_for(kLong));
  EXPECT_EQ(read_file(path).value_or(""), "out\nerr\n");
}

TEST(ProcessTest, AMissingProgramIsUnavailableAndNamed) {
  SpawnRequest request;
  request.command = {"no-such-program-anywhere"};
  const auto process = Process::spawn(request);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, Code::kUnavailable);
  EXPECT_THAT(process.error().to_string(), HasSubstr("no-such-program-anywhere"));
}

TEST(ProcessTest, AnUnusableInterpreterIsUnavailable) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/script";
  ASSERT_TRUE(write_file(path, "#!/no/such/interpreter\n"));
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  SpawnRequest request;
  request.command = {path};
  const auto process = Process::spawn(request);
  ASSERT_FALSE(process);
  EXPECT_EQ(process.error().code, Code::kUnavailable);
}

TEST(ProcessTest, ChangedVariablesReplaceInheritedOnes) {
  ASSERT_EQ(::setenv("SAVEGATE_TEST_VARIABLE", "old", 1), 0);
  const auto environment = environment_with({"SAVEGATE_TEST_VARIABLE=new"});
  ::unsetenv("SAVEGATE_TEST_VARIABLE");
  EXPECT_THAT(environment, ::testing::Contains("SAVEGATE_TEST_VARIABLE=new"));
  EXPECT_THAT(environment, ::testing::Not(::testing::Contains("SAVEGATE_TEST_VARIABLE=old")));
}

}  // namespace
}  // namespace savegate::harness
