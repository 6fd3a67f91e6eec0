// Checkpoints that each version of the format has left, formats/N, are loaded by the code of today;
// a newer format than a program knows is not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/subjects/reference/restore.h"

namespace savegate::reference {
namespace {

// `name` is that of a folder in formats/, written with 4 KiB of state by a world of one.
Result<std::optional<std::int64_t>> restored_format(const std::string& name, int newest_known) {
  Files files(0);
  worker::Worker worker{worker::Environment{}};
  Comms comms(nullptr, worker);
  const auto backend = gpu::open_backend("cpu").value();
  const std::string root = SAVEGATE_SOURCE_DIR "/scenarios/subjects/reference/formats/" + name;
  const std::string marker = root + "/" + step_name(1) + "/" + kMarkerName;
  SAVEGATE_TRY(const std::string text, files.read_text(marker));
  SAVEGATE_TRY(const Marker saved, parse_marker(text, marker));
  Job job{.rank = 0,
          .world = 1,
          .root = root,
          .comms = comms,
          .worker = worker,
          .files = files,
          .backend = *backend,
          .contract = saved.contract,
          .format = newest_known};
  SAVEGATE_TRY(State state, State::create(*backend, {}, 4096));
  return Restorer(job).restore(state);
}

TEST(CheckpointFormatsTest, EveryFormatThatEverWasIsLoaded) {
  for (int format = 1; format <= kNewestFormat; ++format) {
    const auto step = restored_format(std::to_string(format), kNewestFormat);
    ASSERT_TRUE(step) << step.error().to_string();
    EXPECT_EQ(*step, 1);
  }
}

TEST(CheckpointFormatsTest, ANewerFormatThanIsKnownIsRefusedByItsNumber) {
  const auto step = restored_format("2", /*newest_known=*/1);
  ASSERT_FALSE(step);
  EXPECT_THAT(step.error().text, testing::HasSubstr("format 2, this program reads 1 to 1"));
}

}  // namespace
}  // namespace savegate::reference
