// A save path repeated, one factor changed at a time (H3).
//
// The arms are the baseline, in which every factor has its first value, and for each other value of
// each factor one that differs from the baseline in it alone. Every round runs each arm once, in an
// order drawn from the seed, so that what changes with time reaches all of them alike. Two factors
// are never changed together: what such a comparison shows could not be attributed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/status.h"
#include "reports/statistics.h"

namespace savegate::cli {

struct Factor {
  std::string name;                 // "backing", "world", a variable of the subject, "env.NAME"
  std::vector<std::string> values;  // the first is the baseline's
};
// "writers=1,8"
Result<Factor> parse_factor(const std::string& text);

// Where `factor` is "", the baseline.
struct Arm {
  std::string factor;
  std::string value;
};
std::vector<Arm> arms_of(const std::vector<Factor>& factors);

struct Trial {
  std::uint64_t round;  // from 0
  std::size_t arm;
};
std::vector<Trial> schedule(std::size_t arms, std::uint64_t rounds, std::uint64_t seed);

// An arm against the baseline.
struct Comparison {
  Arm arm;
  reports::Tally tally;
  double chance = 1;  // of counts this unequal by chance alone, corrected for all comparisons
};
// `tallies` as `arms`, the baseline first.
std::vector<Comparison> compare_arms(const std::vector<Arm>& arms,
                                     const std::vector<reports::Tally>& tallies);

// What a person may conclude, one line an arm, where a chance below 1 - confidence counts.
std::string conclusion(const reports::Tally& baseline, const std::vector<Comparison>& comparisons,
                       double confidence);

}  // namespace savegate::cli
