#include "harness/worker/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness/worker/event_line.h"

namespace savegate::worker {
namespace {

using nlohmann::json;
using testing::ElementsAre;

class WorkerTest : public testing::Test {
 protected:
  WorkerTest() {
    std::string pattern = testing::TempDir() + "/worker-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    environment_.rank = 1;
    environment_.world = 2;
    environment_.directory = "/checkpoints";
    environment_.events = directory_ + "/rank-1.jsonl";
  }
  ~WorkerTest() override { std::filesystem::remove_all(directory_); }

  std::vector<json> events() const {
    std::vector<json> lines;
    std::ifstream file(environment_.events);
    for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
    return lines;
  }

  std::string directory_;
  Environment environment_;
};

Status no_space() {
  Status status = system_error("write", "/checkpoints/step_1/shard.tmp", ENOSPC);
  status.rank = 1;
  status.offset = 4096;
  status.asked = 100;
  status.done = 10;
  return status;
}

// What a child writes by fork alone must not pass for its parent's word.
TEST_F(WorkerTest, AForkedChildSaysWhoseItsLinesAre) {
  Worker worker(environment_);
  worker.hello({});
  const pid_t child = ::fork();
  if (child == 0) {
    worker.phase("by the parent's worker");
    Worker(environment_).phase("by its own");
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  worker.phase("by the parent");
  const auto lines = events();
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[1].at("pid"), child);
  EXPECT_EQ(lines[2].at("pid"), child);
  EXPECT_FALSE(lines[3].contains("pid"));
}

TEST_F(WorkerTest, EveryLineCarriesKindTimeAndRank) {
  Worker worker(environment_);
  worker.hello({{"trainer", "1.2"}});
  worker.done();
  const auto lines = events();
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].at("event"), "hello");
  EXPECT_EQ(lines[0].at("pid"), ::getpid());
  EXPECT_EQ(lines[0].at("world"), 2);
  EXPECT_EQ(lines[0].at("versions").at("trainer"), "1.2");
  EXPECT_EQ(lines[1].at("event"), "done");
  EXPECT_EQ(lines[1].at("rank"), 1);
  EXPECT_GE(lines[1].at("time_ns"), lines[0].at("time_ns"));
}

TEST_F(WorkerTest, AFreshStartSaysThatNothingWasRestored) {
  Worker worker(environment_);
  worker.resumed({});
  const auto lines = events();
  EXPECT_TRUE(lines.at(0).at("step").is_null());
  EXPECT_EQ(lines.at(0).at("ok"), true);
}

TEST_F(WorkerTest, AnItemCarriesAllThatItsDigestMeansNothingWithout) {
  Worker worker(environment_);
  worker.save_begin(3, 3,
                    {{"w", "parameter", "shard", "bf16", {8, 4}, {4, 4}, {4, 0}, 32, "0123"}});
  const json item = events().at(0).at("items").at(0);
  EXPECT_EQ(item, json::parse(R"({"name":"w","kind":"parameter","scope":"shard","dtype":"bf16",
      "global_shape":[8,4],"local_shape":[4,4],"offset":[4,0],"bytes":32,"digest":"0123"})"));
}

TEST_F(WorkerTest, AFailedSaveNamesTheFirstErrorWithAPathBelowTheRoot) {
  Worker worker(environment_);
  worker.save_end(3, 3, fail(no_space()));
  const json line = events().at(0);
  EXPECT_EQ(line.at("ok"), false);
  const json& error = line.at("error");
  EXPECT_EQ(error.at("errno_name"), "ENOSPC");
  EXPECT_EQ(error.at("path"), "step_1/shard.tmp");
  EXPECT_EQ(error.at("rank"), 1);
  EXPECT_EQ(error.at("offset"), 4096);
  EXPECT_EQ(error.at("requested"), 100);
  EXPECT_EQ(error.at("returned"), 10);
}

TEST_F(WorkerTest, ASecondSaveOfAStepIsAttemptTwo) {
  Worker worker(environment_);
  worker.save_begin(3, 3, {});
  worker.save_end(3, 3, fail(no_space()));
  worker.save_begin(3, 3, {});
  worker.durable(3, 3, {});
  const auto lines = events();
  EXPECT_FALSE(lines.at(0).contains("attempt"));
  EXPECT_EQ(lines.at(2).at("attempt"), 2);
  EXPECT_EQ(lines.at(3).at("attempt"), 2);
}

