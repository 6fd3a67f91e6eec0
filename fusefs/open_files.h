// Which files are open, and which operations on them the kernel keeps to itself.
//
// In passthrough the kernel reads and writes the backing file itself, and where FLUSH is not wanted
// it sends none at close. What a handle lets the daemon see is settled when it is opened; so the
// choice is made under the lock that arming a plan holds, too: no rule comes between.
//
// The kernel takes an inode one way at a time. While a handle in passthrough is open, others must
// name the same backing file; theirs are then sent here by direct I/O if they must be (but stores
// through a shared mapping are not). While any other handle is open, there is no passthrough.
//
// Thread-safe. `mutex_` comes before all other locks.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "fusefs/inode_table.h"

namespace savegate::fusefs {

// How one handle is open.
struct OpenWay {
  int backing_id = 0;  // of passthrough, else 0
  bool writable = false;
  bool direct = false;
  bool sends_close = true;
};

class OpenFiles {
 public:
  void connect(int fuse_fd) { fuse_fd_ = fuse_fd; }  // before any file is opened
  void allow_passthrough(std::string why_not);       // "": it is to be had

  // What a handle that is to be opened must let the daemon see.
  struct Needs {
    const char* data = nullptr;  // why its reads and writes; null: they need not be
    bool direct = false;         // if they are: as they were asked, without the page cache
    bool close = true;
  };
  OpenWay open(const NodePtr& node, int fd, bool writable, const std::function<Needs()>& needs);
  void close(const Node& node, const OpenWay& way);

  // Calls `arm` while no file can be opened, unless there are files on which the kernel keeps
  // operations to itself that `needs` names; these are returned by path, and with `anyway` it is
  // called nevertheless.
  std::vector<std::string> arm(const InodeTable& inodes,
                               const std::function<std::uint64_t(const std::string&)>& needs,
                               bool anyway, const std::function<void()>& arm);

  struct File {
    NodePtr node;
    int passthrough = 0;  // handles that are read and written by the kernel
    int other = 0;
    std::string why;           // of the other ones
    std::uint64_t unseen = 0;  // operations that some handle keeps from the daemon
  };
  std::vector<File> files() const;
  // Why no file at all passes through, "" if they may.
  std::string why_not() const;

 private:
  struct Entry {
    NodePtr node;
    int backing_id = 0;
    int backed = 0;  // handles that name it
    int kept = 0;    // of these, those whose reads and writes the kernel keeps
    int kept_writable = 0;
    int other = 0;     // handles that do not name it
    int no_close = 0;  // handles that send none
    std::string why;

    void count(const OpenWay& way, int change);
    std::uint64_t unseen() const;  // operations that the kernel keeps
  };
  int backing_id_for(Entry& entry, int fd);

  mutable std::mutex mutex_;
  int fuse_fd_ = -1;
  std::string why_not_ = "the kernel has not answered yet";
  std::unordered_map<const Node*, Entry> entries_;
};

}  // namespace savegate::fusefs
