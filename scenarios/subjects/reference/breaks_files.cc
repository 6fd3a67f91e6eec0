// Breaks of single file operations.

#include <unistd.h>

#include <cstdlib>

#include "scenarios/subjects/reference/breaks_parts.h"

namespace savegate::reference {
namespace {

bool is_shard(const std::string& path) { return file_name(path).starts_with("shard-"); }

class SkipShardFsync : public Files {
 public:
  using Files::Files;
  Result<void> sync(int fd, const std::string& path) override {
    return is_shard(path) ? Result<void>() : Files::sync(fd, path);
  }
};

class SkipMarkerFsync : public Files {
 public:
  using Files::Files;
  Result<void> sync(int fd, const std::string& path) override {
    return file_name(path).starts_with(kMarkerName) ? Result<void>() : Files::sync(fd, path);
  }
};

class WriteInPlace : public Files {
 public:
  using Files::Files;
  std::string temporary(const std::string& path) const override {
    return is_shard(path) ? path : Files::temporary(path);
  }
};

class SkipDirectoryFsync : public Files {
 public:
  using Files::Files;
  Result<void> sync_directory(const std::string& /*path*/) override { return {}; }
};

// Reading back would catch what the next ones lose.
class Unverified : public Files {
 public:
  using Files::Files;
  Result<void> verify(const std::string& /*path*/, const FileRecord& /*written*/) override {
    return {};
  }
};

class IgnoreShortWrite : public Unverified {
 public:
  using Unverified::Unverified;
  Result<void> write(int fd, const std::string& path, const std::byte* data, std::size_t bytes,
                     std::uint64_t offset) override {
    if (::pwrite(fd, data, bytes, static_cast<off_t>(offset)) >= 0) return {};
    return fail(error("write", path));
  }
};

class IgnoreWriteError : public Unverified {
 public:
  using Unverified::Unverified;
  Result<void> write(int fd, const std::string& path, const std::byte* data, std::size_t bytes,
                     std::uint64_t offset) override {
    static_cast<void>(Files::write(fd, path, data, bytes, offset));
    return {};
  }
};

class AbortOnWriteError : public Files {
 public:
  using Files::Files;
  Result<void> write(int fd, const std::string& path, const std::byte* data, std::size_t bytes,
                     std::uint64_t offset) override {
    auto written = Files::write(fd, path, data, bytes, offset);
    if (!written) std::abort();
    return written;
  }
};

class IgnoreFsyncError : public Unverified {
 public:
  using Unverified::Unverified;
  Result<void> sync(int fd, const std::string& path) override {
    static_cast<void>(Files::sync(fd, path));
    return {};
  }
};

class RetryFsync : public Unverified {
 public:
  using Unverified::Unverified;
  Result<void> sync(int fd, const std::string& path) override {
    return Files::sync(fd, path) ? Result<void>() : Files::sync(fd, path);
  }
};

class IgnoreCloseError : public Unverified {
 public:
  using Unverified::Unverified;
  Result<void> close(int fd, const std::string& path) override {
    static_cast<void>(Files::close(fd, path));
    return {};
  }
};

}  // namespace

std::vector<Break> file_breaks() {
  return {
      {"skip-shard-fsync", "shards are renamed without fsync", replace_files<SkipShardFsync>},
      {"skip-marker-fsync", "the marker is renamed without fsync", replace_files<SkipMarkerFsync>},
      {"write-in-place", "shards are written under their final name", replace_files<WriteInPlace>},
      {"skip-dir-fsync", "directories are not fsynced after renames",
       replace_files<SkipDirectoryFsync>},
      {"ignore-short-write", "the rest of a short write is dropped",
       replace_files<IgnoreShortWrite>},
      {"ignore-write-error", "a writer's error is lost on its way to the save",
       replace_files<IgnoreWriteError>},
      {"abort-on-write-error", "a write that fails aborts the process",
       replace_files<AbortOnWriteError>},
      {"ignore-fsync-error", "the result of fsync is not looked at",
       replace_files<IgnoreFsyncError>},
      {"ignore-close-error", "the result of close is not looked at",
       replace_files<IgnoreCloseError>},
      {"retry-fsync", "a failed fsync is tried again, and its success believed",
       replace_files<RetryFsync>},
  };
}

}  // namespace savegate::reference
