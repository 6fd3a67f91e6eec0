// A short run of what `./dev fuzz` does at length.
#include "faults/fuzz/plan_property.h"

#include <gtest/gtest.h>

#include "faults/fuzz/mutator.h"

namespace savegate::faults {
namespace {

// What is documented, and oddities.
std::vector<std::string> corpus() {
  auto texts = read_examples(SAVEGATE_SOURCE_DIR "/docs/fault-plans.md", "toml");
  EXPECT_GT(texts.size(), 10U);
  for (std::string& text : read_corpus(SAVEGATE_SOURCE_DIR "/faults/fuzz/corpus"))
    texts.push_back(std::move(text));
  return texts;
}

TEST(PlanPropertyTest, TheCorpusHoldsIt) {
  for (const std::string& text : corpus()) EXPECT_EQ(broken_by_plan(text), "") << text;
}

TEST(PlanPropertyTest, MutationsOfTheCorpusHoldIt) {
  constexpr int kInputs = 20000;
  Mutator mutator(corpus(),
                  {"[[rule]]\n", "[[budget]]\n", "match = {", "action = {", "nth = 1",
                   "every = ", "'99999999TiB'", "'100%'", "nan", "inf", "-0.0", "\"\"\"",
                   "1979-05-27", "[", "{"},
                  /*seed=*/1);
  for (int i = 0; i < kInputs; ++i) {
    const std::string text = mutator.next();
    ASSERT_EQ(broken_by_plan(text), "") << "input " << i << ":\n" << text;
  }
}

}  // namespace
}  // namespace savegate::faults
