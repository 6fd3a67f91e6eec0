// The deterministic fill, 16 bytes a thread at a time.
#pragma once

#include "gpu/cuda/host_device.h"
#include "gpu/fill_bits.h"

namespace savegate::gpu::cuda {

// `Format` is FloatBits<…> or IntegerBits; `Element` is as wide as the dtype.
template <class Element, class Format>
__device__ void fill_elements(std::uint8_t* data, std::uint64_t count, std::uint64_t stream,
                              std::uint64_t first_index) {
  constexpr unsigned kWord = 8 / sizeof(Element);  // elements
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  // Whole words can be stored where the memory and the first index begin with one.
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && first_index % kWord == 0;
  const std::uint64_t pieces = aligned ? count / (2 * kWord) : 0;
  const std::uint64_t first_word = first_index / kWord;
  for (std::uint64_t at = thread; at < pieces; at += threads) {
    const std::uint64_t word = first_word + 2 * at;
    __stcs(reinterpret_cast<ulonglong2*>(data) + at,
           make_ulonglong2(Format::word(bits_of_stream(stream, word)),
                           Format::word(bits_of_stream(stream, word + 1))));
  }
  for (std::uint64_t at = pieces * 2 * kWord + thread; at < count; at += threads) {
    const auto value = element_of_stream<Format, Element>(stream, first_index + at);
    memcpy(data + at * sizeof(Element), &value, sizeof(Element));
  }
}

}  // namespace savegate::gpu::cuda
