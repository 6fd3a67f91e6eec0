// The unit of the tree digest.
#pragma once

#include <cstddef>

namespace savegate::gpu {

inline constexpr std::size_t kLeafBytes = 4096;

}  // namespace savegate::gpu
