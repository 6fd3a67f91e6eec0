#include "fusefs/past_bytes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace savegate::fusefs {
namespace {

int size_of(int fd, std::uint64_t& size) {
  struct stat now {};
  if (::fstat(fd, &now) != 0) return errno;
  size = static_cast<std::uint64_t>(now.st_size);
  return 0;
}

int write_fully(int fd, std::uint64_t offset, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t put =
        ::pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put < 0 ? errno : EIO;
    done += static_cast<std::size_t>(put);
  }
  return 0;
}

}  // namespace

int read_fully(int fd, std::uint64_t offset, std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return 0;
}

// Reads what [from, to) holds where nothing is kept yet.
int PastBytes::keep_gaps(int fd, std::uint64_t from, std::uint64_t to) {
  auto next = bytes_.upper_bound(from);
  if (next != bytes_.begin()) {
    const auto& before = *std::prev(next);
    from = std::max(from, before.first + before.second.size());
  }
  while (from < to) {
    const std::uint64_t end = next == bytes_.end() ? to : std::min(to, next->first);
    if (from < end) {
      std::string bytes(end - from, '\0');
      if (const int error = read_fully(fd, from, bytes)) return error;
      bytes.resize(end - from, '\0');
      bytes_.emplace_hint(next, from, std::move(bytes));
    }
    if (next == bytes_.end()) break;
    from = std::max(from, next->first + next->second.size());
    ++next;
  }
  return 0;
}

void PastBytes::forget(std::uint64_t from, std::uint64_t to) {
  auto at = bytes_.upper_bound(from);
  if (at != bytes_.begin()) --at;
  while (at != bytes_.end() && at->first < to) {
    const std::uint64_t begin = at->first;
    const std::uint64_t end = begin + at->second.size();
    if (end <= from) {
      ++at;
      continue;
    }
    std::string bytes = std::move(at->second);
    at = bytes_.erase(at);
    if (to < end) at = bytes_.emplace_hint(at, to, bytes.substr(to - begin));
    if (begin < from) bytes_.emplace_hint(at, begin, bytes.substr(0, from - begin));
    if (to < end) break;
  }
}

int PastBytes::keep(int fd, const Change& change) {
  if (!size_) {
    std::uint64_t size = 0;
    if (const int error = size_of(fd, size)) return error;
    size_ = size;
  }
  return keep_gaps(fd, change.from, std::min(change.to, *size_));
}

int PastBytes::yield(int fd, const Change& change) {
  if (!size_) return 0;
  forget(change.from, change.to);
  const std::uint64_t size = change.size_is.value_or(change.grows ? change.to : 0);
  if (size > *size_) {
    // The file is to keep its new length; what lies between was written to be undone.
    std::uint64_t size_now = 0;
    if (const int error = size_of(fd, size_now)) return error;
    const std::uint64_t gap_end = std::min(change.from, size_now);
    if (*size_ < gap_end) bytes_.emplace(*size_, std::string(gap_end - *size_, '\0'));
    size_ = size;
  } else if (change.size_is) {
    size_ = size;
  }
  return 0;
}

int PastBytes::restore(int fd) const {
  if (!size_) return 0;
  if (::ftruncate(fd, static_cast<off_t>(*size_)) != 0) return errno;
  for (const auto& [offset, bytes] : bytes_) {
    if (const int error = write_fully(fd, offset, bytes)) return error;
  }
  return 0;
}

int PastBytes::replace(int fd, const Change& change) {
  std::uint64_t size = 0;
  if (const int error = size_of(fd, size)) return error;
  if (!size_) size_ = size;
  const std::uint64_t to = change.size_is ? size : change.to;
  if (change.from >= to) return 0;
  forget(change.from, to);
  return keep_gaps(fd, change.from, to);
}

bool PastBytes::overlaps(std::uint64_t from, std::uint64_t to) const {
  auto next = bytes_.lower_bound(from);
  if (next != bytes_.end() && next->first < to) return true;
  return next != bytes_.begin() && std::prev(next)->first + std::prev(next)->second.size() > from;
}

void PastBytes::show(std::uint64_t from, char* bytes, std::uint64_t size) const {
  auto at = bytes_.upper_bound(from);
  if (at != bytes_.begin()) --at;
  for (; at != bytes_.end() && at->first < from + size; ++at) {
    const std::uint64_t begin = std::max(from, at->first);
    const std::uint64_t end = std::min(from + size, at->first + at->second.size());
    if (begin < end) at->second.copy(bytes + (begin - from), end - begin, begin - at->first);
  }
}

PastBytes::Lost PastBytes::lost(std::uint64_t size_now) const {
  Lost lost{.offset = size_.value_or(0), .bytes = 0};
  if (!size_) return lost;
  if (!bytes_.empty()) lost.offset = std::min(lost.offset, bytes_.begin()->first);
  for (const auto& [offset, bytes] : bytes_) lost.bytes += bytes.size();
  if (size_now > *size_) lost.bytes += size_now - *size_;
  return lost;
}

}  // namespace savegate::fusefs
