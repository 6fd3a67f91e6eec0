// The arithmetic of the deterministic fill, one source for the host and for devices.
//
// Eight bytes at a time: one random number makes a word of one to eight elements, all of its fields
// at once, so that narrow dtypes are filled as fast as wide ones.
#pragma once

#include <cstdint>

#include "gpu/cuda/host_device.h"
#include "gpu/tensor.h"

namespace savegate::gpu {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

// The finaliser of SplitMix64: a bijection in which every input bit reaches every output bit.
SAVEGATE_HOST_DEVICE constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// The number at `index` of the stream that a FillKey names (stream_of, fill.h).
SAVEGATE_HOST_DEVICE constexpr std::uint64_t bits_of_stream(std::uint64_t stream,
                                                            std::uint64_t index) {
  return mix(stream + (index + 1) * kGolden);
}

SAVEGATE_HOST_DEVICE constexpr std::uint64_t low_bits(int count) {
  return count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

// Words of integers: random over their full range.
struct IntegerBits {
  SAVEGATE_HOST_DEVICE static constexpr std::uint64_t word(std::uint64_t random) { return random; }
};

// Words of floating-point elements: ordinary ones, but about one word in 171 has a NaN, a negative
// zero or a denormal at a random place in it.
template <int kExponentBits, int kMantissaBits, bool kIeee>
struct FloatBits {
  SAVEGATE_HOST_DEVICE static constexpr std::uint64_t word(std::uint64_t random) {
    constexpr int kBits = 1 + kExponentBits + kMantissaBits;
    constexpr std::uint64_t kOnes = low_bits(64) / low_bits(kBits);  // a one in each element
    constexpr std::uint64_t kBias = low_bits(kExponentBits - 1);
    constexpr std::uint64_t kSpread = kBias > 8 ? 7 : 3;  // of exponents, less one
    constexpr std::uint64_t kSign = std::uint64_t{1} << (kBits - 1);
    constexpr std::uint64_t kMantissa = low_bits(kMantissaBits);
    const std::uint64_t kept = random & (kOnes * (kSign | kMantissa));
    // No element borrows from its neighbour: the spread is less than the bias.
    const std::uint64_t exponents =
        kOnes * (kBias - 1) - (random >> kMantissaBits & (kOnes * kSpread));
    const std::uint64_t ordinary = kept | exponents << kMantissaBits;

    constexpr std::uint64_t kOrdinary = 509;  // of 512 words
    const std::uint64_t kind = random * kGolden >> 55;
    if (kind < kOrdinary) return ordinary;
    const int place = static_cast<int>(random >> 32 & (64 / kBits - 1)) * kBits;
    const std::uint64_t own = kept >> place & (kSign | kMantissa);
    const std::uint64_t payload = (own & kMantissa) == 0 ? 1 : own & kMantissa;
    std::uint64_t special = kSign;  // -0.0
    if (kind == kOrdinary) {        // NaN
      special =
          (own & kSign) | low_bits(kExponentBits) << kMantissaBits | (kIeee ? payload : kMantissa);
    } else if (kind == kOrdinary + 1) {  // denormal
      special = (own & kSign) | payload;
    }
    return (ordinary & ~(low_bits(kBits) << place)) | special << place;
  }
};

// Calls `use` with the arithmetic of the dtype and an element as wide: use(FloatBits<…>{},
// uint16_t{}).
template <class Use>
auto with_format(Dtype dtype, Use use) {
  // NOLINTBEGIN(bugprone-branch-clone): the formats differ in type
  switch (dtype) {
    case Dtype::kF32:
      return use(FloatBits<8, 23, true>{}, std::uint32_t{});
    case Dtype::kF64:
      return use(FloatBits<11, 52, true>{}, std::uint64_t{});
    case Dtype::kBf16:
      return use(FloatBits<8, 7, true>{}, std::uint16_t{});
    case Dtype::kF16:
      return use(FloatBits<5, 10, true>{}, std::uint16_t{});
    case Dtype::kF8E4m3:
      return use(FloatBits<4, 3, false>{}, std::uint8_t{});
    case Dtype::kF8E5m2:
      return use(FloatBits<5, 2, true>{}, std::uint8_t{});
    case Dtype::kI32:
      return use(IntegerBits{}, std::uint32_t{});
    case Dtype::kU8:
      return use(IntegerBits{}, std::uint8_t{});
    default:
      return use(IntegerBits{}, std::uint64_t{});
  }
  // NOLINTEND(bugprone-branch-clone)
}

// Element `index` of a stream, in the low bits.
template <class Format, class Element>
SAVEGATE_HOST_DEVICE constexpr Element element_of_stream(std::uint64_t stream,
                                                         std::uint64_t index) {
  constexpr unsigned kTogether = 8 / sizeof(Element);
  const std::uint64_t word = Format::word(bits_of_stream(stream, index / kTogether));
  return static_cast<Element>(word >> (index % kTogether * 8 * sizeof(Element)));
}

}  // namespace savegate::gpu
