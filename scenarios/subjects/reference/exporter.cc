#include "scenarios/subjects/reference/exporter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "scenarios/subjects/reference/files.h"
#include "scenarios/subjects/reference/number.h"

namespace savegate::reference {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kBlock = 64;  // elements that share a scale
constexpr gpu::Dtype kExported = gpu::Dtype::kF8E4m3;
constexpr float kLargest = 448;  // of that dtype

// The values of a floating-point tensor; 0 for what is no ordinary number.
class Values {
 public:
  Values(gpu::Dtype dtype, const Bytes& bytes)
      : width_(gpu::dtype_bytes(dtype)), number_(*gpu::float_format(dtype)), bytes_(bytes) {}

  std::uint64_t count() const { return bytes_.size() / width_; }
  float operator[](std::uint64_t index) const {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes_.data() + index * width_, width_);
    return number_.is_ordinary(bits) ? number_.decode(bits) : 0;
  }

 private:
  std::size_t width_;
  Number number_;
  const Bytes& bytes_;
};

void derive_scales(const Values& values, std::vector<float>& scales) {
  for (std::uint64_t begin = 0; begin < values.count(); begin += kBlock) {
    float largest = 0;
    const std::uint64_t end = std::min(begin + kBlock, values.count());
    for (std::uint64_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
    scales.push_back(largest == 0 ? 1 : largest / kLargest);
  }
}

// `scales` begins with that of the first value.
Bytes quantize(const Values& values, const float* scales) {
  const Number number(*gpu::float_format(kExported));
  Bytes codes;
  codes.reserve(values.count());
  for (std::uint64_t i = 0; i < values.count(); ++i) {
    const float value = values[i] / scales[i / kBlock];
    codes.push_back(value == 0 ? std::byte{0} : std::byte(number.encode(value)));
  }
  return codes;
}

// Quantized are the parameters that a serving engine multiplies with: not those in fp8 already, and
// not tables of integers.
bool is_quantized(gpu::Dtype dtype) {
  return gpu::float_format(dtype).has_value() && gpu::dtype_bytes(dtype) > 1;
}

}  // namespace

// In chunks of whole blocks.
Result<void> Exporter::visit(const gpu::Tensor& tensor,
                             const std::function<void(const Bytes&)>& visitor) {
  for (std::uint64_t at = 0; at < tensor.bytes(); at += kChunkBytes) {
    Bytes bytes(std::min<std::uint64_t>(kChunkBytes, tensor.bytes() - at));
    SAVEGATE_CHECK(backend_.copy_to_host(bytes.data(), tensor, at, bytes.size()));
    visitor(bytes);
  }
  return {};
}

Result<void> Exporter::derive(const State& state) {
  scales_.clear();
  for (const Parameter& parameter : state.parameters) {
    const gpu::Tensor& tensor = state.tensors[parameter.value].tensor;
    Scales scales;
    if (is_quantized(tensor.dtype)) {
      SAVEGATE_CHECK(visit(
          tensor, [&](const Bytes& bytes) { derive_scales(Values(tensor.dtype, bytes), scales); }));
    }
    scales_.push_back(std::move(scales));
  }
  return {};
}

Result<gpu::Digest> Exporter::digest(const State& state) {
  if (scales_.empty()) SAVEGATE_CHECK(derive(state));
  gpu::TreeDigest digest;
  for (std::size_t i = 0; i < state.parameters.size(); ++i) {
    const gpu::Tensor& tensor = state.tensors[state.parameters[i].value].tensor;
    const Scales& scales = scales_[i];
    digest.update(scales.data(), scales.size() * sizeof(float));
    const float* of_chunk = scales.data();
    SAVEGATE_CHECK(visit(tensor, [&](const Bytes& bytes) {
      if (!is_quantized(tensor.dtype)) return digest.update(bytes.data(), bytes.size());
      const Values values(tensor.dtype, bytes);
      const Bytes codes = quantize(values, of_chunk);
      of_chunk += values.count() / kBlock;
      digest.update(codes.data(), codes.size());
    }));
  }
  return digest.finish();
}

}  // namespace savegate::reference
