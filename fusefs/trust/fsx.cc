#include "fusefs/trust/fsx.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "faults/status.h"

namespace savegate::fusefs {
namespace {

constexpr std::uint64_t kLargest = 256 * 1024;  // bytes of the file
constexpr std::size_t kLongest = 32 * 1024;     // bytes of an operation
constexpr std::size_t kBlock = 4096;            // of O_DIRECT

std::string failed(const char* what) { return fmt::format("{}: {}", what, errno_name(errno)); }

}  // namespace

Fsx::Fsx(std::string mounted, std::string plain, std::uint64_t seed)
    : mounted_(std::move(mounted)),
      plain_(std::move(plain)),
      random_(seed),
      aligned_(static_cast<char*>(std::aligned_alloc(kBlock, kLongest))) {
  file_ = open(mounted_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  append_ = open(mounted_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  direct_ = open(mounted_.c_str(), O_RDWR | O_DIRECT | O_CLOEXEC);
  void* map = mmap(nullptr, kLargest, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  map_ = map == MAP_FAILED ? nullptr : static_cast<char*>(map);
}

Fsx::~Fsx() {
  if (map_ != nullptr) munmap(map_, kLargest);
  for (int fd : {file_, append_, direct_})
    if (fd >= 0) close(fd);
  std::free(aligned_);
}

std::string Fsx::random_bytes(std::size_t length) {
  std::string bytes(length, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random_());
  return bytes;
}

void Fsx::expect(std::uint64_t offset, const std::string& bytes) {
  if (offset + bytes.size() > expected_.size()) expected_.resize(offset + bytes.size());
  expected_.replace(offset, bytes.size(), bytes);
}

std::string Fsx::step() {
  if (file_ < 0 || append_ < 0) return failed("open");
  steps_++;
  std::string wrong = operate();
  if (wrong.empty() && steps_ % 100 == 0) wrong = compare_whole(mounted_);
  if (wrong.empty() && steps_ % 100 == 0) {
    if (map_ != nullptr && msync(map_, kLargest, MS_SYNC) != 0) return failed("msync");
    wrong = compare_whole(plain_);
  }
  if (wrong.empty()) return "";
  return fmt::format("step {}: {}\n{}", steps_, wrong, fmt::join(history_, "\n"));
}

std::string Fsx::operate() {
  const std::uint64_t kind = below(16);
  const std::uint64_t length = 1 + below(below(4) == 0 ? kLongest : 600);
  const std::uint64_t offset = below(kLargest - length);
  history_.push_back(
      fmt::format("kind {} offset {} length {} size {}", kind, offset, length, expected_.size()));
  if (history_.size() > 30) history_.pop_front();
  switch (kind) {
    case 0:
    case 1:
    case 2:
      return write_through(file_, offset, random_bytes(length));
    case 3:
    case 4:
      return write_direct();
    case 5:
      return append();
    case 6:
    case 7:
    case 8:
      return store_mapped(offset, length);
    case 9:
      return cut(offset);
    case 10:
      return cut(std::min<std::uint64_t>(expected_.size() + length, kLargest));
    case 11:
      return zero(offset, length, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE);
    case 12:
      return zero(offset, length, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE);
    case 13:
      return (below(2) == 0 ? fsync(file_) : fdatasync(file_)) == 0 ? "" : failed("fsync");
    case 14:
      return below(4) == 0 ? reopen() : compare(offset, length);
    default:
      return compare(offset, length);
  }
}

std::string Fsx::write_through(int fd, std::uint64_t offset, const std::string& bytes) {
  const ssize_t put = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (put != static_cast<ssize_t>(bytes.size())) return failed("write");
  expect(offset, bytes);
  return compare(offset, bytes.size());
}

std::string Fsx::write_direct() {
  if (direct_ < 0) return "";
  const std::size_t length = kBlock * (1 + below(kLongest / kBlock));
  const std::uint64_t offset = kBlock * below((kLargest - length) / kBlock);
  const std::string bytes = random_bytes(length);
  std::memcpy(aligned_, bytes.data(), length);
  const ssize_t put = pwrite(direct_, aligned_, length, static_cast<off_t>(offset));
  if (put != static_cast<ssize_t>(length)) return failed("direct write");
  expect(offset, bytes);
  const ssize_t got = pread(direct_, aligned_, length, static_cast<off_t>(offset));
  if (got != static_cast<ssize_t>(length)) return failed("direct read");
  if (std::memcmp(aligned_, bytes.data(), length) != 0) return "a direct read gives other bytes";
  return compare(offset, length);
}

std::string Fsx::append() {
  if (expected_.size() + 600 > kLargest) return cut(expected_.size() / 2);
  const std::string bytes = random_bytes(1 + below(600));
  const std::uint64_t offset = expected_.size();
  if (write(append_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return failed("append");
  expect(offset, bytes);
  return compare(offset, bytes.size());
}

// Through the mapping; then half of the times the mapping is synced, else read as it is.
std::string Fsx::store_mapped(std::uint64_t offset, std::size_t length) {
  if (map_ == nullptr || offset >= expected_.size()) return "";
  length = std::min<std::size_t>(length, expected_.size() - offset);
  if (std::memcmp(map_ + offset, expected_.data() + offset, length) != 0)
    return "the mapping shows other bytes";
  const std::string bytes = random_bytes(length);
  std::memcpy(map_ + offset, bytes.data(), length);
  expect(offset, bytes);
  mapped_stores_++;
  if (below(2) == 0 && msync(map_, kLargest, MS_SYNC) != 0) return failed("msync");
  return compare(offset, length);
}

std::string Fsx::cut(std::uint64_t size) {
  const std::uint64_t before = expected_.size();
  if (ftruncate(file_, static_cast<off_t>(size)) != 0) return failed("truncate");
  expected_.resize(size);
  const std::uint64_t from = std::min(before, size);
  return compare(from, size - from);
}

std::string Fsx::zero(std::uint64_t offset, std::uint64_t length, int mode) {
  if (fallocate(file_, mode, static_cast<off_t>(offset), static_cast<off_t>(length)) != 0) {
    return errno == EOPNOTSUPP ? "" : failed("fallocate");
  }
  if (offset >= expected_.size()) return "";
  length = std::min<std::uint64_t>(length, expected_.size() - offset);
  expected_.replace(offset, length, length, '\0');
  return compare(offset, length);
}

// What the kernel kept of the file must not outlive its last handle wrongly.
std::string Fsx::reopen() {
  if (map_ != nullptr) munmap(map_, kLargest);
  close(file_);
  file_ = open(mounted_.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0) return failed("reopen");
  void* map = mmap(nullptr, kLargest, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  map_ = map == MAP_FAILED ? nullptr : static_cast<char*>(map);
  return compare_whole(mounted_);
}

std::string Fsx::compare(std::uint64_t offset, std::uint64_t length) {
  struct stat now {};
  if (fstat(file_, &now) != 0) return failed("stat");
  if (static_cast<std::uint64_t>(now.st_size) != expected_.size())
    return fmt::format("the size is {} and should be {}", now.st_size, expected_.size());
  std::string bytes(length, '\0');
  const ssize_t got = pread(file_, bytes.data(), length, static_cast<off_t>(offset));
  if (got < 0) return failed("read");
  const std::string wanted =
      offset < expected_.size() ? expected_.substr(offset, length) : std::string();
  if (bytes.substr(0, static_cast<std::size_t>(got)) != wanted)
    return fmt::format("a read of {} from {} gives other bytes ({} of them)", length, offset, got);
  return "";
}

std::string Fsx::compare_whole(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return failed("open to compare");
  std::string bytes(kLargest + 1, '\0');
  const ssize_t got = pread(fd, bytes.data(), bytes.size(), 0);
  close(fd);
  if (got < 0) return failed("read to compare");
  bytes.resize(static_cast<std::size_t>(got));
  return bytes == expected_ ? "" : fmt::format("{} holds other bytes", path);
}

}  // namespace savegate::fusefs
