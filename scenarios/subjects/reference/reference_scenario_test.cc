// Real ranks in real processes: saves, resumes, failures, on a plain directory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace savegate::reference {
namespace {

using nlohmann::json;

struct Launch {
  int life = 1;
  int until = 1;
  std::vector<std::string> arguments;
  int small_rank = -1;  // this rank may write no file beyond 64 KiB
};

class ReferenceTest : public testing::TestWithParam<int> {
 protected:
  ReferenceTest() {
    std::string pattern = testing::TempDir() + "/reference-XXXXXX";
    base_ = ::mkdtemp(pattern.data());
    std::filesystem::create_directory(root());
  }
  ~ReferenceTest() override { std::filesystem::remove_all(base_); }

  int world() const { return GetParam(); }
  std::string root() const { return base_ + "/checkpoints"; }

  [[noreturn]] void become_rank(int rank, const Launch& launch, const std::string& meeting) {
    const std::string events = base_ + "/" + event_name(launch.life, rank);
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(world()).c_str(), 1);
    ::setenv("SAVEGATE_DIR", root().c_str(), 1);
    ::setenv("SAVEGATE_EVENTS", events.c_str(), 1);
    ::setenv("SAVEGATE_LIFE", std::to_string(launch.life).c_str(), 1);
    ::setenv("SAVEGATE_UNTIL", ("save " + std::to_string(launch.until)).c_str(), 1);
    ::setenv("SAVEGATE_RENDEZVOUS", meeting.c_str(), 1);
    if (rank == launch.small_rank) {
      const rlimit limit{65536, 65536};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::signal(SIGXFSZ, SIG_IGN);
    }
    const std::string program = std::string(SAVEGATE_BIN_DIR) + "/savegate-reference";
    std::vector<std::string> words = {program, "--state", "1MiB", "--collective-timeout", "60"};
    words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    ::execv(pointers[0], pointers.data());
    ::_exit(127);
  }

  // The exit statuses, in rank order.
  std::vector<int> run(const Launch& launch) {
    const std::string meeting = base_ + "/meeting-" + std::to_string(launch.life);
    std::filesystem::create_directory(meeting);
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < world(); ++rank) {
      const pid_t pid = ::fork();
      if (pid == 0) become_rank(rank, launch, meeting);
      ranks.push_back(pid);
    }
    std::vector<int> statuses;
    for (pid_t pid : ranks) {
      int status = 0;
      ::waitpid(pid, &status, 0);
      statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    }
    return statuses;
  }
  std::vector<int> all(int status) const {
    return std::vector<int>(static_cast<std::size_t>(world()), status);
  }

  static std::string event_name(int life, int rank) {
    return "life-" + std::to_string(life) + "-rank-" + std::to_string(rank) + ".jsonl";
  }
  // The first event of its kind at `step`; null if there is none.
  json event(int life, int rank, const std::string& kind, int step) const {
    std::ifstream file(base_ + "/" + event_name(life, rank));
    for (std::string line; std::getline(file, line);) {
      json parsed = json::parse(line);
      if (parsed["event"] != kind) continue;
      if (!parsed.contains("step") || parsed["step"].is_null() || parsed["step"] == step) {
        return parsed;
      }
    }
    return nullptr;
  }

  std::string base_;
};

INSTANTIATE_TEST_SUITE_P(Worlds, ReferenceTest, testing::Values(2, 4));

TEST_P(ReferenceTest, NewProcessesRestoreWhatEveryRankSaved) {
  ASSERT_EQ(run({.life = 1, .until = 2, .arguments = {}}), all(0));
  ASSERT_EQ(run({.life = 2, .until = 3, .arguments = {}}), all(0));
  for (int rank = 0; rank < world(); ++rank) {
    const json saved = event(1, rank, "save_begin", 2);
    const json resumed = event(2, rank, "resumed", 2);
    EXPECT_EQ(resumed["step"], 2);
    EXPECT_EQ(resumed["path"], "step_00000002");
    EXPECT_EQ(resumed["items"], saved["items"]);
    EXPECT_FALSE(saved["items"].empty());
    EXPECT_EQ(event(2, rank, "update", 3)["changed"], true);
    EXPECT_FALSE(event(2, rank, "done", 0).is_null());
  }
}

TEST_P(ReferenceTest, NewProcessesRestoreWhatWasSavedWhileTrainingWentOn) {
  ASSERT_EQ(run({.life = 1, .until = 3, .arguments = {"--async"}}), all(0));
  ASSERT_EQ(run({.life = 2, .until = 4, .arguments = {"--async"}}), all(0));
  for (int rank = 0; rank < world(); ++rank) {
    const json resumed = event(2, rank, "resumed", 3);
    EXPECT_EQ(resumed["step"], 3);
    EXPECT_EQ(resumed["items"], event(1, rank, "save_begin", 3)["items"]);
    EXPECT_EQ(event(1, rank, "durable", 3)["ok"], true);
  }
}

