#include "gpu/leaf_hash_vectors.h"

#define SAVEGATE_LEAF_HASH hash_leaves_avx2
#include "gpu/leaf_hash_vectors.inc"
