// The deterministic fill, 16 bytes at a time. A block fills one span of the tensor and ends: memory
// is written in order, and faster than by blocks that each come back for more.
#pragma once

#include "gpu/cuda/host_device.h"
#include "gpu/fill_bits.h"

namespace savegate::gpu::cuda {

inline constexpr unsigned kFillThreads = 512;  // a block
inline constexpr unsigned kFillPieces = 4;     // of 16 bytes a thread
inline constexpr std::uint64_t kFillSpan = std::uint64_t{16} * kFillThreads * kFillPieces;  // bytes

// A whole span of a tensor that begins at `word` of the stream and at a multiple of 16.
template <class Format>
__device__ void fill_span(ulonglong2* data, std::uint64_t stream, std::uint64_t word) {
  std::uint64_t counter = stream + (word + 2 * threadIdx.x + 1) * kGolden;
  SAVEGATE_UNROLL
  for (unsigned i = 0; i < kFillPieces; ++i) {
    __stcs(data + i * kFillThreads + threadIdx.x,
           make_ulonglong2(Format::word(mix(counter)), Format::word(mix(counter + kGolden))));
    counter += 2 * kFillThreads * kGolden;
  }
}

// `Format` is FloatBits<…> or IntegerBits; `Element` is as wide as the dtype.
template <class Element, class Format>
__device__ void fill_elements(std::uint8_t* data, std::uint64_t count, std::uint64_t stream,
                              std::uint64_t first_index) {
  constexpr unsigned kWord = 8 / sizeof(Element);                   // elements
  constexpr std::uint64_t kElements = kFillSpan / sizeof(Element);  // of a span
  const std::uint64_t first = blockIdx.x * kElements;
  const bool aligned = reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && first_index % kWord == 0;
  if (aligned && count - first >= kElements) {
    fill_span<Format>(reinterpret_cast<ulonglong2*>(data + first * sizeof(Element)), stream,
                      (first_index + first) / kWord);
    return;
  }
  const std::uint64_t end = count - first < kElements ? count : first + kElements;
  for (std::uint64_t at = first + threadIdx.x; at < end; at += kFillThreads) {
    const auto value = element_of_stream<Format, Element>(stream, first_index + at);
    memcpy(data + at * sizeof(Element), &value, sizeof(Element));
  }
}

}  // namespace savegate::gpu::cuda
