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

// A bijection in which every input bit reaches every output bit: two multiplications, and shifts by
// half a word, which cost a device next to nothing.
SAVEGATE_HOST_DEVICE constexpr std::uint64_t mix(std::uint64_t x) {
  constexpr std::uint64_t kFactor = 0xd6e8feb86659fd93ULL;
  x = (x ^ x >> 32) * kFactor;
  x = (x ^ x >> 32) * kFactor;
  return x ^ x >> 32;
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

// Words of floating-point elements: ordinary ones of a magnitude below two, but in one word of 256
// all are NaNs, negative zeros or denormals.
template <int kExponentBits, int kMantissaBits, bool kIeee>
struct FloatBits {
  SAVEGATE_HOST_DEVICE static constexpr std::uint64_t word(std::uint64_t random) {
    constexpr int kBits = 1 + kExponentBits + kMantissaBits;
    constexpr std::uint64_t kOnes = low_bits(64) / low_bits(kBits);  // a one in each element
    constexpr std::uint64_t kMantissa = kOnes * low_bits(kMantissaBits);
    constexpr std::uint64_t kExponent = kOnes * low_bits(kExponentBits) << kMantissaBits;
    constexpr std::uint64_t kSign = kOnes << (kBits - 1);
    // An exponent has its top bits as the one of 1.0 has them, and low bits at random.
    constexpr int kRandomBits = kExponentBits > 4 ? 3 : 2;
    constexpr std::uint64_t kTop = kOnes * (low_bits(kExponentBits) - low_bits(kRandomBits))
                                   << kMantissaBits;
    constexpr std::uint64_t kOfOne = kTop & ~(kOnes << (kBits - 2));
    // Eight of the random bits that ordinary elements have no use for.
    constexpr std::uint64_t kChoice = kOnes * low_bits(kBits / 8) << (kMantissaBits + kRandomBits);

    if ((random & kChoice) != 0) return (random & ~kTop) | kOfOne;
    const std::uint64_t kept = random & (kSign | kMantissa);
    switch (random * kGolden >> 62) {
      case 0:
        return kSign;  // -0.0
      case 1:
        return kept | kOnes;  // a denormal: its mantissa is not zero
      default:
        return kept | kExponent | (kIeee ? kOnes : kMantissa);  // a NaN
    }
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
