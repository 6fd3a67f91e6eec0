#include "harness/memory/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "faults/json_text.h"

namespace savegate::harness {
namespace {

using Json = nlohmann::json;

struct Dtype {
  const char* name;
  std::uint64_t bits;
};
constexpr std::array<Dtype, 21> kDtypes = {
    {{"BOOL", 8},        {"U8", 8},      {"I8", 8},      {"F4", 4},      {"F6_E2M3", 6},
     {"F6_E3M2", 6},     {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
     {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
     {"I32", 32},        {"U32", 32},    {"F32", 32},    {"I64", 64},    {"U64", 64},
     {"F64", 64}}};

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string name;
};

std::optional<std::uint64_t> bits_of(const std::string& dtype) {
  const auto* found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                   [&](const Dtype& each) { return dtype == each.name; });
  if (found == kDtypes.end()) return std::nullopt;
  return found->bits;
}

Status wrong(const std::string& tensor, const std::string& what) {
  return invalid("safetensors header: tensor `" + tensor + "` " + what);
}

// Bytes that dtype and shape take; nothing where that is more than 2^64 bits.
std::optional<std::uint64_t> size_of(const Json& shape, std::uint64_t bits) {
  std::uint64_t total = bits;
  for (const Json& extent : shape) {
    if (__builtin_mul_overflow(total, extent.get<std::uint64_t>(), &total)) return std::nullopt;
  }
  if (total % 8 != 0) return std::nullopt;
  return total / 8;
}

bool are_counts(const Json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(),
                                        [](const Json& each) { return each.is_number_unsigned(); });
}

Result<Range> add_tensor(const std::string& name, const Json& tensor, SafetensorsSummary& summary) {
  if (!tensor.is_object()) return fail(wrong(name, "is no object"));
  const Json dtype = tensor.value("dtype", Json());
  const Json shape = tensor.value("shape", Json());
  const Json offsets = tensor.value("data_offsets", Json());
  if (!dtype.is_string()) return fail(wrong(name, "has no dtype"));
  if (!are_counts(shape)) return fail(wrong(name, "has no shape"));
  if (!are_counts(offsets) || offsets.size() != 2) return fail(wrong(name, "has no data_offsets"));
  const auto bits = bits_of(dtype.get<std::string>());
  if (!bits) return fail(wrong(name, "has the unknown dtype " + faults::json_text(dtype)));
  const Range range{offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>(), name};
  const auto bytes = size_of(shape, *bits);
  if (range.end < range.begin || !bytes || *bytes != range.end - range.begin) {
    return fail(wrong(name, fmt::format("has {} and the shape {}, which is not what its "
                                        "data_offsets {} hold",
                                        dtype.get<std::string>(), faults::json_text(shape),
                                        faults::json_text(offsets))));
  }
  ++summary.tensors;
  summary.bytes += *bytes;
  summary.bytes_by_dtype[dtype.get<std::string>()] += *bytes;
  return range;
}

Result<void> check_ranges(std::vector<Range> ranges, std::uint64_t data_bytes) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& left, const Range& right) {
    return std::pair(left.begin, left.end) < std::pair(right.begin, right.end);
  });
  std::uint64_t at = 0;
  for (const Range& range : ranges) {
    if (range.begin < at) return fail(wrong(range.name, "overlaps the one before it"));
    if (range.begin > at) {
      return fail(
          wrong(range.name, fmt::format("leaves {} bytes unused before it", range.begin - at)));
    }
    at = range.end;
  }
  if (at == data_bytes) return {};
  return fail(
      invalid(fmt::format("safetensors header: the tensors take {} bytes, but the file "
                          "holds {}: it is {}",
                          at, data_bytes, at > data_bytes ? "truncated" : "too long")));
}

}  // namespace

Result<SafetensorsSummary> parse_safetensors_header(std::string_view json,
                                                    std::uint64_t data_bytes) {
  const Json header = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object()) {
    return fail(invalid("safetensors header: no JSON object"));
  }
  SafetensorsSummary summary;
  std::vector<Range> ranges;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    SAVEGATE_TRY(Range range, add_tensor(name, tensor, summary));
    ranges.push_back(std::move(range));
  }
  SAVEGATE_CHECK(check_ranges(std::move(ranges), data_bytes));
  return summary;
}

Result<SafetensorsSummary> read_safetensors_header(const std::string& path) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  if (error) return fail(system_error("stat", path, error.value()));
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(system_error("open", path));
  std::array<unsigned char, 8> prefix{};
  if (size < prefix.size()) return fail(invalid("safetensors: too short for a header", path));
  file.read(reinterpret_cast<char*>(prefix.data()), prefix.size());
  std::uint64_t length = 0;
  for (std::size_t i = prefix.size(); i-- > 0;) length = length << 8 | prefix[i];
  if (length > kLongestHeader || length > size - prefix.size()) {
    return fail(invalid(fmt::format("safetensors: a header of {} bytes in a file of {} (at most "
                                    "{} are read)",
                                    length, size, kLongestHeader),
                        path));
  }
  std::string json(length, '\0');
  file.read(json.data(), static_cast<std::streamsize>(length));
  if (!file) return fail(system_error("read", path));
  auto summary = parse_safetensors_header(json, size - prefix.size() - length);
  if (!summary) summary.error().path = path;
  return summary;
}

}  // namespace savegate::harness
