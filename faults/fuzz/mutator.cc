#include "faults/fuzz/mutator.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

namespace savegate::faults {

namespace {

constexpr std::size_t kLongest = 16 * 1024;  // bytes of an input

}  // namespace

std::vector<std::string> read_corpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  corpus.reserve(paths.size());
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    corpus.push_back(text.str());
  }
  return corpus;
}

std::vector<std::string> read_examples(const std::string& page, const std::string& language) {
  std::vector<std::string> examples;
  bool inside = false;
  std::ifstream file(page);
  for (std::string line; std::getline(file, line);) {
    if (inside && line != "```") {
      examples.back() += line + "\n";
    } else if (inside || line == "```" + language) {
      inside = !inside;
      if (inside) examples.emplace_back();
    }
  }
  return examples;
}

Mutator::Mutator(std::vector<std::string> corpus, std::vector<std::string> words,
                 std::uint64_t seed)
    : corpus_(std::move(corpus)), words_(std::move(words)), random_(seed) {}

std::string Mutator::next() {
  std::string input = corpus_[below(corpus_.size())];
  for (std::size_t n = 1 + below(4); n > 0; --n) mutate(input);
  input.resize(std::min(input.size(), kLongest));
  return input;
}

void Mutator::mutate(std::string& input) {
  const std::size_t at = below(input.size() + 1);
  const std::size_t length = std::min(input.size() - at, below(24));
  const std::string& other = corpus_[below(corpus_.size())];
  switch (below(8)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(random_());
      break;
    case 1:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
      break;
    case 2:
      input.erase(at, length);
      break;
    case 3:
      input.insert(at, input.substr(at, length));
      break;
    case 4:
      input.replace(at, length, words_[below(words_.size())]);
      break;
    case 5:  // the end of another
      input.replace(at, std::string::npos, other, below(other.size() + 1), std::string::npos);
      break;
    case 6:
      input.replace(at, below(3), std::to_string(random_() >> below(64)));
      break;
    default:
      input.insert(at, below(3) == 0 ? below(400) : below(4), static_cast<char>(random_()));
      break;
  }
}

}  // namespace savegate::faults
