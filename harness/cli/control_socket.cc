#include "harness/cli/control_socket.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>

namespace savegate::cli {

namespace fs = std::filesystem;

std::string default_control_socket(const std::string& mount_point) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime != nullptr && *runtime != '\0'
                                 ? std::string(runtime) + "/savegate"
                                 : fmt::format("/tmp/savegate-{}", getuid());
  std::error_code ignored;
  const std::string absolute = fs::absolute(mount_point, ignored).lexically_normal().string();
  return fmt::format("{}/mount-{:016x}.sock", folder, std::hash<std::string>{}(absolute));
}

Result<void> check_private(const std::string& folder) {
  struct stat attributes {};
  if (::lstat(folder.c_str(), &attributes) != 0) {
    if (errno == ENOENT) return {};
    return fail(system_error("stat", folder));
  }
  if (S_ISDIR(attributes.st_mode) && attributes.st_uid == ::geteuid() &&
      (attributes.st_mode & 0077) == 0) {
    return {};
  }
  return fail(unavailable(
      "the folder of the control socket must belong to you alone (mode 0700); remove it, or name "
      "a socket elsewhere with --control",
      folder, EPERM));
}

Result<void> make_private(const std::string& folder) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  if (error) return fail(system_error("mkdir", folder, error.value()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(system_error("mkdir", folder));
  }
  return check_private(folder);
}

}  // namespace savegate::cli
