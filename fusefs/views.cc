#include "fusefs/views.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "fusefs/recorder.h"

namespace savegate::fusefs {

using faults::Aspect;
using faults::Op;
using faults::StaleAction;

namespace {

constexpr std::uint64_t kGrainsInWindow = 64;  // so much too early may a change be seen
constexpr std::uint64_t kTidyEvery = 1024;     // changes

// Pins what the name stands for; null where there is nothing.
NodePtr pinned(const Node& folder, const std::string& name) {
  const int fd = ::openat(folder.fd, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat attributes {};
  if (::fstat(fd, &attributes) != 0) {
    ::close(fd);
    return nullptr;
  }
  return std::make_shared<Node>(fd, attributes);
}

bool same_inode(const Node& node, const Node& folder, const std::string& name) {
  struct stat now {};
  return ::fstatat(folder.fd, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
         now.st_dev == node.dev && now.st_ino == node.ino;
}

bool exists(const Node& folder, const std::string& name) {
  struct stat now {};
  return ::fstatat(folder.fd, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0;
}

bool changes_attributes(Op op, std::uint32_t flags) {
  switch (op) {
    case Op::kWrite:
    case Op::kTruncate:
    case Op::kFallocate:
    case Op::kCopyFileRange:
    case Op::kChmod:
    case Op::kChown:
    case Op::kUtimens:
    case Op::kSetxattr:
    case Op::kRemovexattr:
      return true;
    case Op::kOpen:
      return (flags & O_TRUNC) != 0;
    default:
      return false;
  }
}

bool names_one(Op op) {
  switch (op) {
    case Op::kCreate:
    case Op::kMkdir:
    case Op::kMknod:
    case Op::kSymlink:
    case Op::kUnlink:
    case Op::kRmdir:
      return true;
    default:
      return false;
  }
}

std::array<std::int64_t, 4> times_of(const struct stat& attributes) {
  return {attributes.st_mtim.tv_sec, attributes.st_mtim.tv_nsec, attributes.st_ctim.tv_sec,
          attributes.st_ctim.tv_nsec};
}

bool look_equal(const struct stat& a, const struct stat& b) {
  return a.st_mode == b.st_mode && a.st_uid == b.st_uid && a.st_gid == b.st_gid &&
         a.st_nlink == b.st_nlink && a.st_size == b.st_size && a.st_blocks == b.st_blocks &&
         times_of(a) == times_of(b);
}

}  // namespace

Viewer viewer_of(const faults::Caller& caller) {
  return caller.rank >= 0 ? caller.rank : -1 - static_cast<Viewer>(caller.pid);
}

void Views::arm(const faults::Plan& plan) {
  const std::lock_guard lock(mutex_);
  folders_.clear();
  inodes_.clear();
  released_.clear();
  longest_ns_ = 0;
  std::uint64_t shortest = UINT64_MAX;
  bool any = false;
  for (const faults::Rule& rule : plan.rules) {
    const auto* stale = std::get_if<StaleAction>(&rule.action);
    if (stale == nullptr) continue;
    any = true;
    const std::uint64_t window = stale->window_ns.value_or(UINT64_MAX);
    longest_ns_ = std::max(longest_ns_, window);
    shortest = std::min(shortest, window);
    if (!stale->window_ns) released_[rule.name] = 0;
  }
  grain_ns_ = shortest / kGrainsInWindow;
  recording_ = any;
}

std::size_t Views::release(const std::string& rule) {
  std::size_t count = 0;
  const std::lock_guard lock(mutex_);
  for (auto& [name, until] : released_) {
    if (!rule.empty() && name != rule) continue;
    until = monotonic_ns();
    count++;
  }
  return count;
}

std::uint64_t Views::since(const StaleAction& action, const std::string& rule) const {
  if (action.window_ns) {
    const std::uint64_t now = monotonic_ns();
    return now - std::min(now, *action.window_ns);
  }
  const std::lock_guard lock(mutex_);
  const auto found = released_.find(rule);
  return found == released_.end() ? 0 : found->second;
}

Views::Change Views::begin(Viewer by, Op op, std::uint32_t flags, const Subject& subject) {
  Change change{.by = by, .names = {}, .inodes = {}};
  if (names_one(op)) {
    begin_name(change, subject.node, subject.name);
    begin_inode(change, subject.node);
  } else if (op == Op::kRename) {
    begin_name(change, subject.node, subject.name);
    begin_name(change, subject.node2, subject.name2);
    begin_inode(change, subject.node);
    if (subject.node2 != subject.node) begin_inode(change, subject.node2);
  } else if (op == Op::kLink) {
    begin_name(change, subject.node2, subject.name2);
    begin_inode(change, subject.node);
    begin_inode(change, subject.node2);
  } else if (changes_attributes(op, flags)) {
    begin_inode(change, subject.node);
  }
  return change;
}

void Views::begin_name(Change& change, const NodePtr& folder, const std::string& name) {
  NodePtr before = pinned(*folder, name);
  const std::lock_guard lock(mutex_);
  Folder& in = folders_[key(*folder)];
  if (!in.pin) in.pin = folder;
  const std::uint64_t id = in.names[name].changes.begin(change.by, std::move(before));
  change.names.push_back({folder, name, id});
}

void Views::begin_inode(Change& change, const NodePtr& node) {
  struct stat before {};
  if (::fstat(node->fd, &before) != 0) return;
  const std::lock_guard lock(mutex_);
  Inode& inode = inodes_[key(*node)];
  if (!inode.pin) inode.pin = node;
  change.inodes.push_back({node, inode.changes.begin(change.by, before)});
}

void Views::finish(const Change& change, bool made) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = monotonic_ns();
  // What one caller does to a name is kept apart: each may be another inode.
  for (const auto& [folder, name, id] : change.names) {
    const auto found = folders_.find(key(*folder));
    if (found == folders_.end()) continue;  // another plan was armed meanwhile
    Name& record = found->second.names[name];
    made ? record.changes.finish(id, now, 0) : record.changes.cancel(id);
    if (made) record.missed.erase(change.by);
  }
  for (const auto& [node, id] : change.inodes) {
    const auto found = inodes_.find(key(*node));
    if (found == inodes_.end()) continue;
    auto& changes = found->second.changes;
    made ? changes.finish(id, now, grain_ns_) : changes.cancel(id);
  }
  if (++finished_ % kTidyEvery == 0) tidy_locked(now);
}

void Views::opened(Viewer by, const Node& node) {
  const std::lock_guard lock(mutex_);
  const auto found = inodes_.find(key(node));
  if (found != inodes_.end()) found->second.changes.sync(by, monotonic_ns());
}

void Views::missed(Viewer by, const NodePtr& folder, const std::string& name) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = monotonic_ns();
  Folder& in = folders_[key(*folder)];
  if (!in.pin) in.pin = folder;
  auto [at, fresh] = in.names[name].missed.try_emplace(by, now);
  if (!fresh && now - at->second > longest_ns_) at->second = now;
  if (++finished_ % kTidyEvery == 0) tidy_locked(now);
}

// Drops what no window reaches any more.
void Views::tidy_locked(std::uint64_t now) {
  std::uint64_t until = now - std::min(now, longest_ns_);
  for (const auto& [rule, released] : released_) until = std::min(until, released);
  for (auto& [at, folder] : folders_) {
    for (auto& [name, record] : folder.names) {
      record.changes.forget(until);
      std::erase_if(record.missed, [until](const auto& miss) { return miss.second <= until; });
    }
    std::erase_if(folder.names, [](const auto& named) {
      return named.second.changes.empty() && named.second.missed.empty();
    });
  }
  std::erase_if(folders_, [](const auto& folder) { return folder.second.names.empty(); });
  for (auto& [at, inode] : inodes_) inode.changes.forget(until);
  std::erase_if(inodes_, [](const auto& inode) { return inode.second.changes.empty(); });
}

std::optional<NodePtr> View::name(const Node& folder, const std::string& name) const {
  const std::lock_guard lock(views_.mutex_);
  const auto found = views_.folders_.find(Views::key(folder));
  if (found == views_.folders_.end()) return std::nullopt;
  const auto in = found->second.names.find(name);
  if (in == found->second.names.end()) return std::nullopt;
  if (action_.has(Aspect::kNegative)) {
    const auto at = in->second.missed.find(viewer_);
    if (at != in->second.missed.end() && at->second > since_ &&
        in->second.changes.changed_by_another(viewer_, at->second)) {
      return NodePtr();
    }
  }
  if (!action_.has(Aspect::kName)) return std::nullopt;
  const NodePtr* before = in->second.changes.hidden(viewer_, since_);
  if (before == nullptr) return std::nullopt;
  return *before;
}

std::map<std::string, NodePtr> View::listing(const Node& folder) const {
  std::map<std::string, NodePtr> shown;
  const std::lock_guard lock(views_.mutex_);
  const auto found = views_.folders_.find(Views::key(folder));
  if (found == views_.folders_.end()) return shown;
  for (const auto& [name, record] : found->second.names) {
    if (const NodePtr* before = record.changes.hidden(viewer_, since_)) shown[name] = *before;
  }
  return shown;
}

std::optional<struct stat> View::before(const Node& node) const {
  const std::lock_guard lock(views_.mutex_);
  const auto found = views_.inodes_.find(Views::key(node));
  if (found == views_.inodes_.end()) return std::nullopt;
  const struct stat* before = found->second.changes.hidden(viewer_, since_);
  if (before == nullptr) return std::nullopt;
  return *before;
}

void View::attributes(const Node& node, struct stat& now) const {
  const auto old = before(node);
  if (!old) return;
  if (action_.has(Aspect::kSize)) {
    now.st_size = old->st_size;
    now.st_blocks = old->st_blocks;
  }
  if (action_.has(Aspect::kAttributes)) {
    now.st_mode = old->st_mode;
    now.st_uid = old->st_uid;
    now.st_gid = old->st_gid;
    now.st_nlink = old->st_nlink;
  }
  now.st_mtim = old->st_mtim;
  now.st_ctim = old->st_ctim;
}

std::uint64_t View::readable(const Node& node, std::uint64_t offset, std::uint64_t length) const {
  const auto old = before(node);
  if (!old) return length;
  const auto size = static_cast<std::uint64_t>(old->st_size);
  return std::min(length, size - std::min(size, offset));
}

bool HiddenFrom::any(const StaleAction& action, const std::string& rule) const {
  const View view(views_, viewer_, views_.since(action, rule), action);
  const Node& node = *subject_.node;
  struct stat now {};
  switch (op_) {
    case Op::kLookup: {
      const auto shown = view.name(node, subject_.name);
      if (!shown) return false;
      return *shown ? !same_inode(**shown, node, subject_.name) : exists(node, subject_.name);
    }
    case Op::kReaddir: {
      if (offset_ != 0) return false;  // the first part has decided
      const auto shown = view.listing(node);
      return std::any_of(shown.begin(), shown.end(), [&node](const auto& entry) {
        return (entry.second != nullptr) != exists(node, entry.first);
      });
    }
    case Op::kGetattr: {
      if (::fstat(node.fd, &now) != 0) return false;
      struct stat shown = now;
      view.attributes(node, shown);
      return !look_equal(shown, now);
    }
    case Op::kRead:
      return ::fstat(node.fd, &now) == 0 &&
             view.readable(node, offset_, length_) <
                 std::min(length_, static_cast<std::uint64_t>(now.st_size) -
                                       std::min(static_cast<std::uint64_t>(now.st_size), offset_));
    default:
      return false;
  }
}

}  // namespace savegate::fusefs
