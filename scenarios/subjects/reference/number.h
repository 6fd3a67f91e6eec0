// Numbers of narrow dtypes: to float and, rounding to nearest even, back. For ordinary numbers
// only: what is NaN, zero, denormal or infinite is_ordinary() tells apart, and the training leaves
// it alone.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "gpu/tensor.h"

namespace savegate::reference {

class Number {
 public:
  explicit Number(gpu::FloatFormat format)
      : exponent_bits_(format.exponent_bits),
        mantissa_bits_(format.mantissa_bits),
        bias_((1 << (format.exponent_bits - 1)) - 1) {}

  bool is_ordinary(std::uint32_t bits) const {
    const std::uint32_t exponent = exponent_of(bits);
    return exponent != 0 && exponent != (1U << exponent_bits_) - 1;
  }

  float decode(std::uint32_t bits) const {
    const std::uint32_t sign = bits >> (exponent_bits_ + mantissa_bits_) << 31;
    const std::uint32_t exponent = exponent_of(bits) + static_cast<std::uint32_t>(127 - bias_);
    const std::uint32_t mantissa = (bits & ((1U << mantissa_bits_) - 1)) << (23 - mantissa_bits_);
    return std::bit_cast<float>(sign | exponent << 23 | mantissa);
  }

  // Beyond the range of ordinary numbers the nearest of them.
  std::uint32_t encode(float value) const {
    const std::uint32_t wide = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = wide >> 31 << (exponent_bits_ + mantissa_bits_);
    const int dropped = 23 - mantissa_bits_;
    std::uint32_t magnitude = wide & 0x7fffffffU;
    if (dropped > 0) magnitude += ((magnitude >> dropped) & 1U) + (1U << (dropped - 1)) - 1;
    const std::int64_t rebased = (static_cast<std::int64_t>(magnitude) >> dropped) -
                                 (static_cast<std::int64_t>(127 - bias_) << mantissa_bits_);
    const std::int64_t least = std::int64_t{1} << mantissa_bits_;
    const std::int64_t most = (((std::int64_t{1} << exponent_bits_) - 1) << mantissa_bits_) - 1;
    const std::int64_t clamped = rebased < least ? least : rebased > most ? most : rebased;
    return sign | static_cast<std::uint32_t>(clamped);
  }

 private:
  std::uint32_t exponent_of(std::uint32_t bits) const {
    return (bits >> mantissa_bits_) & ((1U << exponent_bits_) - 1);
  }

  int exponent_bits_;
  int mantissa_bits_;
  int bias_;
};

}  // namespace savegate::reference
