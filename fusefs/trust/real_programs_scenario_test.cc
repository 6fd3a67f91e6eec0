// Programs that people trust their data to behave on a mount as on the directory below it.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "fusefs/trust/mounted_daemon.h"

namespace savegate::fusefs {
namespace {

struct Ran {
  int status = -1;
  std::string output;
};

// Through a shell; output and error together.
Ran run(const std::string& command) {
  Ran ran;
  FILE* pipe = popen(("exec 2>&1; set -e; " + command).c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  for (std::size_t got; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    ran.output.append(buffer, got);
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

// A failed expectation shows the end of what the program said.
testing::AssertionResult succeeds(const std::string& command) {
  const Ran ran = run(command);
  if (ran.status == 0) return testing::AssertionSuccess();
  const std::size_t from = ran.output.size() > 4000 ? ran.output.size() - 4000 : 0;
  return testing::AssertionFailure() << command << "\nexit status " << ran.status << "\n"
                                     << ran.output.substr(from);
}

bool installed(const std::string& program) { return run("command -v " + program).status == 0; }

class RealProgramsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!daemon_.available()) GTEST_SKIP() << daemon_.why_not();
  }
  MountedDaemon daemon_;
};

TEST_F(RealProgramsTest, GitClonesAndFindsNoFault) {
  if (!installed("git")) GTEST_SKIP() << "git is not installed";
  const std::string mount = daemon_.mount();
  EXPECT_TRUE(
      succeeds(fmt::format("git clone -q --no-hardlinks {} {}/clone", SAVEGATE_SOURCE_DIR, mount)));
  EXPECT_TRUE(succeeds(fmt::format("git -C {}/clone fsck --full --strict", mount)));
  EXPECT_TRUE(
      succeeds(fmt::format("git -C {}/clone status --porcelain | wc -l | grep -qx 0", mount)));
  EXPECT_TRUE(succeeds(fmt::format(
      "git -C {}/clone gc -q --prune=now && git -C {}/clone fsck --full", mount, mount)));
}

TEST_F(RealProgramsTest, TarUnpacksTheSameTree) {
  EXPECT_TRUE(
      succeeds(fmt::format("tar -C /usr -cf - include | tar -C {} -xpf -", daemon_.mount())));
  EXPECT_TRUE(
      succeeds(fmt::format("diff -r --no-dereference /usr/include {}/include", daemon_.mount())));
  EXPECT_TRUE(
      succeeds(fmt::format("diff -r --no-dereference /usr/include {}/include", daemon_.backing())));
}

TEST_F(RealProgramsTest, SqliteKeepsItsIntegrityUnderLoad) {
  if (!installed("sqlite3")) GTEST_SKIP() << "sqlite3 is not installed";
  const std::string base = daemon_.mount() + "/data.db";
  EXPECT_TRUE(
      succeeds(fmt::format("sqlite3 {} 'create table t(id integer primary key, v text);'", base)));
  // Four writers at once in each journal mode; the busy time-out makes them queue on the locks.
  for (const char* mode : {"delete", "wal", "truncate"}) {
    EXPECT_TRUE(succeeds(fmt::format("sqlite3 {} 'pragma journal_mode={};'", base, mode)));
    EXPECT_TRUE(
        succeeds(fmt::format("for w in 1 2 3 4; do (for i in $(seq 25); do echo \"insert into t(v) "
                             "values(hex(randomblob(2000)));\"; done "
                             "| sqlite3 -cmd '.timeout 60000' {}) & pids=\"$pids $!\"; done; for p "
                             "in $pids; do wait $p; done",
                             base)));
  }
  EXPECT_TRUE(succeeds(fmt::format("sqlite3 {} 'select count(*) from t;' | grep -qx 300", base)));
  EXPECT_TRUE(succeeds(fmt::format("sqlite3 {} 'pragma integrity_check;' | grep -qx ok", base)));
}

class FioTest : public RealProgramsTest, public testing::WithParamInterface<const char*> {};

TEST_P(FioTest, VerifiesWhatItWrote) {
  if (!installed("fio")) GTEST_SKIP() << "fio is not installed";
  // O_DIRECT where the engine does asynchronous I/O for it alone.
  const bool direct = std::string(GetParam()) == "libaio" || std::string(GetParam()) == "io_uring";
  EXPECT_TRUE(succeeds(fmt::format(
      "fio --name=verify --directory={} --ioengine={} --direct={} --rw=randwrite --bsrange=4k-256k "
      "--bs_unaligned=0 --size=32m --numjobs=2 --iodepth=8 --verify=crc32c --do_verify=1 "
      "--verify_fatal=1 --verify_state_save=0 --randseed=1 --group_reporting --output-format=terse",
      daemon_.mount(), GetParam(), direct ? 1 : 0)));
}

INSTANTIATE_TEST_SUITE_P(Engines, FioTest, testing::Values("psync", "libaio", "mmap", "io_uring"),
                         [](const auto& engine) { return std::string(engine.param); });

std::uint64_t size_of(const std::string& path) {
  struct stat stat {};
  return ::stat(path.c_str(), &stat) == 0 ? static_cast<std::uint64_t>(stat.st_size) : 0;
}

// The write that meets the limit goes partly in, to the last block, and df tells the same story.
TEST(BudgetOnTheMountTest, DdEndsAtTheVeryByte) {
  constexpr std::uint64_t kLimit = (10 << 20) + 4096 * 3;
  MountedDaemon daemon(fmt::format("[[budget]]\nname = \"disk\"\nlimit = {}\n", kLimit));
  if (!daemon.available()) GTEST_SKIP() << daemon.why_not();
  const Ran dd = run(fmt::format("dd if=/dev/zero of={}/file bs=1M count=64", daemon.mount()));
  EXPECT_NE(dd.status, 0);
  EXPECT_NE(dd.output.find("No space left on device"), std::string::npos) << dd.output;
  EXPECT_EQ(size_of(daemon.mount() + "/file"), kLimit);
  EXPECT_EQ(size_of(daemon.backing() + "/file"), kLimit);
  EXPECT_TRUE(succeeds(
      fmt::format("df --output=avail -B1 {} | tail -1 | tr -d ' ' | grep -qx 0", daemon.mount())));
  EXPECT_TRUE(succeeds(fmt::format("df --output=size -B1 {} | tail -1 | tr -d ' ' | grep -qx {}",
                                   daemon.mount(), kLimit)));

  ASSERT_EQ(truncate((daemon.mount() + "/file").c_str(), 1 << 20), 0);
  EXPECT_TRUE(succeeds(fmt::format("df --output=avail -B1 {} | tail -1 | tr -d ' ' | grep -qx {}",
                                   daemon.mount(), kLimit - (1 << 20))));
}

}  // namespace
}  // namespace savegate::fusefs
