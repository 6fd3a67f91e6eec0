// A log file that cannot fill the disk: the head and the tail of what was printed, and how much was
// left out between them.
//
// The head reaches the file at once; the tail is kept in memory until finish().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "faults/status.h"
#include "harness/run/unique_fd.h"

namespace savegate::harness {

inline constexpr std::uint64_t kLogLimit = 4 * 1024 * 1024;  // bytes kept of a rank's output

class BoundedLog {
 public:
  static Result<BoundedLog> create(const std::string& path, std::uint64_t limit = kLogLimit);
  Result<void> append(std::string_view text);
  Result<void> finish();
  std::uint64_t printed() const { return printed_; }  // bytes
  std::uint64_t dropped() const;                      // of them not in the file after finish()

 private:
  BoundedLog(UniqueFd fd, std::string path, std::uint64_t limit)
      : fd_(std::move(fd)), path_(std::move(path)), head_left_(limit / 2), tail_limit_(limit / 2) {}
  Result<void> put(std::string_view text);

  UniqueFd fd_;
  std::string path_;
  std::uint64_t head_left_;
  std::uint64_t tail_limit_;
  std::string tail_;  // at most twice tail_limit_ before it is cut
  std::uint64_t after_head_ = 0;
  std::uint64_t printed_ = 0;
};

}  // namespace savegate::harness