// C1: the failure comes after the call has returned, on one rank.
TEST_P(ReferenceTest, AnAsynchronousSaveThatFailsOnOneRankFailsEveryRank) {
  EXPECT_EQ(run({.life = 1, .until = 2, .arguments = {"--async"}, .small_rank = 1}), all(1));
  for (int rank = 0; rank < world(); ++rank) {
    EXPECT_EQ(event(1, rank, "save_end", 1)["ok"], true);
    const json durable = event(1, rank, "durable", 1);
    EXPECT_EQ(durable["ok"], false);
    EXPECT_EQ(durable["error"], event(1, 0, "durable", 1)["error"]);
    EXPECT_TRUE(event(1, rank, "save_begin", 2).is_null());
  }
}

TEST_P(ReferenceTest, AResumedRunEqualsAnUninterruptedOne) {
  ASSERT_EQ(run({.life = 1, .until = 4, .arguments = {}}), all(0));
  std::vector<json> straight;
  straight.reserve(static_cast<std::size_t>(world()));
  for (int rank = 0; rank < world(); ++rank) straight.push_back(event(1, rank, "save_begin", 4));
  std::filesystem::remove_all(root());
  std::filesystem::create_directory(root());
  std::filesystem::remove_all(base_ + "/meeting-1");
  for (int rank = 0; rank < world(); ++rank) {
    std::filesystem::remove(base_ + "/" + event_name(1, rank));
  }
  ASSERT_EQ(run({.life = 1, .until = 2, .arguments = {}}), all(0));
  ASSERT_EQ(run({.life = 2, .until = 3, .arguments = {}}), all(0));
  ASSERT_EQ(run({.life = 3, .until = 4, .arguments = {}}), all(0));
  for (int rank = 0; rank < world(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    EXPECT_EQ(event(3, rank, "save_begin", 4)["items"], straight[at]["items"]);
  }
}

// C1, F7: one rank meets its limit, and every rank leaves with the very same first error.
TEST_P(ReferenceTest, AWriteThatFailsOnOneRankFailsEveryRank) {
  EXPECT_EQ(run({.life = 1, .until = 1, .arguments = {}, .small_rank = 1}), all(1));
  for (int rank = 0; rank < world(); ++rank) {
    const json end = event(1, rank, "save_end", 1);
    ASSERT_EQ(end["ok"], false);
    EXPECT_EQ(end["error"]["errno_name"], "EFBIG");
    EXPECT_EQ(end["error"]["rank"], 1);
    EXPECT_EQ(end["error"], event(1, 0, "save_end", 1)["error"]);
  }
  std::ifstream pointer(root() + "/latest");
  std::string name;
  pointer >> name;
  EXPECT_EQ(name, "none");
}

// C5: one rank misses its file, and every rank refuses before any step.
TEST_P(ReferenceTest, AMissingShardIsRefusedByEveryRank) {
  ASSERT_EQ(run({.life = 1, .until = 1, .arguments = {}}), all(0));
  std::filesystem::remove(root() + "/step_00000001/shard-00001-of-0000" + std::to_string(world()) +
                          ".safetensors");
  EXPECT_EQ(run({.life = 2, .until = 2, .arguments = {}}), all(2));
  for (int rank = 0; rank < world(); ++rank) {
    const json resumed = event(2, rank, "resumed", 1);
    EXPECT_EQ(resumed["ok"], false);
    EXPECT_EQ(resumed["error"]["errno_name"], "ENOENT");
    EXPECT_TRUE(event(2, rank, "update", 2).is_null());
  }
}

// A control that could not be told from the sound program by its own events would test nothing.
TEST_P(ReferenceTest, ABreakThatIsUnknownIsRefused) {
  EXPECT_EQ(run({.life = 1, .until = 1, .arguments = {"--break", "no-such-break"}}), all(2));
}

TEST_P(ReferenceTest, CorruptionOnTheWayInPassesItsOwnChecksAndShowsInTheDigests) {
  ASSERT_EQ(run({.life = 1, .until = 1, .arguments = {"--break", "corrupt-on-write"}}), all(0));
  ASSERT_EQ(run({.life = 2, .until = 2, .arguments = {"--break", "corrupt-on-write"}}), all(0));
  EXPECT_NE(event(1, 0, "save_begin", 1)["items"], event(2, 0, "resumed", 1)["items"]);
}

}  // namespace
}  // namespace savegate::reference
