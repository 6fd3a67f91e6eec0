#include "gpu/fill.h"

#include <algorithm>
#include <cstring>

#include "gpu/fill_bits.h"

namespace savegate::gpu {
std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix(hash);
}

std::uint64_t stream_of(const FillKey& key) {
  return mix(key.seed + kGolden) ^ mix(key.name_hash + key.step * kGolden);
}

std::uint64_t random_bits(const FillKey& key, std::uint64_t index) {
  return bits_of_stream(stream_of(key), index);
}

std::uint64_t element_bits(Dtype dtype, const FillKey& key, std::uint64_t index) {
  return with_format(dtype, [&](auto format, auto element) -> std::uint64_t {
    return element_of_stream<decltype(format), decltype(element)>(stream_of(key), index);
  });
}

void fill_host(const Tensor& tensor, const FillKey& key, std::uint64_t first_index) {
  const std::uint64_t stream = stream_of(key);
  const std::uint64_t count = elements(tensor.shape);
  with_format(tensor.dtype, [&](auto format, auto element) {
    constexpr std::uint64_t kTogether = 8 / sizeof(element);
    std::uint64_t done = 0;
    const auto up_to = [&](std::uint64_t end) {  // one by one
      for (; done < end; ++done) {
        element =
            element_of_stream<decltype(format), decltype(element)>(stream, first_index + done);
        std::memcpy(tensor.data + done * sizeof(element), &element, sizeof(element));
      }
    };
    up_to(std::min(count, (kTogether - first_index % kTogether) % kTogether));
    for (; count - done >= kTogether; done += kTogether) {
      const std::uint64_t word =
          format.word(bits_of_stream(stream, (first_index + done) / kTogether));
      std::memcpy(tensor.data + done * sizeof(element), &word, sizeof(word));
    }
    up_to(count);
  });
}

}  // namespace savegate::gpu
