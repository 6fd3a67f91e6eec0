// Mounting FUSE at a directory in this process's mount namespace, and taking it away for certain.
#pragma once

#include <string>

#include "faults/status.h"

namespace savegate::fusefs {

// As root: opens /dev/fuse and mounts it there. The descriptor is the session's.
Result<int> mount_fuse(const std::string& mount_point, const std::string& source);
// Whatever was opened as /dev/fuse may be something else in a container.
bool is_fuse_device(int fd);
// At once, whoever still uses it; what is not mounted is no error.
Result<void> unmount(const std::string& mount_point);
// All requests of the mount end with ECONNABORTED, also where its server no longer answers. False
// where /sys/fs/fuse/connections cannot be used.
bool abort_connection(const std::string& mount_point);
// The directory exists and no dead mount lies on it.
Result<void> check_mount_point(const std::string& mount_point);

}  // namespace savegate::fusefs
