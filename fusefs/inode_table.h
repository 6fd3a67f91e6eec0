// Inodes that the kernel knows, by their backing identity, each with the name it was last used by.
//
// A Node pins its backing inode with an O_PATH descriptor, so that (dev, ino) cannot be reused
// while the kernel still speaks of it. Its path is (parent, name) followed upwards at the moment of
// asking: renaming a directory changes the paths of all below it at no cost. A hard link has the
// name that was used last; an unlinked file keeps its last name.
//
// Thread-safe. One lock, `mutex_`, held for no system call; rules_mutex of a node is a leaf lock.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "faults/injector.h"

namespace savegate::fusefs {

using NodeId = std::uint64_t;  // what FUSE calls an inode number; 1 is the root

struct Node : std::enable_shared_from_this<Node> {
  Node(int path_fd, const struct stat& attributes)
      : fd(path_fd), dev(attributes.st_dev), ino(attributes.st_ino), mode(attributes.st_mode) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  const int fd;  // O_PATH
  const dev_t dev;
  const ino_t ino;
  const mode_t mode;  // only the file type is constant

  std::atomic<int> handles{0};
  std::atomic<bool> unlinked{false};  // its last name is gone

  // Guarded by InodeTable::mutex_.
  std::uint64_t lookups = 0;
  std::shared_ptr<Node> parent;
  std::string name;

  std::mutex rules_mutex;
  std::uint64_t rules_generation = 0;  // of the injector; 0: never asked
  std::uint64_t rules_epoch = 0;       // of the table
  std::shared_ptr<const faults::FileRules> rules;
};
using NodePtr = std::shared_ptr<Node>;

// A backing inode.
struct InodeKey {
  dev_t dev;
  ino_t ino;
  bool operator==(const InodeKey&) const = default;
};
struct InodeKeyHash {
  std::size_t operator()(const InodeKey& key) const {
    return std::hash<std::uint64_t>()(key.ino * 0x9E3779B97F4A7C15ull ^ key.dev);
  }
};

class InodeTable {
 public:
  InodeTable() = default;
  InodeTable(const InodeTable&) = delete;
  InodeTable& operator=(const InodeTable&) = delete;

  // 0 or errno. Takes the descriptor.
  int set_root(int path_fd);
  const NodePtr& root() const { return root_; }

  NodePtr get(NodeId id) const;
  NodeId id(const Node& node) const;
  // Finds `name` in the backing directory and counts one lookup by the kernel. 0 or errno.
  int lookup(const NodePtr& parent, const std::string& name, NodePtr& node,
             struct stat& attributes);
  // Counts one lookup of an inode that need not have the name any more; a node that the kernel
  // knows keeps the name that it has.
  NodePtr adopt(const NodePtr& inode, const NodePtr& parent, const std::string& name);
  // The node of a backing inode that the kernel knows, or null.
  NodePtr find(dev_t dev, ino_t ino) const;
  void forget(NodeId id, std::uint64_t lookups);

  std::size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Names of nodes that no handle is open on, other ones each time.
  struct Entry {
    NodePtr parent;
    std::string name;
  };
  std::vector<Entry> unopened(std::size_t most);
  // The name that the node goes by now; the root has no parent.
  Entry entry(const Node& node) const;

  void moved(const NodePtr& node, const NodePtr& parent, const std::string& name);
  // Relative to the root, without a leading slash; of `name` below the node if one is given.
  std::string path(const Node& node, std::string_view name = {}) const;
  // Changes whenever the paths of many nodes may have changed.
  std::uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

 private:
  void rename_locked(Node& node, const NodePtr& parent, const std::string& name);

  mutable std::shared_mutex mutex_;
  NodePtr root_;
  std::unordered_map<InodeKey, NodePtr, InodeKeyHash> nodes_;
  std::atomic<std::size_t> size_{0};
  std::size_t next_bucket_ = 0;  // of unopened()
  std::atomic<std::uint64_t> epoch_{1};
};

}  // namespace savegate::fusefs
