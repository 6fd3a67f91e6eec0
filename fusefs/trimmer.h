// Keeps the number of known inodes, each with a descriptor, below what the process may open.
//
// The kernel forgets an inode only when it is short of memory. So once there are too many, names
// are taken out of its cache; those that nobody uses are then forgotten. That may wait for a
// directory's lock, which a held operation can own: it has a thread of its own.
#pragma once

#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "fusefs/inode_table.h"

namespace savegate::fusefs {

class Trimmer {
 public:
  // Trims to half of `most` nodes whenever there are more.
  Trimmer(InodeTable& inodes, std::size_t most) : inodes_(inodes), most_(most) {}
  ~Trimmer();
  Trimmer(const Trimmer&) = delete;
  Trimmer& operator=(const Trimmer&) = delete;

  void start(fuse_session* session);
  void check() {
    if (inodes_.size() > most_) wake();
  }

 private:
  void wake();
  void run();
  void trim();

  InodeTable& inodes_;
  const std::size_t most_;
  fuse_session* session_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace savegate::fusefs
