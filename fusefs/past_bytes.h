// PastBytes: what a file held before it was changed, as far as it was changed.
//
// keep() before a change that may be undone, yield() before one that stays: where the two meet,
// what came later and stays is not undone. restore() makes the file what it was. Bytes that the
// file did not have are not kept but cut off by restore().
//
//   PastBytes past;
//   past.keep(fd, Change::bytes(4096, 8192));   // then write there
//   past.restore(fd);                           // nothing was written
//
// Errors are errnos, 0 for none. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace savegate::fusefs {

// What an operation is about to do to a file.
struct Change {
  std::uint64_t from = 0;
  std::uint64_t to = 0;                  // bytes [from, to) are changed
  std::optional<std::uint64_t> size_is;  // truncate
  bool grows = true;                     // to `to`, if that lies behind the end

  static Change bytes(std::uint64_t from, std::uint64_t to) {
    return {.from = from, .to = to, .size_is = {}, .grows = true};
  }
  static Change truncate(std::uint64_t size) {
    return {.from = size, .to = UINT64_MAX, .size_is = size, .grows = false};
  }
};

class PastBytes {
 public:
  bool empty() const { return !size_; }
  int keep(int fd, const Change& change);
  int yield(int fd, const Change& change);
  int restore(int fd) const;
  // As keep(), but what is there now takes the place of what was kept: the last version but one.
  int replace(int fd, const Change& change);

  bool overlaps(std::uint64_t from, std::uint64_t to) const;
  // Puts what is kept of [from, from + size) in its place.
  void show(std::uint64_t from, char* bytes, std::uint64_t size) const;
  // What restore() would take away: where it begins, and how many bytes.
  struct Lost {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  Lost lost(std::uint64_t size_now) const;

 private:
  int keep_gaps(int fd, std::uint64_t from, std::uint64_t to);
  void forget(std::uint64_t from, std::uint64_t to);

  std::optional<std::uint64_t> size_;  // once anything is kept
  std::map<std::uint64_t, std::string> bytes_;
};

// 0 or errno. Fewer bytes only at the end of the file.
int read_fully(int fd, std::uint64_t offset, std::string& bytes);

}  // namespace savegate::fusefs
