// What a save becomes of whose files a child process writes, on a plain directory.

#include "scenarios/subjects/reference/child_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

namespace savegate::reference {
namespace {

using testing::HasSubstr;

enum class Mishap { kNone, kNoSpace, kDeath };

// Whatever happens, happens in the child: its process is another one.
class ChildsFiles : public Files {
 public:
  ChildsFiles() : Files(0), parent_(::getpid()) {}

  Result<void> write(int fd, const std::string& path, const std::byte* data, std::size_t bytes,
                     std::uint64_t offset) override {
    if (::getpid() != parent_ && mishap == Mishap::kDeath) ::raise(SIGKILL);
    if (::getpid() != parent_ && mishap == Mishap::kNoSpace) {
      return fail(error("write", path, ENOSPC));
    }
    return Files::write(fd, path, data, bytes, offset);
  }

  Mishap mishap = Mishap::kNone;

 private:
  pid_t parent_;
};

class ChildSaverTest : public testing::Test {
 protected:
  ChildSaverTest() {
    std::string pattern = testing::TempDir() + "/child-saver-XXXXXX";
    job_.root = ::mkdtemp(pattern.data());
    std::ofstream(job_.path(kPointerName)) << "none\n";
    state_ = State::create(*backend_, {}, 1 << 16).value();
    EXPECT_TRUE(state_.start(*backend_, 0));
    state_.counters.global_step = 1;
    saver_.begin_life(kNoCheckpoint);
  }
  ~ChildSaverTest() override { std::filesystem::remove_all(job_.root); }

  std::string pointer() { return files_.read_text(job_.path(kPointerName)).value(); }

  ChildsFiles files_;
  worker::Worker worker_{worker::Environment{}};
  Comms comms_{nullptr, worker_};
  std::unique_ptr<gpu::Backend> backend_ = gpu::open_backend("cpu").value();
  Job job_{.rank = 0,
           .world = 1,
           .root = "",
           .comms = comms_,
           .worker = worker_,
           .files = files_,
           .backend = *backend_,
           .contract = {"code", "data", "recipe", 10}};
  State state_;
  ChildSaver saver_{job_};
};

TEST_F(ChildSaverTest, WhatTheChildHasWrittenIsPublished) {
  ASSERT_TRUE(saver_.save(state_));
  EXPECT_EQ(pointer(), "step_00000001\n");
  const auto marker = files_.read_text(job_.path("step_00000001/metadata.json"));
  EXPECT_THAT(marker.value(), HasSubstr("shard-00000-of-00001.safetensors"));
}

TEST_F(ChildSaverTest, TheErrorOfTheChildIsThatOfTheSave) {
  files_.mishap = Mishap::kNoSpace;
  const auto saved = saver_.save(state_);
  ASSERT_FALSE(saved);
  EXPECT_EQ(saved.error().error, ENOSPC);
  EXPECT_THAT(saved.error().path, HasSubstr("shard-00000-of-00001.safetensors"));
  EXPECT_EQ(pointer(), "none\n");
}

TEST_F(ChildSaverTest, AChildThatDiesFailsTheSave) {
  files_.mishap = Mishap::kDeath;
  const auto saved = saver_.save(state_);
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().to_string(), HasSubstr("the writer was ended by signal 9"));
  EXPECT_EQ(pointer(), "none\n");
}

}  // namespace
}  // namespace savegate::reference
