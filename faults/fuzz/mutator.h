// Mutator: inputs near those of a corpus, from a seed; for fuzzing where no libFuzzer is.
//
//   Mutator mutator(read_corpus(folder), {"[[rule]]", "nth"}, /*seed=*/1);
//   std::string input = mutator.next();
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace savegate::faults {

// The files of a folder, in the order of their names.
std::vector<std::string> read_corpus(const std::string& folder);
// The blocks of a Markdown page that are marked as of this language.
std::vector<std::string> read_examples(const std::string& page, const std::string& language);

class Mutator {
 public:
  // `words` are put in where random bytes would seldom hit. The corpus must not be empty.
  Mutator(std::vector<std::string> corpus, std::vector<std::string> words, std::uint64_t seed);
  std::string next();

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  void mutate(std::string& input);

  const std::vector<std::string> corpus_;
  const std::vector<std::string> words_;
  std::mt19937_64 random_;
};

}  // namespace savegate::faults
