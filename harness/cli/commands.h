// The commands of `savegate`, one function and one file each. They return the exit code.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace savegate::cli {

int run_command(const std::vector<std::string>& names, const Options& options);
int judge_command(const std::string& run_directory);
int list_command(const std::string& what);
int mount_command(const std::string& backing, const std::string& mount_point,
                  const std::string& plan, const std::string& control, bool background);
int ctl_command(const std::string& mount_or_socket, const std::vector<std::string>& words,
                bool defer);
int doctor_command(const std::string& store);
int selftest_command(const std::string& controls, const std::vector<std::string>& names,
                     const Options& options);

// Where `savegate mount` listens and `savegate ctl MOUNT` calls: private to the user.
std::string default_control_socket(const std::string& mount_point);

}  // namespace savegate::cli
