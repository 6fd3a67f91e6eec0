#include "scenarios/subjects/reference/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>

#include "gpu/digest.h"

namespace savegate::reference {

namespace {

constexpr std::align_val_t kPage{4096};

}  // namespace

void ChunkDelete::operator()(std::byte* chunk) const { ::operator delete[](chunk, kPage); }

Chunk make_chunk() { return Chunk(static_cast<std::byte*>(::operator new[](kChunkBytes, kPage))); }

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string directory_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

Status Files::error(const char* operation, const std::string& path, int error) const {
  Status status = system_error(operation, path, error);
  status.rank = rank_;
  return status;
}

Result<void> Files::write(int fd, const std::string& path, const std::byte* data, std::size_t bytes,
                          std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t part = ::pwrite(fd, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (part < 0 && errno == EINTR) continue;
    if (part <= 0) {
      Status status = error("write", path, part < 0 ? errno : EIO);
      status.offset = offset;
      status.asked = bytes;
      status.done = done;
      return fail(std::move(status));
    }
    done += static_cast<std::size_t>(part);
  }
  return {};
}

Result<void> Files::sync(int fd, const std::string& path) {
  while (::fsync(fd) != 0) {
    if (errno != EINTR) return fail(error("fsync", path));
  }
  return {};
}

// Never retried: the descriptor is gone whatever close says.
Result<void> Files::close(int fd, const std::string& path) {
  if (::close(fd) != 0) return fail(error("close", path));
  return {};
}

Result<void> Files::sync_directory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return fail(error("open", path));
  auto synced = sync(fd, path);
  auto closed = close(fd, path);
  return synced ? closed : synced;
}

Result<int> Files::create(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return fail(error("open", path));
  return fd;
}

Result<int> Files::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(error("open", path));
  return fd;
}

Result<int> Files::open_to_append(const std::string& path) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return fail(error("open", path));
  return fd;
}

Result<std::size_t> Files::read(int fd, const std::string& path, std::byte* data, std::size_t bytes,
                                std::uint64_t offset) {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t part = ::pread(fd, data + done, bytes - done, static_cast<off_t>(offset + done));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) {
      Status status = error("read", path);
      status.offset = offset;
      status.asked = bytes;
      status.done = done;
      return fail(std::move(status));
    }
    if (part == 0) break;
    done += static_cast<std::size_t>(part);
  }
  return done;
}

Result<std::uint64_t> Files::size(int fd, const std::string& path) {
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return fail(error("fstat", path));
  return static_cast<std::uint64_t>(facts.st_size);
}

Result<void> Files::rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return fail(error("rename", from));
  return {};
}

Result<void> Files::remove(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return fail(error("unlink", path));
  return {};
}

Result<void> Files::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) return fail(error("rmdir", path));
  return {};
}

Result<bool> Files::make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return true;
  if (errno == EEXIST) return false;
  return fail(error("mkdir", path));
}

Result<bool> Files::exists(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) == 0) return true;
  if (errno == ENOENT) return false;
  return fail(error("stat", path));
}

Result<std::vector<std::string>> Files::list(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (directory == nullptr) return fail(error("opendir", path));
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr && errno != 0) return fail(error("readdir", path));
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> Files::read_text(const std::string& path) {
  SAVEGATE_TRY(const int fd, open(path));
  std::string text;
  Result<void> outcome;
  for (;;) {
    const std::size_t at = text.size();
    text.resize(at + 65536);
    auto part = read(fd, path, reinterpret_cast<std::byte*>(text.data()) + at, 65536, at);
    if (!part) outcome = fail(part.error());
    text.resize(at + part.value_or(0));
    if (part.value_or(0) < 65536) break;
  }
  auto closed = close(fd, path);
  if (!outcome) return fail(outcome.error());
  if (!closed) return fail(closed.error());
  return text;
}

Result<FileRecord> Files::digest(const std::string& path) {
  SAVEGATE_TRY(const int fd, open(path));
  const auto buffer = make_chunk();
  gpu::TreeDigest tree;
  FileRecord record{.name = file_name(path), .size = 0, .digest = ""};
  Result<std::size_t> part;
  do {
    part = read(fd, path, buffer.get(), kChunkBytes, record.size);
    tree.update(buffer.get(), part.value_or(0));
    record.size += part.value_or(0);
  } while (part.value_or(0) == kChunkBytes);
  auto closed = close(fd, path);
  if (!part) return fail(part.error());
  if (!closed) return fail(closed.error());
  record.digest = tree.finish().hex();
  return record;
}

Result<void> Files::verify(const std::string& path, const FileRecord& written) {
  SAVEGATE_TRY(const FileRecord read_back, digest(path));
  if (read_back.size == written.size && read_back.digest == written.digest) return {};
  Status status = internal_error("read back " + std::to_string(read_back.size) +
                                 " bytes with digest " + read_back.digest + ", wrote " +
                                 std::to_string(written.size) + " with " + written.digest);
  status.operation = "verify";
  status.path = path;
  status.rank = rank_;
  return fail(std::move(status));
}

}  // namespace savegate::reference
