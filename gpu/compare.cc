#include "gpu/compare.h"

#include <algorithm>
#include <cstring>

namespace savegate::gpu {

Difference compare_host(const void* left, const void* right, std::uint64_t bytes) {
  constexpr std::uint64_t kBlock = 65536;
  const auto* a = static_cast<const std::byte*>(left);
  const auto* b = static_cast<const std::byte*>(right);
  Difference difference;
  for (std::uint64_t at = 0; at < bytes; at += kBlock) {
    const std::uint64_t end = std::min(bytes, at + kBlock);
    if (std::memcmp(a + at, b + at, end - at) == 0) continue;
    for (std::uint64_t i = at; i < end; ++i) {
      if (a[i] == b[i]) continue;
      if (!difference.first) difference.first = i;
      ++difference.count;
    }
  }
  return difference;
}

}  // namespace savegate::gpu
