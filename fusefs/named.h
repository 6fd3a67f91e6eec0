// The backing inode that a name stands for at one moment; pinned, whatever becomes of the name.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fusefs/inode_table.h"

namespace savegate::fusefs {

class Named {
 public:
  Named(const Node& parent, const char* name)
      : fd_(::openat(parent.fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC)) {}
  ~Named() {
    if (fd_ >= 0) ::close(fd_);
  }
  Named(const Named&) = delete;
  Named& operator=(const Named&) = delete;

  bool exists() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  NodePtr node(const InodeTable& inodes) const {
    struct stat attributes {};
    if (fd_ < 0 || ::fstat(fd_, &attributes) != 0) return nullptr;
    return inodes.find(attributes.st_dev, attributes.st_ino);
  }
  faults::FileId file() const {
    struct stat attributes {};
    return fd_ >= 0 && ::fstat(fd_, &attributes) == 0 ? attributes.st_ino : 0;
  }

 private:
  const int fd_;
};

}  // namespace savegate::fusefs
