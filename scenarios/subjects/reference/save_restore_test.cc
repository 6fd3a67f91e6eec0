// The protocol of one rank on a plain directory: order, failures, refusals, rotation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "scenarios/subjects/reference/reader.h"
#include "scenarios/subjects/reference/restore.h"
#include "scenarios/subjects/reference/save.h"
#include "scenarios/subjects/reference/training.h"

namespace savegate::reference {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Writes down what is made durable, and fails where it is told to.
class WatchedFiles : public Files {
 public:
  WatchedFiles() : Files(0) {}

  Result<void> write(int fd, const std::string& path, const std::byte* data, std::size_t bytes,
                     std::uint64_t offset) override {
    if (fails("write", path)) return fail(error("write", path, ENOSPC));
    return Files::write(fd, path, data, bytes, offset);
  }
  Result<void> sync(int fd, const std::string& path) override {
    if (fails("sync", path)) return fail(error("fsync", path, EIO));
    synced.push_back(file_name(path));
    return Files::sync(fd, path);
  }
  Result<void> close(int fd, const std::string& path) override {
    auto closed = Files::close(fd, path);
    if (fails("close", path)) return fail(error("close", path, EIO));
    return closed;
  }

  std::string failing;  // "write metadata.json.tmp"
  std::vector<std::string> synced;

 private:
  bool fails(const std::string& operation, const std::string& path) const {
    return failing == operation + " " + file_name(path);
  }
};

class SaveRestoreTest : public testing::Test {
 protected:
  SaveRestoreTest() {
    std::string pattern = testing::TempDir() + "/reference-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    job_.root = root_;
    std::ofstream(root_ + "/latest") << "none\n";
    EXPECT_TRUE(state_.start(*backend_, 0));
    saver_.begin_life(kNoCheckpoint);
  }
  ~SaveRestoreTest() override { std::filesystem::remove_all(root_); }

  Job job() {
    return {.rank = 0,
            .world = 1,
            .root = "",
            .comms = comms_,
            .worker = worker_,
            .files = files_,
            .backend = *backend_,
            .contract = {"code", "data", "recipe", 10}};
  }
  State empty_state() { return State::create(*backend_, {}, 1 << 16).value(); }

  void train() { ASSERT_TRUE(training_.step(state_)); }
  void train_and_save(int times) {
    for (int i = 0; i < times; ++i) {
      train();
      ASSERT_TRUE(saver_.save(state_));
      ASSERT_TRUE(saver_.rotate());
    }
  }
  std::vector<worker::Item> items(const State& state) {
    return digest_items(*backend_, state, job_.contract).value();
  }
  std::vector<std::string> digests(const State& state) {
    std::vector<std::string> all;
    for (const worker::Item& item : items(state)) all.push_back(item.name + " " + item.digest);
    return all;
  }
  std::string pointer() { return files_.read_text(root_ + "/latest").value(); }
  std::string in_step(int step, const std::string& name) {
    return root_ + "/" + step_name(step) + "/" + name;
  }
  void flip(const std::string& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  }
  // What a new process makes of the directory: the error's text, "" if it restores.
  std::string refusal() {
    State state = empty_state();
    Restorer restorer(job_);
    auto restored = restorer.restore(state);
    return restored ? "" : restored.error().to_string();
  }

  std::string root_;
  WatchedFiles files_;
  worker::Worker worker_{worker::Environment{}};
  Comms comms_{nullptr, worker_};
  std::unique_ptr<gpu::Backend> backend_ = gpu::open_backend("cpu").value();
  Job job_ = job();
  State state_ = empty_state();
  Training training_{job_};
  Saver saver_{job_};
};

constexpr const char* kShard = "shard-00000-of-00001.safetensors";
constexpr const char* kState = "state-00000-of-00001.json";

TEST_F(SaveRestoreTest, ARestoreBringsBackEveryItem) {
  train_and_save(2);
  State restored = empty_state();
  Restorer restorer(job_);
  EXPECT_EQ(restorer.restore(restored).value(), 2);
  EXPECT_EQ(digests(restored), digests(state_));
}

// A wrong restore would show from here on.
TEST_F(SaveRestoreTest, TrainingGoesOnAsIfNothingHadHappened) {
  train_and_save(2);
  State restored = empty_state();
  Restorer restorer(job_);
  ASSERT_TRUE(restorer.restore(restored));
  const auto there = training_.step(restored).value();
  const auto here = training_.step(state_).value();
  EXPECT_TRUE(there.changed);
  EXPECT_EQ(there.samples, here.samples);
  EXPECT_EQ(digests(restored), digests(state_));
}

TEST_F(SaveRestoreTest, EachStepChangesTheState) {
  train();
  const auto before = digests(state_);
  train();
  EXPECT_NE(digests(state_), before);
}

TEST_F(SaveRestoreTest, TheMarkerComesAfterTheFilesAndThePointerLast) {
  train_and_save(1);
  const std::string step = step_name(1);
  EXPECT_THAT(files_.synced, ElementsAre(file_name(root_), std::string(kShard) + ".tmp",
                                         std::string(kState) + ".tmp", step, "metadata.json.tmp",
                                         step, "latest.tmp", file_name(root_)));
}

class EveryFailure : public SaveRestoreTest, public testing::WithParamInterface<const char*> {};

TEST_P(EveryFailure, FailsTheSaveKeepsThePointerAndLeavesNoTemporary) {
  train_and_save(1);
  train();
  files_.failing = GetParam();
  const auto saved = saver_.save(state_);
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().to_string(),
              HasSubstr(files_.failing.substr(files_.failing.find(' ') + 1)));
  EXPECT_EQ(pointer(), step_name(1) + "\n");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  files_.failing.clear();
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(saver_.save(state_));  // over the debris
  EXPECT_EQ(pointer(), step_name(2) + "\n");
}

