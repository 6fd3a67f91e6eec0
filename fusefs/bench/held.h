// What held operations cost others, and how soon a process that is killed while held is gone.
#pragma once

#include <string>

namespace savegate::fusefs::bench {

struct Latency {
  double alone = 0;   // seconds, p99 of another file's write of 4 KiB while nothing is held
  double beside = 0;  // the same while so many are
  double ratio = 0;
};
Latency beside_held(int rounds, int held, const std::string& base);

// The longest of all rounds in seconds, from SIGKILL to the process being gone.
double killed_in(const std::string& operation, int rounds, const std::string& base);

}  // namespace savegate::fusefs::bench
