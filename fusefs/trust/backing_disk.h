// For tests: a folder on a file system of a kind, made for the test and gone with it.
//
//   BackingDisk disk("xfs");
//   if (!disk.available()) GTEST_SKIP() << disk.why_not();   // "mkfs.xfs is not installed" …
//   … disk.folder() …
//
// tmpfs and overlayfs are mounted, the others are images in memory behind a loop device. All is in
// the mount namespace of this process, so that nothing stays whoever dies.
#pragma once

#include <string>

namespace savegate::fusefs {

class BackingDisk {
 public:
  explicit BackingDisk(const std::string& kind);  // "tmpfs", "ext4", "xfs", "btrfs", "overlay"
  ~BackingDisk();
  BackingDisk(const BackingDisk&) = delete;
  BackingDisk& operator=(const BackingDisk&) = delete;

  bool available() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }
  std::string folder() const { return top_ + "/disk"; }

 private:
  std::string make(const std::string& kind) const;  // why it cannot be, "" if it is

  std::string top_;
  std::string why_not_;
};

}  // namespace savegate::fusefs
