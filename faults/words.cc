#include <algorithm>
#include <vector>

#include "faults/toml.h"

namespace savegate::faults {
namespace {

// Edits (insert, delete, replace, swap of neighbours) that turn one word into the other.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

bool starts_with(std::string_view word, std::string_view prefix) {
  return word.substr(0, prefix.size()) == prefix;
}

}  // namespace

std::string did_you_mean(std::string_view word, const std::vector<std::string>& valid) {
  constexpr std::size_t kPrefix = 3;  // shorter common beginnings are chance
  const std::string* nearest = nullptr;
  std::size_t best = 0;
  for (const std::string& candidate : valid) {
    // Twice the distance, so that a shared first letter decides between equals.
    std::size_t cost = 2 * edit_distance(word, candidate);
    const bool prefix = word.size() >= kPrefix && candidate.size() >= kPrefix &&
                        (starts_with(candidate, word) || starts_with(word, candidate));
    if (prefix) cost = std::min<std::size_t>(cost, 3);
    if (cost > std::max(word.size(), candidate.size()) && !prefix) continue;
    if (!word.empty() && !candidate.empty() && word.front() == candidate.front() && cost > 0)
      --cost;
    if (nearest == nullptr || cost < best) {
      nearest = &candidate;
      best = cost;
    }
  }
  return nearest == nullptr ? "" : "; did you mean `" + *nearest + "`?";
}

}  // namespace savegate::faults
