#include "scenarios/subjects/reference/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace savegate::reference {
namespace {

using OrderedJson = nlohmann::ordered_json;
using gpu::Dtype;

constexpr std::array<std::pair<Dtype, const char*>, 10> kNames = {{
    {Dtype::kF32, "F32"},
    {Dtype::kF64, "F64"},
    {Dtype::kBf16, "BF16"},
    {Dtype::kF16, "F16"},
    {Dtype::kF8E4m3, "F8_E4M3"},
    {Dtype::kF8E5m2, "F8_E5M2"},
    {Dtype::kI64, "I64"},
    {Dtype::kI32, "I32"},
    {Dtype::kU64, "U64"},
    {Dtype::kU8, "U8"},
}};

std::optional<Dtype> dtype_of(const std::string& name) {
  for (const auto& [dtype, text] : kNames) {
    if (name == text) return dtype;
  }
  return std::nullopt;
}

}  // namespace

std::string print_header(const std::vector<TensorEntry>& entries) {
  OrderedJson json = {{"__metadata__", {{"format", "savegate-reference 1"}}}};
  for (const TensorEntry& entry : entries) {
    json[entry.name] = {{"dtype", kNames[static_cast<std::size_t>(entry.dtype)].second},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  const std::uint64_t length = text.size();
  std::string whole(reinterpret_cast<const char*>(&length), kHeaderLengthBytes);
  return whole + text;
}

std::uint64_t header_length(const char* first_eight) {
  std::uint64_t length = 0;
  std::memcpy(&length, first_eight, kHeaderLengthBytes);
  return length;
}

Result<TensorHeader> parse_header(const std::string& text, std::uint64_t file_bytes,
                                  const std::string& path) {
  const OrderedJson json = OrderedJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(invalid("the safetensors header is no JSON object", path));
  TensorHeader header;
  header.bytes = kHeaderLengthBytes + text.size();
  // The library throws where a key is missing or of another type; nothing of that leaves here.
  try {
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") continue;
      const auto dtype = dtype_of(value.at("dtype").get<std::string>());
      if (!dtype) return fail(invalid("tensor " + name + " has an unknown dtype", path));
      const OrderedJson& range = value.at("data_offsets");
      TensorEntry entry{name, *dtype, value.at("shape").get<gpu::Shape>(),
                        range.at(0).get<std::uint64_t>(), range.at(1).get<std::uint64_t>()};
      if (entry.end < entry.begin ||
          entry.end - entry.begin != gpu::elements(entry.shape) * gpu::dtype_bytes(entry.dtype)) {
        return fail(invalid("tensor " + name + " has a range that does not fit its shape", path));
      }
      header.entries.push_back(std::move(entry));
    }
  } catch (const OrderedJson::exception& error) {
    return fail(invalid(std::string("the safetensors header is malformed: ") + error.what(), path));
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const TensorEntry& a, const TensorEntry& b) { return a.begin < b.begin; });
  std::uint64_t at = 0;
  for (const TensorEntry& entry : header.entries) {
    if (entry.begin != at) {
      return fail(invalid("tensor " + entry.name + " leaves a gap or overlaps another", path));
    }
    at = entry.end;
  }
  if (header.bytes + at != file_bytes) {
    return fail(invalid("the tensors end at byte " + std::to_string(header.bytes + at) +
                            " of a file of " + std::to_string(file_bytes),
                        path));
  }
  return header;
}

}  // namespace savegate::reference
