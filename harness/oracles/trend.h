// The trend of a series with outliers: Theil and Sen's slope, the median over all pairs of points.
#pragma once

#include <utility>
#include <vector>

namespace savegate::harness {

struct Trend {
  double slope = 0;           // median
  double lower_quartile = 0;  // above 0: three of four pairs of points grow
};
// (x, y), each x once; with fewer than two points there is no trend.
Trend trend_of(const std::vector<std::pair<double, double>>& points);

}  // namespace savegate::harness
