// A short run of what `./dev fuzz` does at length.
#include "fusefs/fuzz/control_property.h"

#include <gtest/gtest.h>

#include "faults/fuzz/mutator.h"

namespace savegate::fusefs {
namespace {

constexpr const char* kCorpus = SAVEGATE_SOURCE_DIR "/fusefs/fuzz/corpus";

TEST(ControlPropertyTest, TheCorpusHoldsIt) {
  const auto corpus = faults::read_corpus(kCorpus);
  ASSERT_FALSE(corpus.empty());
  ControlProperty property;
  for (const std::string& lines : corpus) EXPECT_EQ(property.broken_by(lines), "") << lines;
}

TEST(ControlPropertyTest, MutationsOfTheCorpusHoldIt) {
  constexpr int kInputs = 3000;
  faults::Mutator mutator(
      faults::read_corpus(kCorpus),
      {"\"cmd\"", "\"rank\":", "\"from\":", "\"wait\":true", "\"kind\":\"point\"", "\\u0000",
       "\\ud800", "1e400", "-1", "null", "[[", "{\"", "\n"},
      /*seed=*/1);
  ControlProperty property;
  for (int i = 0; i < kInputs; ++i) {
    const std::string lines = mutator.next();
    ASSERT_EQ(property.broken_by(lines), "") << "input " << i << ":\n" << lines;
  }
}

}  // namespace
}  // namespace savegate::fusefs
