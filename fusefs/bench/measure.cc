#include "fusefs/bench/measure.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace savegate::fusefs::bench {

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto at =
      static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)));
  return values[at];
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Compared in_turn(int rounds, const std::function<double()>& first,
                 const std::function<double()>& second) {
  std::vector<double> firsts;
  std::vector<double> seconds;
  std::vector<double> ratios;
  first();
  second();
  for (int round = 0; round < rounds; round++) {
    firsts.push_back(first());
    seconds.push_back(second());
    ratios.push_back(seconds.back() / firsts.back());
  }
  return {median(firsts), median(seconds), median(ratios)};
}

void give_up(const char* call) {
  std::fprintf(stderr, "fusefs_bench: %s: %s\n", call, std::strerror(errno));
  std::exit(1);
}

}  // namespace savegate::fusefs::bench
