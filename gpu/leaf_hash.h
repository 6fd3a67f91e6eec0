// Leaves of the tree digest, as fast as this processor can: the widest of the instruction sets that
// it has is chosen once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace savegate::gpu {

// The hashes of `count` whole leaves that follow one another.
void hash_leaves(const void* data, std::size_t count, std::uint64_t* leaves);

}  // namespace savegate::gpu
