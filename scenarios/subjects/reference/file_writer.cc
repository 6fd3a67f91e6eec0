#include "scenarios/subjects/reference/file_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace savegate::reference {

FileWriter::FileWriter(Files& files, const std::string& path, int fd)
    : files_(&files),
      path_(path),
      temporary_(files.temporary(path)),
      fd_(fd),
      buffer_(make_chunk()) {
  record_.name = file_name(path);
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : files_(other.files_),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      settled_(std::exchange(other.settled_, true)),
      buffer_(std::move(other.buffer_)),
      buffered_(other.buffered_),
      written_(other.written_),
      digest_(std::move(other.digest_)),
      record_(std::move(other.record_)) {}

// What failed before is the error that counts; a failure to clean up must not take its place.
FileWriter::~FileWriter() {
  if (fd_ >= 0) static_cast<void>(files_->close(fd_, temporary_));
  if (!settled_) static_cast<void>(files_->remove(temporary_));
}

Result<FileWriter> FileWriter::create(Files& files, const std::string& path) {
  SAVEGATE_TRY(const int fd, files.create(files.temporary(path)));
  return FileWriter(files, path, fd);
}

Result<void> FileWriter::append(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, kChunkBytes - buffered_);
    std::memcpy(buffer_.get() + buffered_, from, part);
    buffered_ += part;
    from += part;
    bytes -= part;
    if (buffered_ == kChunkBytes) SAVEGATE_CHECK(flush_buffer());
  }
  return {};
}

Result<void> FileWriter::flush_buffer() {
  if (buffered_ == 0) return {};
  digest_.update(buffer_.get(), buffered_);
  SAVEGATE_CHECK(files_->write(fd_, temporary_, buffer_.get(), buffered_, written_));
  written_ += buffered_;
  buffered_ = 0;
  return {};
}

Result<void> FileWriter::flush() {
  SAVEGATE_CHECK(flush_buffer());
  record_.size = written_;
  record_.digest = digest_.finish().hex();
  return {};
}

Result<void> FileWriter::settle() {
  SAVEGATE_CHECK(files_->sync(fd_, temporary_));
  SAVEGATE_CHECK(files_->close(std::exchange(fd_, -1), temporary_));
  SAVEGATE_CHECK(files_->verify(temporary_, record_));
  if (temporary_ != path_) SAVEGATE_CHECK(files_->rename(temporary_, path_));
  settled_ = true;
  return {};
}

Result<FileRecord> write_file(Files& files, const std::string& path, const std::string& text) {
  SAVEGATE_TRY(FileWriter writer, FileWriter::create(files, path));
  SAVEGATE_CHECK(writer.append(text));
  SAVEGATE_CHECK(writer.flush());
  SAVEGATE_CHECK(writer.settle());
  SAVEGATE_CHECK(files.sync_directory(directory_of(path)));
  return writer.record();
}

}  // namespace savegate::reference
