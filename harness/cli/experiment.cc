#include "harness/cli/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

namespace savegate::cli {

Result<Factor> parse_factor(const std::string& text) {
  const auto malformed = [&](const std::string& what) {
    return fail(
        invalid(fmt::format("--vary {}: {}; it is NAME=BASELINE,OTHER[,OTHER…]", text, what)));
  };
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos) return malformed("no name");
  Factor factor{text.substr(0, equals), {}};
  for (std::size_t begin = equals + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    factor.values.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (factor.values.size() < 2) return malformed("one value alone cannot be compared");
  const std::set<std::string> distinct(factor.values.begin(), factor.values.end());
  if (distinct.size() != factor.values.size()) return malformed("a value is there twice");
  if (distinct.contains("")) return malformed("a value is empty");
  return factor;
}

std::vector<Arm> arms_of(const std::vector<Factor>& factors) {
  std::vector<Arm> arms(1);
  for (const Factor& factor : factors)
    for (std::size_t i = 1; i < factor.values.size(); ++i)
      arms.push_back({factor.name, factor.values[i]});
  return arms;
}

std::vector<Trial> schedule(std::size_t arms, std::uint64_t rounds, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(arms);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Trial> trials;
  trials.reserve(arms * rounds);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t left = arms; left > 1; --left)
      std::swap(order[left - 1], order[random() % left]);
    for (const std::size_t arm : order) trials.push_back({round, arm});
  }
  return trials;
}

std::vector<Comparison> compare_arms(const std::vector<Arm>& arms,
                                     const std::vector<reports::Tally>& tallies) {
  std::vector<double> chances;
  for (std::size_t i = 1; i < arms.size(); ++i)
    chances.push_back(reports::fisher_exact(tallies[i], tallies.front()));
  const std::vector<double> adjusted = reports::holm_adjusted(chances);
  std::vector<Comparison> comparisons;
  for (std::size_t i = 1; i < arms.size(); ++i)
    comparisons.push_back({arms[i], tallies[i], adjusted[i - 1]});
  return comparisons;
}

std::string conclusion(const reports::Tally& baseline, const std::vector<Comparison>& comparisons,
                       double confidence) {
  std::string text =
      fmt::format("baseline: {} of {} rounds failed\n", baseline.failures, baseline.rounds);
  for (const Comparison& each : comparisons) {
    const bool attributed = each.chance < 1 - confidence;
    text += fmt::format(
        "{}={}: {} of {} rounds failed, {} (p = {:.2g}, Fisher's exact test{})\n", each.arm.factor,
        each.arm.value, each.tally.failures, each.tally.rounds,
        attributed ? "the failure rate changes with it" : "nothing can be said of its influence",
        each.chance, comparisons.size() > 1 ? ", Holm's correction" : "");
  }
  return text;
}

}  // namespace savegate::cli
