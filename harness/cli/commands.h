// The commands of `savegate`, one function and one file each. They return the exit code.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/options.h"

namespace savegate::cli {

int run_command(const std::vector<std::string>& names, const Options& options);
int judge_command(const std::string& run_directory);
int list_command(const std::string& what);
struct MountWords {
  std::string backing;
  std::string mount_point;
  std::string plan;     // file, "" for none
  std::string preset;   // "full-disk:limit=64MiB", "" for none
  std::string control;  // socket, "" for the default
  bool background = false;
};
int mount_command(const MountWords& words);
int ctl_command(const std::string& mount_or_socket, const std::vector<std::string>& words,
                bool defer);
int doctor_command(const std::string& store);
int selftest_command(const std::string& controls, const std::vector<std::string>& names,
                     const Options& options);

// Where `savegate mount` listens and `savegate ctl MOUNT` calls: private to the user.
std::string default_control_socket(const std::string& mount_point);

}  // namespace savegate::cli
