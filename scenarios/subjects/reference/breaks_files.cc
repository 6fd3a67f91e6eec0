// Breaks of single file operations.

#include <unistd.h>

#include <cstdlib>
#include <map>
#include <vector>

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

// The rank's own items stay in a buffer of the program, as those of a stream do; what is synced is
// the file without them.
class Buffered : public Unverified {
 public:
  using Unverified::Unverified;
  Result<void> write(int fd, const std::string& path, const std::byte* data, std::size_t bytes,
                     std::uint64_t offset) override {
    if (!file_name(path).starts_with("state-"))
      return Unverified::write(fd, path, data, bytes, offset);
    buffers_[fd].insert(buffers_[fd].end(), data, data + bytes);
    return {};
  }

 protected:
  Result<void> flush(int fd, const std::string& path) {
    const auto buffer = buffers_.extract(fd);
    if (buffer.empty()) return {};
    return Files::write(fd, path, buffer.mapped().data(), buffer.mapped().size(), 0);
  }

  std::map<int, std::vector<std::byte>> buffers_;  // by descriptor
};

class FlushAfterFsync : public Buffered {
 public:
  using Buffered::Buffered;
  Result<void> close(int fd, const std::string& path) override {
    auto flushed = flush(fd, path);
    auto closed = Buffered::close(fd, path);
    return flushed ? closed : flushed;
  }
};

// The files stay open: the buffers are written when the program ends, if it does.
class FlushAtExit : public Buffered {
 public:
  using Buffered::Buffered;
  ~FlushAtExit() override {
    while (!buffers_.empty()) {
      const int fd = buffers_.begin()->first;
      static_cast<void>(flush(fd, ""));
      static_cast<void>(Files::close(fd, ""));
    }
  }
  Result<void> close(int fd, const std::string& path) override {
    return buffers_.contains(fd) ? Result<void>() : Buffered::close(fd, path);
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
      {"flush-after-fsync", "a file is synced before the program's buffer is written to it",
       replace_files<FlushAfterFsync>},
      {"flush-at-exit", "the program's buffer is written to a file when the program ends",
       replace_files<FlushAtExit>},
      {"ignore-fsync-error", "the result of fsync is not looked at",
       replace_files<IgnoreFsyncError>},
      {"ignore-close-error", "the result of close is not looked at",
       replace_files<IgnoreCloseError>},
      {"retry-fsync", "a failed fsync is tried again, and its success believed",
       replace_files<RetryFsync>},
  };
}

}  // namespace savegate::reference
