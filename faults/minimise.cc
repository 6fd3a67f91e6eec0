#include "faults/minimise.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace savegate::faults {
namespace {

using Items = std::vector<std::size_t>;

// The `part`-th of `parts` runs of nearly the same length, or all but it.
Items run_of(const Items& items, std::size_t part, std::size_t parts, bool all_but) {
  const auto first = items.begin() + static_cast<std::ptrdiff_t>(items.size() * part / parts);
  const auto last = items.begin() + static_cast<std::ptrdiff_t>(items.size() * (part + 1) / parts);
  if (!all_but) return {first, last};
  Items others(items.begin(), first);
  others.insert(others.end(), last, items.end());
  return others;
}

}  // namespace

Result<Items> fewest(std::size_t count, const std::function<Result<bool>(const Items&)>& fails) {
  Items kept(count);
  std::iota(kept.begin(), kept.end(), std::size_t{0});
  if (count == 0) return kept;
  SAVEGATE_TRY(const bool without_any, fails({}));
  if (without_any) return Items{};

  std::set<Items> clean;
  const auto first_failing = [&](std::size_t parts, bool all_but) -> Result<std::optional<Items>> {
    for (std::size_t part = 0; part < parts; ++part) {
      Items items = run_of(kept, part, parts, all_but);
      if (clean.contains(items)) continue;
      SAVEGATE_TRY(const bool failed, fails(items));
      if (failed) return std::optional<Items>(std::move(items));
      clean.insert(std::move(items));
    }
    return std::optional<Items>();
  };

  std::size_t parts = 2;
  while (kept.size() >= 2) {
    SAVEGATE_TRY(const std::optional<Items> part, first_failing(parts, /*all_but=*/false));
    if (part) {
      kept = *part;
      parts = 2;
      continue;
    }
    SAVEGATE_TRY(const std::optional<Items> others, first_failing(parts, /*all_but=*/true));
    if (others) {
      kept = *others;
      parts = std::max<std::size_t>(parts - 1, 2);
      continue;
    }
    if (parts >= kept.size()) break;
    parts = std::min(parts * 2, kept.size());
  }
  return kept;
}

Result<std::size_t> smallest(std::size_t count,
                             const std::function<Result<bool>(std::size_t)>& fails) {
  if (count <= 1) return std::size_t{0};
  SAVEGATE_TRY(const bool first_fails, fails(0));
  if (first_fails) return std::size_t{0};
  std::size_t clean = 0;
  std::size_t failing = count - 1;
  while (failing - clean > 1) {
    const std::size_t middle = clean + (failing - clean) / 2;
    SAVEGATE_TRY(const bool failed, fails(middle));
    (failed ? failing : clean) = middle;
  }
  return failing;
}

}  // namespace savegate::faults
