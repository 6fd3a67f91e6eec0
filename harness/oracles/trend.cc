#include "harness/oracles/trend.h"

#include <algorithm>

namespace savegate::harness {

Trend trend_of(const std::vector<std::pair<double, double>>& points) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      slopes.push_back((points[i].second - points[j].second) / (points[i].first - points[j].first));
    }
  }
  if (slopes.empty()) return {};
  std::sort(slopes.begin(), slopes.end());
  return {.slope = slopes[slopes.size() / 2], .lower_quartile = slopes[slopes.size() / 4]};
}

}  // namespace savegate::harness
