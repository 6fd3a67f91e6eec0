// One file of a checkpoint on its way: written under a temporary name, settled, then in place.
//
//   SAVEGATE_TRY(FileWriter writer, FileWriter::create(files, path));
//   SAVEGATE_CHECK(writer.append(data, bytes));
//   SAVEGATE_CHECK(writer.flush());
//   SAVEGATE_CHECK(writer.settle());      // fsync, close, re-read, rename
//
// A writer that goes without being settled takes its temporary file with it.
#pragma once

#include <string>

#include "faults/status.h"
#include "gpu/digest.h"
#include "scenarios/subjects/reference/files.h"

namespace savegate::reference {

class FileWriter {
 public:
  static Result<FileWriter> create(Files& files, const std::string& path);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&&) = delete;
  ~FileWriter();

  Result<void> append(const void* data, std::size_t bytes);
  Result<void> append(const std::string& text) { return append(text.data(), text.size()); }
  // All bytes are handed to the file; record() is complete.
  Result<void> flush();
  const FileRecord& record() const { return record_; }
  // Durable and verified under its final name; the directory is the caller's to sync.
  Result<void> settle();

 private:
  FileWriter(Files& files, const std::string& path, int fd);
  Result<void> flush_buffer();

  Files* files_;
  std::string path_;
  std::string temporary_;
  int fd_;
  bool settled_ = false;
  Chunk buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t written_ = 0;
  gpu::TreeDigest digest_;
  FileRecord record_;
};

// The whole life of a small file: write, settle, sync its directory.
Result<FileRecord> write_file(Files& files, const std::string& path, const std::string& text);

}  // namespace savegate::reference
