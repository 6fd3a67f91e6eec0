#include "fusefs/trust/mounted_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "faults/status.h"

namespace savegate::fusefs {
namespace {

namespace fs = std::filesystem;

std::string program_path() {
  return fs::read_symlink("/proc/self/exe").parent_path().string() + "/savegate-fs";
}

}  // namespace

std::string enter_private_mounts() {
  static const std::string problem = [] {
    if (access("/dev/fuse", R_OK | W_OK) != 0) return "/dev/fuse: " + errno_name(errno);
    if (unshare(CLONE_NEWNS) != 0)
      return "a private mount namespace needs root: " + errno_name(errno);
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return "mount / private: " + errno_name(errno);
    return std::string();
  }();
  return problem;
}

MountedDaemon::MountedDaemon(const std::string& plan_toml, std::vector<std::string> more_arguments,
                             const std::string& base)
    : why_not_(enter_private_mounts()) {
  if (!why_not_.empty()) return;
  std::string name =
      (base.empty() ? fs::temp_directory_path().string() : base) + "/savegate-trust-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    why_not_ = name + ": " + errno_name(errno);
    return;
  }
  folder_ = name;
  for (const std::string& path : {mount(), backing(), scratch()}) fs::create_directory(path);

  int ready[2];
  if (pipe(ready) != 0) {
    why_not_ = "pipe: " + errno_name(errno);
    return;
  }
  std::vector<std::string> words = {program_path(), "--backing",  backing(),
                                    "--mount",      mount(),      "--control",
                                    control(),      "--ready-fd", std::to_string(ready[1])};
  if (!plan_toml.empty()) {
    std::ofstream(folder_ + "/plan.toml") << plan_toml;
    words.insert(words.end(), {"--plan", folder_ + "/plan.toml"});
  }
  words.insert(words.end(), more_arguments.begin(), more_arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    close(ready[0]);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(ready[1]);
  char answer[6];
  const ssize_t got = read(ready[0], answer, sizeof(answer));  // 0 when the daemon ends instead
  close(ready[0]);
  if (got <= 0) why_not_ = program_path() + " did not become ready";
}

MountedDaemon::~MountedDaemon() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  if (folder_.empty()) return;
  umount2(mount().c_str(), MNT_DETACH);  // fails where the daemon has done it, as it should
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

}  // namespace savegate::fusefs
