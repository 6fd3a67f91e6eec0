#include "reports/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace savegate::reports {
namespace {

double log_choose(std::uint64_t n, std::uint64_t k) {
  const auto log_factorial = [](std::uint64_t of) {
    return std::lgamma(static_cast<double>(of) + 1.0);
  };
  return log_factorial(n) - log_factorial(k) - log_factorial(n - k);
}

}  // namespace

std::uint64_t rounds_to_exclude(double probability, double confidence) {
  return static_cast<std::uint64_t>(std::ceil(std::log1p(-confidence) / std::log1p(-probability)));
}

double excluded_probability(std::uint64_t clean_rounds, double confidence) {
  return -std::expm1(std::log1p(-confidence) / static_cast<double>(clean_rounds));
}

double fisher_exact(const Tally& one, const Tally& other) {
  const std::uint64_t rounds = one.rounds + other.rounds;
  const std::uint64_t failures = one.failures + other.failures;
  const auto log_probability = [&](std::uint64_t of_one) {
    return log_choose(one.rounds, of_one) + log_choose(other.rounds, failures - of_one) -
           log_choose(rounds, failures);
  };
  const std::uint64_t least = failures > other.rounds ? failures - other.rounds : 0;
  const std::uint64_t most = std::min(failures, one.rounds);
  // As likely as what was seen, up to rounding.
  const double seen = log_probability(one.failures) + 1e-9;
  double sum = 0;
  for (std::uint64_t k = least; k <= most; ++k)
    if (const double each = log_probability(k); each <= seen) sum += std::exp(each);
  return std::min(sum, 1.0);
}

std::vector<double> holm_adjusted(const std::vector<double>& probabilities) {
  std::vector<std::size_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return probabilities[a] < probabilities[b]; });
  std::vector<double> adjusted(probabilities.size());
  double largest = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double scaled = probabilities[order[i]] * static_cast<double>(order.size() - i);
    largest = std::max(largest, std::min(scaled, 1.0));
    adjusted[order[i]] = largest;
  }
  return adjusted;
}

}  // namespace savegate::reports
