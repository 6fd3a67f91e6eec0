#include "scenarios/subjects/reference/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace savegate::reference {
namespace {

using testing::HasSubstr;

// Each rank's first element of every tensor, as name and global position.
std::multiset<std::string> claims(int world, int expert_parallel) {
  const auto backend = gpu::open_backend("cpu").value();
  std::multiset<std::string> all;
  for (int rank = 0; rank < world; ++rank) {
    const Placement placement{.rank = rank, .world = world, .expert_parallel = expert_parallel};
    const State state = State::create(*backend, placement, 1 << 16).value();
    for (const NamedTensor& named : state.tensors) {
      all.insert(named.name + " " + std::to_string(named.offset[0]));
    }
  }
  return all;
}

// F5: two expert ranks under sharding have equal slices of different experts.
TEST(StateTest, NoTwoRanksHaveTheSameNameAndOffset) {
  for (const int expert_parallel : {1, 2, 4}) {
    const auto all = claims(4, expert_parallel);
    EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size()) << expert_parallel;
  }
}

TEST(StateTest, ExpertsAreSlicedOverTheRanksThatShareThem) {
  const auto backend = gpu::open_backend("cpu").value();
  const State state =
      State::create(*backend, {.rank = 3, .world = 4, .expert_parallel = 2}, 1 << 16).value();
  for (const NamedTensor& named : state.tensors) {
    const bool expert = named.name.find("experts") != std::string::npos;
    EXPECT_EQ(named.name.ends_with(".ep1"), expert) << named.name;
    EXPECT_EQ(named.global_shape[0], named.tensor.shape[0] * (expert ? 2 : 4)) << named.name;
    EXPECT_EQ(named.offset[0], named.tensor.shape[0] * (expert ? 1 : 3)) << named.name;
  }
}

TEST(StateTest, AnExpertParallelSizeThatDoesNotDivideTheRanksIsRefused) {
  const auto backend = gpu::open_backend("cpu").value();
  const auto state =
      State::create(*backend, {.rank = 0, .world = 4, .expert_parallel = 3}, 1 << 16);
  ASSERT_FALSE(state);
  EXPECT_THAT(state.error().to_string(), HasSubstr("does not divide 4 ranks"));
}

}  // namespace
}  // namespace savegate::reference
