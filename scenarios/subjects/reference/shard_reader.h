// A shard read from front to back: its header first, then every tensor's bytes in order.
#pragma once

#include <functional>
#include <string>

#include "faults/status.h"
#include "scenarios/subjects/reference/files.h"
#include "scenarios/subjects/reference/safetensors.h"

namespace savegate::reference {

class ShardReader {
 public:
  static Result<ShardReader> open(Files& files, const std::string& path);
  ShardReader(ShardReader&& other) noexcept;
  ShardReader& operator=(ShardReader&&) = delete;
  ~ShardReader();

  std::uint64_t file_bytes() const { return file_bytes_; }
  const TensorHeader& header() const { return header_; }

  // `bytes` of a tensor from its byte `at` on.
  using Visit = std::function<Result<void>(const TensorEntry& entry, std::uint64_t at,
                                           const std::byte* data, std::size_t bytes)>;
  // Visits all tensors in chunks; the record is that of the whole file as it was read.
  Result<FileRecord> read(const Visit& visit);

 private:
  ShardReader(Files& files, const std::string& path, int fd)
      : files_(&files), path_(path), fd_(fd) {}
  Result<void> read_header();
  Result<void> read_exactly(std::byte* data, std::size_t bytes, std::uint64_t offset);

  Files* files_;
  std::string path_;
  int fd_;
  std::uint64_t file_bytes_ = 0;
  std::string header_text_;  // with its length
  TensorHeader header_;
};

}  // namespace savegate::reference
