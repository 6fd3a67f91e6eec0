// `savegate doctor`: for each need, whether it is there, and how to get it.
#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fusefs/mount.h"
#include "harness/cli/catalog.h"
#include "harness/cli/commands.h"
#include "harness/cli/gpus.h"

namespace savegate::cli {
namespace {

namespace fs = std::filesystem;

struct Finding {
  bool there = false;
  bool needed = true;
  std::string what = {};
  std::string found = {};    // what is there, or what is wrong
  std::string way_out = {};  // shown where it is not there
};

Finding fuse_device() {
  Finding finding{.what = "FUSE", .found = "/dev/fuse opens"};
  const int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  finding.there = fd >= 0 && fusefs::is_fuse_device(fd);
  if (fd < 0) {
    finding.found = "/dev/fuse: " + errno_name(errno);
  } else {
    if (!finding.there) finding.found = "/dev/fuse is no FUSE device";
    close(fd);
  }
  finding.way_out = "modprobe fuse; in a container, --device /dev/fuse --cap-add SYS_ADMIN";
  return finding;
}

// A child tries it, so that this process stays where it is.
bool child_can(int flags) {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(flags) == 0 ? 0 : 1);
  int status = 1;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

Finding namespaces() {
  const bool root = geteuid() == 0;
  const int user = root ? 0 : CLONE_NEWUSER;
  Finding finding{.what = "namespaces"};
  finding.there = child_can(user | CLONE_NEWNS | CLONE_NEWPID);
  finding.found = finding.there ? fmt::format("private mounts and processes{}",
                                              root ? "" : " (in a user namespace)")
                                : "this user may not make mount and process namespaces";
  finding.way_out =
      "run as root, or allow user namespaces: sysctl kernel.unprivileged_userns_clone=1";
  return finding;
}

Finding program(const Catalog& catalog, const std::string& name) {
  const std::string path = catalog.bin + "/" + name;
  return {.there = access(path.c_str(), X_OK) == 0,
          .what = name,
          .found = path,
          .way_out = "./dev build"};
}

Finding store_folder(const std::string& store) {
  Finding finding{.what = "store"};
  std::error_code error;
  fs::create_directories(store, error);
  const std::string probe = fmt::format("{}/.doctor-{}", store, getpid());
  if (!error) {
    const int fd = open(probe.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) error = std::error_code(errno, std::generic_category());
    if (fd >= 0) {
      close(fd);
      unlink(probe.c_str());
    }
  }
  struct statvfs space {};
  if (!error && statvfs(store.c_str(), &space) == 0) {
    const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
    finding.there = free > (std::uint64_t{256} << 20);
    finding.found =
        fmt::format("{}: {:.1f} GiB free", store, static_cast<double>(free) / (1 << 30));
  } else {
    finding.found = store + ": " + errno_name(error.value());
  }
  finding.way_out = "--store FOLDER with at least 256 MiB free";
  return finding;
}

Finding cgroup_memory() {
  Finding finding{.needed = false, .what = "cgroup memory"};
  std::ifstream controllers("/sys/fs/cgroup/cgroup.controllers");
  std::string words;
  std::getline(controllers, words);
  if (words.find("memory") != std::string::npos)
    finding.found = "v2";
  else if (fs::exists("/sys/fs/cgroup/memory/memory.usage_in_bytes"))
    finding.found = "v1";
  finding.there = !finding.found.empty();
  if (!finding.there) finding.found = "no memory controller is mounted";
  finding.way_out = "memory figures of the cgroup will read \"not obtained\"";
  return finding;
}

Finding gpus() {
  Finding finding{.needed = false, .what = "GPUs"};
  const Result<int> found = count_gpus();
  finding.there = found.has_value();
  finding.found = found ? std::to_string(*found) : found.error().text;
  finding.way_out = "--device cpu works without";
  return finding;
}

Finding library(const std::string& what, const char* name, const std::string& way_out) {
  Finding finding{.needed = false, .what = what, .found = name, .way_out = way_out};
  void* handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  finding.there = handle != nullptr;
  if (handle != nullptr) dlclose(handle);
  return finding;
}

Finding stale_mounts() {
  Finding finding{.there = true, .what = "stale mounts", .found = "none"};
  std::ifstream mounts("/proc/self/mounts");
  for (std::string line; std::getline(mounts, line);) {
    if (line.find("savegate") == std::string::npos) continue;
    const std::size_t from = line.find(' ') + 1;
    const std::string point = line.substr(from, line.find(' ', from) - from);
    struct statvfs ignored {};
    if (statvfs(point.c_str(), &ignored) == 0 || errno != ENOTCONN) continue;
    finding.there = false;
    finding.found = point + " has lost its daemon";
    finding.way_out = "umount -l " + point;
  }
  return finding;
}

}  // namespace

int doctor_command(const std::string& store) {
  auto catalog = find_catalog();
  if (!catalog) return report_error(catalog.error());
  utsname kernel{};
  uname(&kernel);
  fmt::print("savegate {} on Linux {}\n", SAVEGATE_VERSION, kernel.release);

  bool all_there = true;
  for (const Finding& finding :
       {fuse_device(), namespaces(), program(*catalog, "savegate-fs"),
        program(*catalog, "savegate-reference"), store_folder(store), stale_mounts(),
        cgroup_memory(), gpus(),
        library("NCCL", "libnccl.so.2", "--device cpu works without it")}) {
    const char* word = finding.there ? "ok" : finding.needed ? "MISSING" : "absent";
    fmt::print("{:<8} {:<20} {}\n", word, finding.what, finding.found);
    if (!finding.there) fmt::print("{:<29} → {}\n", "", finding.way_out);
    all_there = all_there && (finding.there || !finding.needed);
  }
  return all_there ? kPassed : kEnvironment;
}

}  // namespace savegate::cli