TEST_F(WorkerTest, AMeasurementThatWasNotObtainedIsNullAndAZeroIsAZero) {
  Worker worker(environment_);
  worker.memory(2, "save", {{"host_rss", 0}, {"gpu_free", std::nullopt}});
  const json memory = events().at(0).at("memory");
  EXPECT_EQ(memory.at("host_rss"), 0);
  EXPECT_TRUE(memory.at("gpu_free").is_null());
}

TEST_F(WorkerTest, TextIsEscaped) {
  Worker worker(environment_);
  worker.phase("a \"quoted\"\nname\\");
  EXPECT_EQ(events().at(0).at("name"), "a \"quoted\"\nname\\");
}

TEST_F(WorkerTest, LostEventsAreToldByAFileBesideTheEvents) {
  std::filesystem::create_symlink("/dev/full", environment_.events);
  Worker(environment_).done();
  std::ifstream lost(environment_.events + ".lost");
  std::string reason;
  std::getline(lost, reason);
  EXPECT_THAT(reason, testing::HasSubstr("ENOSPC"));
}

TEST(EventLineTest, APathBelowTheRootIsRelativeHoweverItIsWritten) {
  for (const char* path : {"/checkpoints//step_6", "//checkpoints/./step_6/"}) {
    EXPECT_EQ(below("/checkpoints/", path), "step_6");
  }
  for (const char* path : {"/checkpoints/", "/checkpoints2/step_6", "checkpoints/step_6"}) {
    EXPECT_EQ(below("/checkpoints", path), path);
  }
  EXPECT_EQ(below(".", "./step_6"), "step_6");
}

TEST_F(WorkerTest, WithoutAnEventFileNothingIsWritten) {
  environment_.events.clear();
  Worker worker(environment_);
  worker.hello({});
  worker.done();
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST(EnvironmentTest, UntilNamesASaveOrNothing) {
  EXPECT_EQ(Environment{.until = "save 12"}.until_save(), 12);
  EXPECT_EQ(Environment{}.until_save(), std::nullopt);
  EXPECT_EQ(Environment{.until = "save x"}.until_save(), std::nullopt);
}

// A daemon that takes marks, and says for each how many event lines it found on file.
class MarkTest : public WorkerTest {
 protected:
  MarkTest() {
    environment_.control = directory_ + "/control";
    listener_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    environment_.control.copy(address.sun_path, environment_.control.size());
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(::listen(listener_, 1), 0);
    daemon_ = std::thread([this] { serve(); });
  }

  void serve() {
    const int peer = ::accept(listener_, nullptr, nullptr);
    std::string pending;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(peer, buffer, sizeof(buffer))) > 0;) {
      pending.append(buffer, static_cast<std::size_t>(got));
      if (pending.back() != '\n') continue;
      const json request = json::parse(pending);
      marks_.push_back(request.at("kind").get<std::string>() + " " +
                       request.at("name").get<std::string>() + " after " +
                       std::to_string(events().size()));
      pending.clear();
      EXPECT_EQ(::write(peer, "{\"ok\":true}\n", 12), 12);
    }
    ::close(peer);
  }

  std::vector<std::string> marks() {
    daemon_.join();
    ::close(listener_);
    return marks_;
  }

  int listener_ = -1;
  std::thread daemon_;
  std::vector<std::string> marks_;
};

// Killed at the mark of a beginning, a rank is on record as having begun; killed at the mark of an
// end, it has claimed nothing.
TEST_F(MarkTest, BeginningsAreOnFileBeforeTheirMarkAndEndsAfterIt) {
  {
    Worker worker(environment_);
    worker.load_begin();
    worker.resumed({});
    worker.save_begin(1, 1, {});
    worker.phase("marker");
    worker.collective_enter("world", 7, "barrier");
    worker.collective_exit("world", 7, "barrier");
    worker.save_end(1, 1, {});
    worker.durable(1, 1, {});
  }
  EXPECT_THAT(marks(),
              ElementsAre("enter load after 0", "leave load after 0", "enter save 1 after 2",
                          "point marker after 3", "collective_enter world#7 barrier after 4",
                          "collective_exit world#7 barrier after 4", "leave save 1 after 6"));
}

TEST_F(MarkTest, AFailedSaveLeavesItsSpan) {
  {
    Worker worker(environment_);
    worker.save_begin(1, 1, {});
    worker.save_end(1, 1, fail(no_space()));
  }
  EXPECT_THAT(marks(), ElementsAre("enter save 1 after 1", "leave save 1 after 1"));
}

}  // namespace
}  // namespace savegate::worker
