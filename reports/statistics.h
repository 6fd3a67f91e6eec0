// What counted rounds prove: exact binomial statements, no approximation.
#pragma once

#include <cstdint>
#include <vector>

namespace savegate::reports {

struct Tally {
  std::uint64_t rounds = 0;
  std::uint64_t failures = 0;
};

// Clean rounds after which a failure probability of `probability` or more is excluded with this
// confidence: ceil(ln(1 - confidence) / ln(1 - probability)). Both are between 0 and 1.
std::uint64_t rounds_to_exclude(double probability, double confidence);

// The other way round: what so many clean rounds exclude.
double excluded_probability(std::uint64_t clean_rounds, double confidence);

// Fisher's exact test, two-sided: the probability of counts at least this unequal where both fail
// equally often.
double fisher_exact(const Tally& one, const Tally& other);

// Holm's correction for asking several questions at once, in the order given.
std::vector<double> holm_adjusted(const std::vector<double>& probabilities);

}  // namespace savegate::reports
