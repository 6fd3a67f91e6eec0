#include "gpu/tensor.h"

#include <algorithm>
#include <array>

namespace savegate::gpu {
namespace {

struct DtypeFacts {
  Dtype dtype;
  std::string_view name;
  std::size_t bytes;
  std::optional<FloatFormat> format;
};

constexpr std::array<DtypeFacts, 10> kFacts = {{
    {Dtype::kF32, "f32", 4, FloatFormat{8, 23, true}},
    {Dtype::kF64, "f64", 8, FloatFormat{11, 52, true}},
    {Dtype::kBf16, "bf16", 2, FloatFormat{8, 7, true}},
    {Dtype::kF16, "f16", 2, FloatFormat{5, 10, true}},
    {Dtype::kF8E4m3, "f8_e4m3", 1, FloatFormat{4, 3, false}},
    {Dtype::kF8E5m2, "f8_e5m2", 1, FloatFormat{5, 2, true}},
    {Dtype::kI64, "i64", 8, std::nullopt},
    {Dtype::kI32, "i32", 4, std::nullopt},
    {Dtype::kU64, "u64", 8, std::nullopt},
    {Dtype::kU8, "u8", 1, std::nullopt},
}};

const DtypeFacts& facts(Dtype dtype) { return kFacts[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view dtype_name(Dtype dtype) { return facts(dtype).name; }

std::optional<Dtype> dtype_from_name(std::string_view name) {
  const auto* found = std::find_if(kFacts.begin(), kFacts.end(),
                                   [&](const DtypeFacts& each) { return each.name == name; });
  if (found == kFacts.end()) return std::nullopt;
  return found->dtype;
}

std::size_t dtype_bytes(Dtype dtype) { return facts(dtype).bytes; }

std::optional<FloatFormat> float_format(Dtype dtype) { return facts(dtype).format; }

std::uint64_t elements(const Shape& shape) {
  std::uint64_t product = 1;
  for (std::uint64_t extent : shape) product *= extent;
  return product;
}

}  // namespace savegate::gpu
