// File operations of the save path, each one named step that says all it knows when it fails.
//
// Short writes are continued, EINTR is retried, and no result of fsync or close is dropped. The
// virtual ones are what a negative control overrides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "faults/status.h"

namespace savegate::reference {

inline constexpr std::size_t kChunkBytes = 1 << 20;  // of a write or a read

// Memory for one chunk, aligned to pages: a write of it reaches the file system in one piece.
struct ChunkDelete {
  void operator()(std::byte* chunk) const;
};
using Chunk = std::unique_ptr<std::byte[], ChunkDelete>;
Chunk make_chunk();

struct FileRecord {
  std::string name;  // without directory
  std::uint64_t size = 0;
  std::string digest;  // tree digest of the whole file
};

std::string file_name(const std::string& path);     // its last component
std::string directory_of(const std::string& path);  // what comes before

class Files {
 public:
  explicit Files(int rank) : rank_(rank) {}
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  virtual ~Files() = default;

  int rank() const { return rank_; }

  // The name under which `path` is written until it is whole; in the same directory, so that the
  // rename stays on one file system.
  virtual std::string temporary(const std::string& path) const { return path + ".tmp"; }
  virtual Result<void> write(int fd, const std::string& path, const std::byte* data,
                             std::size_t bytes, std::uint64_t offset);
  virtual Result<void> sync(int fd, const std::string& path);
  virtual Result<void> close(int fd, const std::string& path);
  virtual Result<void> sync_directory(const std::string& path);
  // The file, read again, is what was written.
  virtual Result<void> verify(const std::string& path, const FileRecord& written);

  Result<int> create(const std::string& path);
  Result<int> open(const std::string& path);
  Result<int> open_to_append(const std::string& path);  // made where it is not there
  // Bytes read; fewer than asked only at the end of the file.
  Result<std::size_t> read(int fd, const std::string& path, std::byte* data, std::size_t bytes,
                           std::uint64_t offset);
  Result<std::uint64_t> size(int fd, const std::string& path);
  Result<void> rename(const std::string& from, const std::string& to);
  Result<void> remove(const std::string& path);
  Result<void> remove_directory(const std::string& path);
  // True if it was not there before.
  Result<bool> make_directory(const std::string& path);
  Result<bool> exists(const std::string& path);
  Result<std::vector<std::string>> list(const std::string& path);  // sorted, without . and ..
  // A small file, whole.
  Result<std::string> read_text(const std::string& path);
  Result<FileRecord> digest(const std::string& path);

 protected:
  Status error(const char* operation, const std::string& path, int error = errno) const;

 private:
  int rank_;
};

}  // namespace savegate::reference
