#include "harness/run/bounded_log.h"

#include <fcntl.h>

#include <algorithm>

namespace savegate::harness {

Result<BoundedLog> BoundedLog::create(const std::string& path, std::uint64_t limit) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return fail(system_error("create", path));
  return BoundedLog(std::move(fd), path, limit);
}

Result<void> BoundedLog::put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd_.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(system_error("write", path_));
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> BoundedLog::append(std::string_view text) {
  printed_ += text.size();
  const std::string_view head = text.substr(0, std::min<std::uint64_t>(head_left_, text.size()));
  head_left_ -= head.size();
  text.remove_prefix(head.size());
  after_head_ += text.size();
  tail_ += text;
  if (tail_.size() > 2 * tail_limit_) tail_.erase(0, tail_.size() - tail_limit_);
  return put(head);
}

std::uint64_t BoundedLog::dropped() const {
  return after_head_ > tail_limit_ ? after_head_ - tail_limit_ : 0;
}

Result<void> BoundedLog::finish() {
  if (dropped() > 0) {
    if (tail_.size() > tail_limit_) tail_.erase(0, tail_.size() - tail_limit_);
    SAVEGATE_CHECK(put("\n[savegate: " + std::to_string(dropped()) + " bytes left out here]\n"));
  }
  SAVEGATE_CHECK(put(tail_));
  tail_.clear();
  return {};
}

}  // namespace savegate::harness
