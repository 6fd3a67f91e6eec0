#include "fusefs/inode_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace savegate::fusefs {

static_assert(sizeof(NodeId) >= sizeof(void*), "a node's address is its number");
constexpr NodeId kRootId = 1;

Node::~Node() { ::close(fd); }

int InodeTable::set_root(int path_fd) {
  struct stat attributes {};
  if (::fstat(path_fd, &attributes) != 0) {
    int error = errno;
    ::close(path_fd);
    return error;
  }
  root_ = std::make_shared<Node>(path_fd, attributes);
  root_->lookups = 1;
  return 0;
}

NodePtr InodeTable::get(NodeId id) const {
  if (id == kRootId) return root_;
  return std::bit_cast<Node*>(id)->shared_from_this();
}

NodeId InodeTable::id(const Node& node) const {
  return &node == root_.get() ? kRootId : std::bit_cast<NodeId>(&node);
}

int InodeTable::lookup(const NodePtr& parent, const std::string& name, NodePtr& node,
                       struct stat& attributes) {
  int fd = ::openat(parent->fd, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  if (::fstat(fd, &attributes) != 0) {
    int error = errno;
    ::close(fd);
    return error;
  }
  auto fresh = std::make_shared<Node>(fd, attributes);
  std::unique_lock lock(mutex_);
  auto [position, inserted] =
      nodes_.try_emplace(InodeKey{attributes.st_dev, attributes.st_ino}, std::move(fresh));
  node = position->second;
  size_ = nodes_.size();
  node->lookups++;
  rename_locked(*node, parent, name);
  return 0;
}

NodePtr InodeTable::adopt(const NodePtr& inode, const NodePtr& parent, const std::string& name) {
  std::unique_lock lock(mutex_);
  auto [position, inserted] = nodes_.try_emplace(InodeKey{inode->dev, inode->ino}, inode);
  const NodePtr& node = position->second;
  size_ = nodes_.size();
  node->lookups++;
  if (node->parent == nullptr) rename_locked(*node, parent, name);
  return node;
}

NodePtr InodeTable::find(dev_t dev, ino_t ino) const {
  std::shared_lock lock(mutex_);
  auto position = nodes_.find(InodeKey{dev, ino});
  return position == nodes_.end() ? nullptr : position->second;
}

void InodeTable::forget(NodeId id, std::uint64_t lookups) {
  if (id == kRootId) return;
  NodePtr gone;  // destroyed after the lock is let go
  std::unique_lock lock(mutex_);
  Node* node = std::bit_cast<Node*>(id);
  node->lookups -= lookups;
  if (node->lookups != 0) return;
  auto position = nodes_.find(InodeKey{node->dev, node->ino});
  if (position == nodes_.end()) return;
  gone = std::move(position->second);
  nodes_.erase(position);
  size_ = nodes_.size();
  lock.unlock();
}

std::vector<InodeTable::Entry> InodeTable::unopened(std::size_t most) {
  std::vector<Entry> entries;
  std::unique_lock lock(mutex_);
  const std::size_t buckets = nodes_.bucket_count();
  for (std::size_t i = 0; i < buckets && entries.size() < most; i++) {
    next_bucket_ = (next_bucket_ + 1) % buckets;
    for (auto at = nodes_.begin(next_bucket_); at != nodes_.end(next_bucket_); ++at) {
      const Node& node = *at->second;
      if (node.handles == 0 && node.parent) entries.push_back({node.parent, node.name});
    }
  }
  return entries;
}

InodeTable::Entry InodeTable::entry(const Node& node) const {
  std::shared_lock lock(mutex_);
  return {node.parent, node.name};
}

void InodeTable::moved(const NodePtr& node, const NodePtr& parent, const std::string& name) {
  std::unique_lock lock(mutex_);
  rename_locked(*node, parent, name);
}

void InodeTable::rename_locked(Node& node, const NodePtr& parent, const std::string& name) {
  if (node.parent == parent && node.name == name) return;
  bool fresh = node.parent == nullptr;
  node.parent = parent;
  node.name = name;
  if (!fresh) epoch_.fetch_add(1, std::memory_order_release);
}

std::string InodeTable::path(const Node& node, std::string_view name) const {
  std::string path;
  std::shared_lock lock(mutex_);
  std::size_t length = name.size();
  for (const Node* at = &node; at->parent != nullptr; at = at->parent.get()) {
    length += at->name.size() + 1;
  }
  if (name.empty() && length > 0) length--;
  path.resize(length, '/');
  std::size_t end = length;  // filled from the last component to the first
  const auto put = [&path, &end](std::string_view part) {
    path.replace(end - part.size(), part.size(), part);
    end -= std::min(end, part.size() + 1);
  };
  if (!name.empty()) put(name);
  for (const Node* at = &node; at->parent != nullptr; at = at->parent.get()) put(at->name);
  return path;
}

}  // namespace savegate::fusefs