INSTANTIATE_TEST_SUITE_P(SaveRestoreTest, EveryFailure,
                         testing::Values("write shard-00000-of-00001.safetensors.tmp",
                                         "sync shard-00000-of-00001.safetensors.tmp",
                                         "close shard-00000-of-00001.safetensors.tmp",
                                         "write state-00000-of-00001.json.tmp",
                                         "sync state-00000-of-00001.json.tmp",
                                         "write metadata.json.tmp", "sync metadata.json.tmp",
                                         "close metadata.json.tmp", "sync step_00000002",
                                         "write latest.tmp", "sync latest.tmp",
                                         "close latest.tmp"));

// The rename has been seen by then: the pointer has to be put back.
TEST_F(SaveRestoreTest, APointerThatCannotBeMadeToLastIsTakenBack) {
  train_and_save(1);
  train();
  files_.failing = "sync " + file_name(root_);
  std::filesystem::create_directory(root_ + "/" +
                                    step_name(2));  // so that only the pointer syncs it
  EXPECT_FALSE(saver_.save(state_));
  EXPECT_EQ(pointer(), step_name(1) + "\n");
}

TEST_F(SaveRestoreTest, EveryDamageIsRefusedAndNamed) {
  train_and_save(1);
  const std::string shard = in_step(1, kShard);
  flip(shard, 60000);
  EXPECT_THAT(refusal(), HasSubstr("digest"));
  flip(shard, 60000);
  ASSERT_EQ(refusal(), "");

  flip(in_step(1, kState), 100);
  EXPECT_THAT(refusal(), HasSubstr(kState));
  flip(in_step(1, kState), 100);

  const auto size = std::filesystem::file_size(shard);
  std::filesystem::resize_file(shard, size - 1);
  EXPECT_THAT(refusal(), HasSubstr("bytes"));
  std::filesystem::resize_file(shard, 0);
  EXPECT_THAT(refusal(), HasSubstr(kShard));
  std::filesystem::remove(shard);
  EXPECT_THAT(refusal(), HasSubstr("ENOENT"));
}

TEST_F(SaveRestoreTest, AMissingOrForeignPointerIsAnErrorAndNotStepZero) {
  train_and_save(1);
  std::ofstream(root_ + "/latest") << "elsewhere\n";
  EXPECT_THAT(refusal(), HasSubstr("names no checkpoint"));
  std::filesystem::remove(root_ + "/latest");
  EXPECT_THAT(refusal(), HasSubstr("ENOENT"));
}

TEST_F(SaveRestoreTest, AnotherRunsCheckpointIsRefusedByName) {
  train_and_save(1);
  job_.contract.data = "other";
  EXPECT_THAT(refusal(), HasSubstr("data was data, is other"));
}

TEST_F(SaveRestoreTest, AnotherExpertParallelSizeIsRefused) {
  train_and_save(1);
  job_.expert_parallel = 2;
  EXPECT_THAT(refusal(), HasSubstr("saved with an expert parallel size of 1, this run has 2"));
}

TEST_F(SaveRestoreTest, BeforeTheFirstSaveAResumeStartsFresh) {
  State restored = empty_state();
  Restorer restorer(job_);
  EXPECT_EQ(restorer.restore(restored).value(), std::nullopt);
  EXPECT_EQ(digests(restored), digests(state_));
}

TEST_F(SaveRestoreTest, RotationKeepsTheNewestTwoAndEveryTwentieth) {
  train_and_save(23);
  const std::vector<std::string> left = files_.list(root_).value();
  EXPECT_THAT(left, ElementsAre("latest", step_name(20), step_name(22), step_name(23)));
}

// Debris of a save that died is nobody's checkpoint: rotation leaves it alone.
TEST_F(SaveRestoreTest, RotationDeletesOnlyWhatHasAMarker) {
  std::filesystem::create_directory(root_ + "/" + step_name(1));
  std::ofstream(in_step(1, "debris")) << "x";
  state_.counters.global_step = 1;
  train_and_save(3);
  EXPECT_TRUE(std::filesystem::exists(in_step(1, "debris")));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/" + step_name(2)));
}

TEST_F(SaveRestoreTest, TheReaderTellsCompleteFromDamagedAndAnnouncedFromNot) {
  train_and_save(2);
  std::filesystem::remove(in_step(1, "metadata.json"));
  flip(in_step(2, kShard), 60000);
  const std::string lines = read_checkpoints(root_).value();
  EXPECT_THAT(lines,
              HasSubstr(R"({"path":"step_00000001","step":1,"complete":false,"announced":false)"));
  EXPECT_THAT(lines,
              HasSubstr(R"({"path":"step_00000002","step":2,"complete":false,"announced":true)"));
  flip(in_step(2, kShard), 60000);
  EXPECT_THAT(read_checkpoints(root_).value(),
              HasSubstr(R"("step":2,"complete":true,"announced":true,"error":"","items":[[0,{)"));
}

}  // namespace
}  // namespace savegate::reference
