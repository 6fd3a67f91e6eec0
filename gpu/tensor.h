// Tensors: element types and views of memory that a Backend owns.
//
// A view says dtype, shape and where the bytes are; it owns nothing. The memory is the host's or a
// device's, as the Backend that allocated it says: only the backend may look behind `data`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace savegate::gpu {

enum class Dtype : std::uint8_t {
  kF32,
  kF64,
  kBf16,
  kF16,
  kF8E4m3,
  kF8E5m2,
  kI64,
  kI32,
  kU64,
  kU8
};

std::string_view dtype_name(Dtype dtype);  // "f8_e4m3"
std::optional<Dtype> dtype_from_name(std::string_view name);
std::size_t dtype_bytes(Dtype dtype);

// How the bits of a floating-point dtype are divided; nothing for integers. E4M3 has no infinity
// and one NaN of each sign (all ones); the others follow IEEE 754.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool ieee;
};
std::optional<FloatFormat> float_format(Dtype dtype);

using Shape = std::vector<std::uint64_t>;
std::uint64_t elements(const Shape& shape);  // 1 for a scalar

struct Tensor {
  Dtype dtype = Dtype::kU8;
  Shape shape;
  std::byte* data = nullptr;

  std::uint64_t bytes() const { return elements(shape) * dtype_bytes(dtype); }
};

}  // namespace savegate::gpu
