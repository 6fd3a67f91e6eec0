// hash_leaves() once for each instruction set; the sources are one file, compiled with its options.
#pragma once

#include <cstddef>
#include <cstdint>

namespace savegate::gpu {

using LeafHash = void(const void* data, std::size_t count, std::uint64_t* leaves);

LeafHash hash_leaves_baseline;
LeafHash hash_leaves_avx2;
LeafHash hash_leaves_avx512;

}  // namespace savegate::gpu
