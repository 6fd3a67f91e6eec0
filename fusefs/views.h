// Views: what each caller sees of names, sizes, listings and attributes while it is behind.
//
// Every change that passes through the mount is recorded, with what was there before, as long as a
// `stale` rule is armed and its window reaches back. A View is one caller's look at that record:
//
//   View view(views, viewer, since, action);
//   auto shown = view.name(folder, "latest");   // nothing: what is there; null: no such name
//
// A removed file that somebody still sees is kept with its bytes (a descriptor pins it). Opening a
// file brings the opener up to date with its size and attributes (close-to-open). Bytes that are
// overwritten in place are the same for all.
//
// Thread-safe. One lock, held for no system call but close(2) of what is forgotten.
#pragma once

#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "faults/plan.h"
#include "fusefs/inode_table.h"
#include "fusefs/timeline.h"

namespace savegate::fusefs {

// What an operation is about: the names as Target has them.
struct Subject {
  NodePtr node = {};
  std::string name = {};  // "": node itself
  NodePtr node2 = {};
  std::string name2 = {};
};

Viewer viewer_of(const faults::Caller& caller);

class Views {
 public:
  // Forgets all that was recorded.
  void arm(const faults::Plan& plan);
  // Whether any rule could hide a change.
  bool recording() const { return recording_.load(std::memory_order_relaxed); }
  // Rules without a window show all that has happened so far; "" means each of them. How many.
  std::size_t release(const std::string& rule);
  // Changes after this moment are hidden by the rule.
  std::uint64_t since(const faults::StaleAction& action, const std::string& rule) const;

  // A change on its way: begun before it is made, finished once it is known whether it was.
  struct Change {
    struct Name {
      NodePtr folder;
      std::string name;
      std::uint64_t id;
    };
    struct Inode {
      NodePtr node;
      std::uint64_t id;
    };
    Viewer by = 0;
    std::vector<Name> names;
    std::vector<Inode> inodes;
  };
  Change begin(Viewer by, faults::Op op, std::uint32_t flags, const Subject& subject);
  void finish(const Change& change, bool made);
  void opened(Viewer by, const Node& node);
  // The caller was truly told that there is no such name.
  void missed(Viewer by, const NodePtr& folder, const std::string& name);

 private:
  friend class View;
  struct Name {
    Timeline<NodePtr> changes;  // null: there was none of that name
    std::map<Viewer, std::uint64_t> missed;
  };
  struct Folder {
    NodePtr pin;  // its number is not used again
    std::map<std::string, Name, std::less<>> names;
  };
  struct Inode {
    NodePtr pin;
    Timeline<struct stat> changes;
  };

  static InodeKey key(const Node& node) { return {node.dev, node.ino}; }
  void begin_name(Change& change, const NodePtr& folder, const std::string& name);
  void begin_inode(Change& change, const NodePtr& node);
  void tidy_locked(std::uint64_t now);

  std::atomic<bool> recording_{false};
  mutable std::mutex mutex_;
  std::unordered_map<InodeKey, Folder, InodeKeyHash> folders_;
  std::unordered_map<InodeKey, Inode, InodeKeyHash> inodes_;
  std::uint64_t longest_ns_ = 0;  // of all windows; UINT64_MAX with a rule that has none
  std::uint64_t grain_ns_ = 0;
  std::map<std::string, std::uint64_t> released_;  // rules without a window, and until when
  std::uint64_t finished_ = 0;
};

// What one caller sees of the changes after `since`.
class View {
 public:
  View(const Views& views, Viewer viewer, std::uint64_t since, const faults::StaleAction& action)
      : views_(views), viewer_(viewer), since_(since), action_(action) {}

  // Nothing: what is there; null: no such name; else an inode that the name stood for.
  std::optional<NodePtr> name(const Node& folder, const std::string& name) const;
  // Names of the folder that are not as they are: null where there is none.
  std::map<std::string, NodePtr> listing(const Node& folder) const;
  // The attributes as they were.
  void attributes(const Node& node, struct stat& now) const;
  // Bytes at `offset` that end before the size that is seen.
  std::uint64_t readable(const Node& node, std::uint64_t offset, std::uint64_t length) const;

 private:
  std::optional<struct stat> before(const Node& node) const;

  const Views& views_;
  const Viewer viewer_;
  const std::uint64_t since_;
  const faults::StaleAction action_;
};

// For the injector: whether there is anything to hide from the operation.
class HiddenFrom : public faults::HiddenChanges {
 public:
  HiddenFrom(const Views& views, Viewer viewer, faults::Op op, const Subject& subject,
             std::uint64_t offset, std::uint64_t length)
      : views_(views),
        viewer_(viewer),
        op_(op),
        subject_(subject),
        offset_(offset),
        length_(length) {}
  bool any(const faults::StaleAction& action, const std::string& rule) const override;

 private:
  const Views& views_;
  const Viewer viewer_;
  const faults::Op op_;
  const Subject& subject_;
  const std::uint64_t offset_;
  const std::uint64_t length_;
};

}  // namespace savegate::fusefs
