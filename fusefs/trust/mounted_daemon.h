// For tests: savegate-fs as a program, on a fresh folder, in a mount namespace of this process
// alone.
//
//   MountedDaemon daemon;                                  // or MountedDaemon daemon(plan_toml);
//   if (!daemon.available()) GTEST_SKIP() << daemon.why_not();
//   … daemon.mount(), daemon.backing(), daemon.scratch() …
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace savegate::fusefs {

// Why this machine cannot mount, "" if it can: what is mounted from now on is seen by this process
// and its children alone.
std::string enter_private_mounts();

class MountedDaemon {
 public:
  explicit MountedDaemon(
      const std::string& plan_toml = "", std::vector<std::string> more_arguments = {},
      const std::string& base = "");  // folder for it all; "": for temporary files
  ~MountedDaemon();                   // stops the daemon, removes the folders
  MountedDaemon(const MountedDaemon&) = delete;
  MountedDaemon& operator=(const MountedDaemon&) = delete;

  bool available() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }  // "/dev/fuse: ENOENT", "not root" …

  std::string mount() const { return folder_ + "/mount"; }
  std::string backing() const { return folder_ + "/backing"; }
  std::string scratch() const { return folder_ + "/scratch"; }  // a plain folder beside them
  std::string control() const { return folder_ + "/control"; }
  std::string folder() const { return folder_; }
  pid_t pid() const { return pid_; }

 private:
  std::string folder_;
  std::string why_not_;
  pid_t pid_ = -1;
};

}  // namespace savegate::fusefs
