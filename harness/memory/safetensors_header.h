// The header of a safetensors file: what its tensors take, without reading one.
//
// Only the first 8 bytes (the header's length, little endian) and the header, a JSON object, are
// read. A header that does not describe the file exactly is an error that names what is wrong:
// tensors must follow each other without gap or overlap up to the file's end.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "faults/status.h"

namespace savegate::harness {

// As the reference implementation: a longer header is refused unread.
inline constexpr std::uint64_t kLongestHeader = 100'000'000;  // bytes

struct SafetensorsSummary {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;                              // of all tensors
  std::map<std::string, std::uint64_t> bytes_by_dtype;  // "BF16" → bytes
};

// `data_bytes`: what the file holds behind the header.
Result<SafetensorsSummary> parse_safetensors_header(std::string_view json,
                                                    std::uint64_t data_bytes);
Result<SafetensorsSummary> read_safetensors_header(const std::string& path);

}  // namespace savegate::harness
