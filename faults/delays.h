// Delays that are drawn: how long an operation waits, from two uniform random numbers.
#pragma once

#include <cstdint>

#include "faults/plan.h"

namespace savegate::faults {

// `u` and `v` in [0, 1). Nanoseconds; a draw below 0 is 0, one that does not fit is UINT64_MAX.
std::uint64_t draw_delay(const DelayAction& delay, double u, double v);

// One link that all operations of a rule share, each waiting for those before it.
// Returns when `bytes` are through if they arrive at now_ns, and moves `free_ns`, at which the link
// is free, there.
std::uint64_t pass_link(std::uint64_t& free_ns, std::uint64_t bytes_per_second, std::uint64_t bytes,
                        std::uint64_t now_ns);

}  // namespace savegate::faults
