// Two ways measured in turn, round by round, so that whatever else the machine does meets both.
#pragma once

#include <functional>
#include <vector>

namespace savegate::fusefs::bench {

double median(std::vector<double> values);
double quantile(std::vector<double> values, double share);

// Seconds of a steady clock.
double now();

struct Compared {
  double first = 0;   // median
  double second = 0;  // median
  double ratio = 0;   // second / first, the median of each round's own
};
// One round more than asked is done first and not counted.
Compared in_turn(int rounds, const std::function<double()>& first,
                 const std::function<double()>& second);

// Ends the program, saying which call failed: a figure from a failed run is none.
[[noreturn]] void give_up(const char* call);
template <class T>
T checked(T result, const char* call) {
  if (result < 0) give_up(call);
  return result;
}

}  // namespace savegate::fusefs::bench
