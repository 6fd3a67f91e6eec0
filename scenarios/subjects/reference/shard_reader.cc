#include "scenarios/subjects/reference/shard_reader.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "gpu/digest.h"

namespace savegate::reference {

ShardReader::ShardReader(ShardReader&& other) noexcept
    : files_(other.files_),
      path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      file_bytes_(other.file_bytes_),
      header_text_(std::move(other.header_text_)),
      header_(std::move(other.header_)) {}

ShardReader::~ShardReader() {
  if (fd_ >= 0) ::close(fd_);  // read only: nothing can be lost
}

Result<ShardReader> ShardReader::open(Files& files, const std::string& path) {
  SAVEGATE_TRY(const int fd, files.open(path));
  ShardReader reader(files, path, fd);
  SAVEGATE_TRY(reader.file_bytes_, files.size(fd, path));
  SAVEGATE_CHECK(reader.read_header());
  return reader;
}

Result<void> ShardReader::read_header() {
  header_text_.resize(kHeaderLengthBytes);
  SAVEGATE_CHECK(
      read_exactly(reinterpret_cast<std::byte*>(header_text_.data()), kHeaderLengthBytes, 0));
  const std::uint64_t length = header_length(header_text_.data());
  if (length > kMostHeaderBytes || kHeaderLengthBytes + length > file_bytes_) {
    return fail(
        invalid("the safetensors header claims " + std::to_string(length) + " bytes", path_));
  }
  header_text_.resize(kHeaderLengthBytes + length);
  SAVEGATE_CHECK(
      read_exactly(reinterpret_cast<std::byte*>(header_text_.data()) + kHeaderLengthBytes, length,
                   kHeaderLengthBytes));
  SAVEGATE_TRY(header_, parse_header(header_text_.substr(kHeaderLengthBytes), file_bytes_, path_));
  return {};
}

Result<void> ShardReader::read_exactly(std::byte* data, std::size_t bytes, std::uint64_t offset) {
  SAVEGATE_TRY(const std::size_t done, files_->read(fd_, path_, data, bytes, offset));
  if (done == bytes) return {};
  Status status = invalid("the file ends early", path_);
  status.operation = "read";
  status.rank = files_->rank();
  status.offset = offset;
  status.asked = bytes;
  status.done = done;
  return fail(std::move(status));
}

Result<FileRecord> ShardReader::read(const Visit& visit) {
  gpu::TreeDigest digest;
  digest.update(header_text_.data(), header_text_.size());
  const auto chunk = make_chunk();
  for (const TensorEntry& entry : header_.entries) {
    const std::uint64_t bytes = entry.end - entry.begin;
    for (std::uint64_t at = 0; at < bytes; at += kChunkBytes) {
      const std::size_t part = std::min<std::uint64_t>(kChunkBytes, bytes - at);
      SAVEGATE_CHECK(read_exactly(chunk.get(), part, header_.bytes + entry.begin + at));
      digest.update(chunk.get(), part);
      SAVEGATE_CHECK(visit(entry, at, chunk.get(), part));
    }
  }
  return FileRecord{.name = file_name(path_), .size = file_bytes_, .digest = digest.finish().hex()};
}

}  // namespace savegate::reference
