// Where `savegate mount` listens and `savegate ctl MOUNT` calls: a folder that is its user's alone.
#pragma once

#include <string>

#include "faults/status.h"

namespace savegate::cli {

// In $XDG_RUNTIME_DIR, else in /tmp.
std::string default_control_socket(const std::string& mount_point);

// Nobody else can put a socket of his own into the folder, and be told what to do.
Result<void> check_private(const std::string& folder);
Result<void> make_private(const std::string& folder);

}  // namespace savegate::cli
