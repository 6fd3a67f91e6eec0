#include "fusefs/open_files.h"

#include <cerrno>

#include "fusefs/wire.h"

namespace savegate::fusefs {

using faults::Op;

void OpenFiles::allow_passthrough(std::string why_not) {
  const std::lock_guard lock(mutex_);
  why_not_ = std::move(why_not);
}

void OpenFiles::Entry::count(const OpenWay& way, int change) {
  const bool keeps = way.backing_id != 0 && !way.direct;
  if (way.backing_id != 0) backed += change;
  if (way.backing_id == 0) other += change;
  if (keeps) kept += change;
  if (keeps && way.writable) kept_writable += change;
  if (!way.sends_close) no_close += change;
}

std::uint64_t OpenFiles::Entry::unseen() const {
  std::uint64_t ops = 0;
  if (kept > 0) ops |= op_bit(Op::kRead);
  if (kept_writable > 0) ops |= op_bit(Op::kWrite);
  if (no_close > 0) ops |= op_bit(Op::kClose);
  return ops;
}

// 0 where there is none to be had; says why.
int OpenFiles::backing_id_for(Entry& entry, int fd) {
  if (entry.other > 0) {
    entry.why = "it was open through the daemon already";
    return 0;
  }
  const int id = wire::open_backing_id(fuse_fd_, fd);
  if (id > 0) return id;
  switch (-id) {
    case EPERM:
      why_not_ = "the kernel grants it to CAP_SYS_ADMIN of the first user namespace alone";
      break;
    case ELOOP:
      why_not_ = "the backing directory lies on too many stacked file systems";
      break;
    default:
      entry.why = "the kernel refused it: " + errno_name(-id);
      return 0;
  }
  entry.why = why_not_;
  return 0;
}

OpenWay OpenFiles::open(const NodePtr& node, int fd, bool writable,
                        const std::function<Needs()>& needs) {
  const std::lock_guard lock(mutex_);
  const Needs wanted = needs();
  Entry& entry = entries_[node.get()];
  if (!entry.node) entry.node = node;
  OpenWay way{.backing_id = entry.backing_id,
              .writable = writable,
              .direct = wanted.direct,
              .sends_close = wanted.close};
  if (way.backing_id != 0) {
    way.direct = wanted.data != nullptr;
  } else if (wanted.data != nullptr) {
    entry.why = wanted.data;
  } else if (!why_not_.empty()) {
    entry.why = why_not_;
  } else {
    way.backing_id = entry.backing_id = backing_id_for(entry, fd);
    if (way.backing_id != 0) way.direct = false;
  }
  entry.count(way, 1);
  if (way.backing_id != 0 && way.direct) entry.why = wanted.data;
  return way;
}

void OpenFiles::close(const Node& node, const OpenWay& way) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(&node);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  entry.count(way, -1);
  if (entry.backed == 0 && entry.backing_id != 0) {
    wire::close_backing_id(fuse_fd_, entry.backing_id);
    entry.backing_id = 0;
  }
  if (entry.backed == 0 && entry.other == 0) entries_.erase(found);
}

std::vector<std::string> OpenFiles::arm(
    const InodeTable& inodes, const std::function<std::uint64_t(const std::string&)>& needs,
    bool anyway, const std::function<void()>& arm) {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> blind;
  for (const auto& [node, entry] : entries_) {
    const std::uint64_t unseen = entry.unseen();
    if (unseen == 0) continue;
    std::string path = inodes.path(*node);
    if ((needs(path) & unseen) != 0) blind.push_back(std::move(path));
  }
  if (blind.empty() || anyway) arm();
  return blind;
}

std::vector<OpenFiles::File> OpenFiles::files() const {
  const std::lock_guard lock(mutex_);
  std::vector<File> files;
  files.reserve(entries_.size());
  for (const auto& [node, entry] : entries_) {
    files.push_back({.node = entry.node,
                     .passthrough = entry.kept,
                     .other = entry.other + entry.backed - entry.kept,
                     .why = entry.why,
                     .unseen = entry.unseen()});
  }
  return files;
}

std::string OpenFiles::why_not() const {
  const std::lock_guard lock(mutex_);
  return why_not_;
}

}  // namespace savegate::fusefs
