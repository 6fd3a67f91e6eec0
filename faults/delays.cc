#include "faults/delays.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace savegate::faults {
namespace {

std::uint64_t whole(double nanoseconds) {
  constexpr double kMost = 0x1p64;
  if (!(nanoseconds > 0)) return 0;
  return nanoseconds >= kMost ? UINT64_MAX : static_cast<std::uint64_t>(nanoseconds);
}

}  // namespace

std::uint64_t draw_delay(const DelayAction& delay, double u, double v) {
  const auto base = static_cast<double>(delay.nanoseconds);
  switch (delay.spread) {
    case Spread::kFixed:
      return delay.nanoseconds;
    case Spread::kUniform:
      return delay.nanoseconds + whole(u * static_cast<double>(delay.to_ns - delay.nanoseconds));
    case Spread::kExponential:
      return whole(-base * std::log1p(-u));
    case Spread::kNormal: {
      const double z =
          std::sqrt(-2 * std::log1p(-u)) * std::cos(2 * std::numbers::pi_v<double> * v);
      return whole(base + static_cast<double>(delay.deviation_ns) * z);
    }
    case Spread::kPareto:
      return whole(base * std::pow(1 - u, -1 / delay.shape));
  }
  return 0;
}

std::uint64_t pass_link(std::uint64_t& free_ns, std::uint64_t bytes_per_second, std::uint64_t bytes,
                        std::uint64_t now_ns) {
  const double taken = static_cast<double>(bytes) / static_cast<double>(bytes_per_second) * 1e9;
  const std::uint64_t begin = std::max(free_ns, now_ns);
  const std::uint64_t nanoseconds = whole(taken);
  free_ns = nanoseconds > UINT64_MAX - begin ? UINT64_MAX : begin + nanoseconds;
  return free_ns;
}

}  // namespace savegate::faults
