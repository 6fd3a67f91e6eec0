#include "fusefs/trust/backing_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "faults/status.h"
#include "fusefs/trust/mounted_daemon.h"

namespace savegate::fusefs {
namespace {

namespace fs = std::filesystem;

// Sparse. That of XFS is large enough for inode numbers of more than 32 bits.
struct Image {
  const char* kind;
  off_t bytes;
  const char* options;
};
constexpr std::array<Image, 3> kImages = {{
    {"ext4", off_t{512} << 20, ""},
    {"xfs", off_t{16} << 40, "-l size=64m"},
    {"btrfs", off_t{512} << 20, ""},
}};

// "" where the shell command succeeds, else what it said.
std::string failed(const std::string& command) {
  FILE* pipe = popen(("exec 2>&1; " + command).c_str(), "r");
  if (pipe == nullptr) return command + ": " + errno_name(errno);
  std::string said;
  char part[512];
  for (std::size_t got; (got = fread(part, 1, sizeof part, pipe)) > 0;) said.append(part, got);
  return pclose(pipe) == 0 ? "" : command + ": " + said;
}

std::string mounted(const char* type, const std::string& where, const std::string& options) {
  if (mount(type, where.c_str(), type, 0, options.c_str()) == 0) return "";
  return fmt::format("mount {}: {}", type, errno_name(errno));
}

std::string loop_mounted(const std::string& kind, const std::string& image,
                         const std::string& folder) {
  if (!failed("command -v mkfs." + kind).empty()) return "mkfs." + kind + " is not installed";
  const auto* found = std::find_if(kImages.begin(), kImages.end(),
                                   [&](const Image& each) { return kind == each.kind; });
  if (found == kImages.end()) return "no image of a " + kind + " is known";
  const int fd = open(image.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  const bool made = fd >= 0 && ftruncate(fd, found->bytes) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!made) return image + ": " + errno_name(error);
  if (std::string why = failed(fmt::format("mkfs.{} -q {} {}", kind, found->options, image));
      !why.empty()) {
    return why;
  }
  return failed(fmt::format("mount -t {} -o loop {} {}", kind, image, folder));
}

}  // namespace

BackingDisk::BackingDisk(const std::string& kind) : why_not_(enter_private_mounts()) {
  if (!why_not_.empty()) return;
  top_ = fs::temp_directory_path().string() + "/savegate-disk-XXXXXX";
  if (mkdtemp(top_.data()) == nullptr) {
    why_not_ = top_ + ": " + errno_name(errno);
    return;
  }
  for (const std::string& path : {folder(), top_ + "/memory"}) fs::create_directory(path);
  why_not_ = make(kind);
}

std::string BackingDisk::make(const std::string& kind) const {
  if (kind == "tmpfs") return mounted("tmpfs", folder(), "");
  const std::string memory = top_ + "/memory";
  if (std::string why = mounted("tmpfs", memory, ""); !why.empty()) return why;
  if (kind != "overlay") return loop_mounted(kind, memory + "/image", folder());

  for (const char* layer : {"/lower", "/upper", "/work"}) fs::create_directory(memory + layer);
  return mounted(
      "overlay", folder(),
      fmt::format("lowerdir={}/lower,upperdir={}/upper,workdir={}/work", memory, memory, memory));
}

BackingDisk::~BackingDisk() {
  if (top_.empty()) return;
  // Not there where it could not be made.
  umount2(folder().c_str(), MNT_DETACH);
  umount2((top_ + "/memory").c_str(), MNT_DETACH);
  std::error_code ignored;
  fs::remove_all(top_, ignored);
}

}  // namespace savegate::fusefs
