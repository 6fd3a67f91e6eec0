// Deterministic fill: an element is known from (seed, name, index, step), so nothing is ever stored
// to compare against, and every rank can compute any other rank's values.
//
// Floating-point elements are ordinary numbers of a magnitude below two, except that in one of 256
// words of eight bytes all are NaNs with random payloads, negative zeros or denormals: what a save
// path that converts would lose. Integers are random over their full range.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/tensor.h"

namespace savegate::gpu {

struct FillKey {
  std::uint64_t seed = 0;
  std::uint64_t name_hash = 0;  // name_hash("model.embed")
  std::uint64_t step = 0;
};

std::uint64_t name_hash(std::string_view name);

// The numbers of a key: random_bits(key, i) is the i-th.
std::uint64_t stream_of(const FillKey& key);

// A well-mixed 64-bit number for each (key, index): the counter-based generator itself.
std::uint64_t random_bits(const FillKey& key, std::uint64_t index);

// The bits of one element, in the low bits of the result.
std::uint64_t element_bits(Dtype dtype, const FillKey& key, std::uint64_t index);

// Host memory. `first_index` is the index of the view's first element in the whole tensor.
void fill_host(const Tensor& tensor, const FillKey& key, std::uint64_t first_index);

}  // namespace savegate::gpu
