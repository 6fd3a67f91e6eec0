#include "fusefs/mount.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace savegate::fusefs {

bool is_fuse_device(int fd) {
  const dev_t fuse = ::makedev(10, 229);
  struct stat attributes {};
  return ::fstat(fd, &attributes) == 0 && S_ISCHR(attributes.st_mode) && attributes.st_rdev == fuse;
}

Result<void> check_mount_point(const std::string& mount_point) {
  struct stat attributes {};
  if (::stat(mount_point.c_str(), &attributes) != 0) {
    const int error = errno;
    if (error == ENOTCONN) {
      Status status =
          unavailable(fmt::format("a mount whose server is gone lies there; take it away with "
                                  "`umount -l {}` or `fusermount3 -uz {}`",
                                  mount_point, mount_point),
                      mount_point, error);
      status.operation = "mount";
      return fail(status);
    }
    Status status =
        unavailable("make this directory first, or mount elsewhere", mount_point, error);
    status.operation = "mount";
    return fail(status);
  }
  if (!S_ISDIR(attributes.st_mode)) {
    Status status = unavailable("a mount point must be a directory", mount_point, ENOTDIR);
    status.operation = "mount";
    return fail(status);
  }
  return {};
}

Result<int> mount_fuse(const std::string& mount_point, const std::string& source) {
  const int fd = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  const auto unusable = [](const char* way_out, int error) {
    Status status = unavailable(way_out, "/dev/fuse", error);
    status.operation = "open";
    return fail(status);
  };
  if (fd < 0 && (errno == EACCES || errno == EPERM)) {
    return unusable(
        "run as root, or let this user open it (`chmod 666 /dev/fuse`; in a container, "
        "--device /dev/fuse)",
        errno);
  }
  if (fd < 0) {
    return unusable("load the fuse module (`modprobe fuse`), or give the container /dev/fuse",
                    errno);
  }
  if (!is_fuse_device(fd)) {
    ::close(fd);
    return unusable(
        "it is no FUSE device; make it (`mknod /dev/fuse c 10 229`), or give the "
        "container the host's",
        ENODEV);
  }
  const std::string options =
      fmt::format("fd={},rootmode=40000,user_id={},group_id={},allow_other,default_permissions", fd,
                  ::geteuid(), ::getegid());
  if (::mount(source.c_str(), mount_point.c_str(), "fuse.savegate", MS_NOSUID | MS_NODEV,
              options.c_str()) != 0) {
    const int error = errno;
    ::close(fd);
    Status status = unavailable(
        "mounting needs CAP_SYS_ADMIN in this namespace: run as root (a container: "
        "--cap-add SYS_ADMIN --device /dev/fuse), or as a user with fusermount3 installed",
        mount_point, error);
    status.operation = "mount";
    return fail(status);
  }
  return fd;
}

Result<void> unmount(const std::string& mount_point) {
  if (::umount2(mount_point.c_str(), MNT_DETACH) == 0) return {};
  if (errno == EINVAL || errno == ENOENT) return {};
  return fail(system_error("umount", mount_point));
}

bool abort_connection(const std::string& mount_point) {
  struct statx root {};  // as the kernel knows it: the server is not asked
  if (::statx(AT_FDCWD, mount_point.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &root) != 0) {
    return false;
  }
  const std::string file = fmt::format("/sys/fs/fuse/connections/{}/abort", root.stx_dev_minor);
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool aborted = ::write(fd, "1", 1) == 1;
  ::close(fd);
  return aborted;
}

}  // namespace savegate::fusefs
