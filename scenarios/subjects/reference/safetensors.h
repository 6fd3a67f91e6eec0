// The safetensors format: eight bytes of header length (little endian), a JSON header that names
// each tensor with dtype, shape and byte range, then the bytes themselves without gaps.
//
// Any safetensors library reads what is written here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "faults/status.h"
#include "gpu/tensor.h"

namespace savegate::reference {

struct TensorEntry {
  std::string name;
  gpu::Dtype dtype = gpu::Dtype::kU8;
  gpu::Shape shape;
  std::uint64_t begin = 0;  // bytes from the end of the header
  std::uint64_t end = 0;
};

struct TensorHeader {
  std::vector<TensorEntry> entries;  // in the order of their bytes
  std::uint64_t bytes = 0;           // of the header, its length included
};

inline constexpr std::uint64_t kHeaderLengthBytes = 8;
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // the format's own limit

// The header with its length, padded so that the tensors begin at a multiple of 8.
std::string print_header(const std::vector<TensorEntry>& entries);
// Of the header's first eight bytes.
std::uint64_t header_length(const char* first_eight);
// The JSON after the length. Strict: ranges that do not fit dtype and shape, overlap, leave gaps or
// leave the file are refused.
Result<TensorHeader> parse_header(const std::string& json, std::uint64_t file_bytes,
                                  const std::string& path);

}  // namespace savegate::reference
