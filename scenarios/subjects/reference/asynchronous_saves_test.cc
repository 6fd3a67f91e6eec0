// Asynchronous saves of one rank on a plain directory: what is written is the state as of the call.

#include "scenarios/subjects/reference/asynchronous_saves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "scenarios/subjects/reference/restore.h"
#include "scenarios/subjects/reference/training.h"

namespace savegate::reference {
namespace {

using testing::HasSubstr;

// Writes nothing until it is let go; then fails if it is told to.
class HeldSaver : public Saver {
 public:
  HeldSaver(Job& job, std::shared_future<void> released, bool fails)
      : Saver(job), released_(std::move(released)), fails_(fails) {}
  Result<void> begin() override {
    released_.wait();
    if (fails_) return fail(invalid("told to fail"));
    return Saver::begin();
  }

 private:
  std::shared_future<void> released_;
  bool fails_;
};

class AsynchronousSavesTest : public testing::Test {
 protected:
  AsynchronousSavesTest() {
    std::ofstream(root_ + "/latest") << "none\n";
    EXPECT_TRUE(state_.start(*backend_, 0));
  }
  ~AsynchronousSavesTest() override { std::filesystem::remove_all(root_); }

  Job job(Comms& comms, worker::Worker& worker, gpu::Backend& backend) {
    return {.rank = 0,
            .world = 1,
            .root = root_,
            .comms = comms,
            .worker = worker,
            .files = files_,
            .backend = backend,
            .contract = {"code", "data", "recipe", 10}};
  }
  std::unique_ptr<AsynchronousSaves> saves(std::size_t most_in_flight, bool fails = false) {
    WriterParts writer;
    writer.host = gpu::open_backend("cpu").value();
    writer.worker = std::make_unique<worker::Worker>(worker::Environment{});
    writer.comms = std::make_unique<Comms>(nullptr, *writer.worker, "saves");
    writer.job = std::make_unique<Job>(job(*writer.comms, *writer.worker, *writer.host));
    writer.saver = std::make_unique<HeldSaver>(*writer.job, release_.get_future().share(), fails);
    writer.staging = std::make_unique<Staging>(*backend_);
    auto made =
        std::make_unique<AsynchronousSaves>(job_, reporter_, std::move(writer), most_in_flight);
    made->begin_life(kNoCheckpoint);
    return made;
  }
  void train() { ASSERT_TRUE(training_.step(state_)); }
  std::vector<std::string> digests(const State& state) {
    std::vector<std::string> all;
    const auto items = digest_items(*backend_, state, job_.contract).value();
    all.reserve(items.size());
    for (const worker::Item& item : items) all.push_back(item.name + " " + item.digest);
    return all;
  }
  State restored() {
    State state = State::create(*backend_, {}, 1 << 16).value();
    Restorer restorer(job_);
    EXPECT_TRUE(restorer.restore(state));
    return state;
  }

  static std::string new_directory() {
    std::string pattern = testing::TempDir() + "/reference-XXXXXX";
    return ::mkdtemp(pattern.data());
  }

  const std::string root_ = new_directory();
  Files files_{0};
  worker::Worker worker_{worker::Environment{}};
  Reporter reporter_{worker_};
  Comms comms_{nullptr, worker_};
  std::unique_ptr<gpu::Backend> backend_ = gpu::open_backend("cpu").value();
  Job job_ = job(comms_, worker_, *backend_);
  State state_ = State::create(*backend_, {}, 1 << 16).value();
  Training training_{job_};
  std::promise<void> release_;
};

// G5: training changes the state between the call and the first byte written.
TEST_F(AsynchronousSavesTest, WhatIsWrittenIsTheStateAsOfTheCall) {
  const auto saves = this->saves(1);
  train();
  const auto as_of_the_call = digests(state_);
  ASSERT_TRUE(saves->save(state_));
  train();
  EXPECT_NE(digests(state_), as_of_the_call);
  release_.set_value();
  ASSERT_TRUE(saves->drain());
  EXPECT_EQ(digests(restored()), as_of_the_call);
}

TEST_F(AsynchronousSavesTest, ASnapshotIsNotTakenWhereAnEarlierOneStillWaits) {
  const auto saves = this->saves(2);
  train();
  ASSERT_TRUE(saves->save(state_));
  const auto first = digests(state_);
  train();
  ASSERT_TRUE(saves->await_room());
  ASSERT_TRUE(saves->save(state_));
  release_.set_value();
  ASSERT_TRUE(saves->drain());
  ASSERT_TRUE(write_file(files_, root_ + "/latest", step_name(1) + "\n"));
  EXPECT_EQ(digests(restored()), first);
}

TEST_F(AsynchronousSavesTest, RoomIsThereOnlyWhenASaveIsFinished) {
  const auto saves = this->saves(1);
  train();
  ASSERT_TRUE(saves->await_room());
  ASSERT_TRUE(saves->save(state_));
  auto room = std::async(std::launch::async, [&] { return saves->await_room(); });
  EXPECT_EQ(room.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  release_.set_value();
  EXPECT_TRUE(room.get());
}

TEST_F(AsynchronousSavesTest, AFailureSurfacesAtTheNextSaveAndAtTheEnd) {
  const auto saves = this->saves(1, /*fails=*/true);
  release_.set_value();
  train();
  ASSERT_TRUE(saves->await_room());
  EXPECT_TRUE(saves->save(state_));
  for (const auto& outcome : {saves->await_room(), saves->drain()}) {
    ASSERT_FALSE(outcome);
    EXPECT_THAT(outcome.error().to_string(), HasSubstr("told to fail"));
  }
}

TEST(StagingTest, ASnapshotTakesExactlyTheBytesOfItsTensors) {
  const auto backend = gpu::open_backend("cpu").value();
  const State state = State::create(*backend, {}, 1 << 16).value();
  std::uint64_t bytes = 0;
  for (const NamedTensor& named : state.tensors) bytes += named.tensor.bytes();
  Staging staging(*backend);
  {
    const auto snapshot = staging.snapshot(state);
    ASSERT_TRUE(snapshot);
    EXPECT_EQ(staging.bytes().held, bytes);
    EXPECT_EQ(staging.bytes().used, bytes);
  }
  EXPECT_EQ(staging.bytes().used, 0U);
  ASSERT_TRUE(staging.snapshot(state));  // in the blocks of the first
  EXPECT_EQ(staging.bytes().held, bytes);
  staging.trim();
  EXPECT_EQ(staging.bytes().held, 0U);
}

TEST(StagingTest, TwoSnapshotsShareNoMemory) {
  const auto backend = gpu::open_backend("cpu").value();
  const State state = State::create(*backend, {}, 1 << 16).value();
  Staging staging(*backend);
  const auto first = staging.snapshot(state);
  const auto second = staging.snapshot(state);
  ASSERT_TRUE(first && second);
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    EXPECT_NE(first->tensors[i].tensor.data, second->tensors[i].tensor.data);
  }
}

}  // namespace
}  // namespace savegate::reference
