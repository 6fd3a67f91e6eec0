#include "gpu/neighbour.h"

#include <algorithm>
#include <string>

namespace savegate::gpu {
namespace {

constexpr std::uint64_t kLargest = 1ULL << 30;
constexpr std::uint64_t kSmallest = 2ULL << 20;  // a device's page

}  // namespace

Result<std::uint64_t> Neighbour::free_bytes() {
  SAVEGATE_TRY(const auto facts, backend_.memory());
  if (!facts) {
    return fail(invalid(std::string(backend_.name()) + " has no memory of its own to take"));
  }
  return facts->free;
}

// In ever smaller pieces, as long as more than `headroom` is free. What the device calls free need
// not be had by any one allocation, so the pieces that fail end it, not the count.
Result<std::uint64_t> Neighbour::take(std::uint64_t headroom) {
  std::uint64_t taken = 0;
  std::uint64_t piece = kLargest;
  while (piece >= kSmallest) {
    SAVEGATE_TRY(const std::uint64_t free, free_bytes());
    if (free < headroom + kSmallest) break;
    while (piece > free - headroom) piece /= 2;
    auto buffer = backend_.allocate(piece);
    if (buffer) {
      held_.push_back(std::move(*buffer));
      taken += piece;
    } else if (buffer.error().error == ENOMEM) {
      piece /= 2;
    } else {
      return fail(buffer.error());
    }
  }
  return taken;
}

Result<std::uint64_t> Neighbour::probe() {
  SAVEGATE_TRY(const std::uint64_t taken, take(0));
  held_.clear();
  SAVEGATE_CHECK(backend_.trim());
  return taken;
}

Result<std::uint64_t> Neighbour::leave(std::uint64_t headroom) {
  SAVEGATE_TRY(const std::uint64_t taken, take(headroom));
  static_cast<void>(taken);
  return free_bytes();
}

}  // namespace savegate::gpu
