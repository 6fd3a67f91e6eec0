#include "gpu/fill.h"

#include <algorithm>
#include <cstring>

namespace savegate::gpu {
namespace {

// The finaliser of SplitMix64: a bijection in which every input bit reaches every output bit.
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t low_bits(int count) { return (std::uint64_t{1} << count) - 1; }

constexpr std::uint64_t kOrdinary = 509;  // of 512 elements; one each is NaN, -0.0 and denormal

std::uint64_t float_bits(const FloatFormat& format, std::uint64_t random) {
  const int exponent_bits = format.exponent_bits;
  const int mantissa_bits = format.mantissa_bits;
  const std::uint64_t sign = (random >> 63) << (exponent_bits + mantissa_bits);
  const std::uint64_t mantissa = (random >> 9) & low_bits(mantissa_bits);
  const std::uint64_t kind = random & 511;
  if (kind == kOrdinary) {  // NaN
    const std::uint64_t payload =
        format.ieee ? std::max<std::uint64_t>(mantissa, 1) : low_bits(mantissa_bits);
    return sign | (low_bits(exponent_bits) << mantissa_bits) | payload;
  }
  if (kind == kOrdinary + 1) return std::uint64_t{1} << (exponent_bits + mantissa_bits);  // -0.0
  if (kind == kOrdinary + 2) return sign | std::max<std::uint64_t>(mantissa, 1);  // denormal
  const std::uint64_t bias = low_bits(exponent_bits - 1);
  const std::uint64_t spread = std::min<std::uint64_t>(8, bias - 1);
  const std::uint64_t exponent = bias - 1 - (random >> 56) % spread;
  return sign | (exponent << mantissa_bits) | mantissa;
}

template <class Word>
void fill_words(const Tensor& tensor, const FillKey& key, std::uint64_t first_index) {
  const std::uint64_t count = elements(tensor.shape);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Word word = static_cast<Word>(element_bits(tensor.dtype, key, first_index + i));
    std::memcpy(tensor.data + i * sizeof(Word), &word, sizeof(Word));
  }
}

}  // namespace

std::uint64_t name_hash(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix(hash);
}

std::uint64_t random_bits(const FillKey& key, std::uint64_t index) {
  constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;
  const std::uint64_t stream = mix(key.seed + kGolden) ^ mix(key.name_hash + key.step * kGolden);
  return mix(stream + (index + 1) * kGolden);
}

std::uint64_t element_bits(Dtype dtype, const FillKey& key, std::uint64_t index) {
  const std::uint64_t random = random_bits(key, index);
  const auto format = float_format(dtype);
  return format ? float_bits(*format, random) : random;
}

void fill_host(const Tensor& tensor, const FillKey& key, std::uint64_t first_index) {
  switch (dtype_bytes(tensor.dtype)) {
    case 1:
      return fill_words<std::uint8_t>(tensor, key, first_index);
    case 2:
      return fill_words<std::uint16_t>(tensor, key, first_index);
    case 4:
      return fill_words<std::uint32_t>(tensor, key, first_index);
    default:
      return fill_words<std::uint64_t>(tensor, key, first_index);
  }
}

}  // namespace savegate::gpu
