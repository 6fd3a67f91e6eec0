#include "gpu/leaf_hash.h"

#include "gpu/leaf_hash_vectors.h"

namespace savegate::gpu {
namespace {

LeafHash* choose() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0) return hash_leaves_avx512;
  if (__builtin_cpu_supports("avx2") != 0) return hash_leaves_avx2;
#endif
  return hash_leaves_baseline;
}

}  // namespace

void hash_leaves(const void* data, std::size_t count, std::uint64_t* leaves) {
  static LeafHash* const chosen = choose();
  chosen(data, count, leaves);
}

}  // namespace savegate::gpu
