// What a mount is started with, and the call that runs one until it is told to end.
//
//   DaemonOptions options{.backing = "/data", .mount = "/mnt", .control = "/run/sg.sock"};
//   Result<void> ended = run_daemon(options);   // returns once unmounted
//
// run_daemon() owns the process meanwhile: it sets the umask, raises RLIMIT_NOFILE and takes
// SIGTERM and SIGINT (both end the mount). It mounts in the mount namespace that it was started in.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "faults/status.h"

namespace savegate::fusefs {

struct DaemonOptions {
  std::string backing = {};  // existing directory whose content the mount shows
  std::string mount = {};    // existing directory
  std::string control = {};  // Unix socket to be made (control.h)
  std::string plan = {};     // TOML file armed at start, "" for none
  std::string layout = {};   // TOML file with a [layout] table, "" for none
  int life = 1;
  std::string trace = {};   // file to be made, "" for none
  std::string fired = {};   // file to be appended to, "" for none
  bool passthrough = true;  // the kernel reads and writes files that no rule needs to see
  // An operation that is held for longer aborts the mount, so that nothing waits for ever; 0: none.
  std::chrono::nanoseconds hold_limit{0};
  int ready_fd = -1;     // gets "ready\n" when mounted and listening
  pid_t parent_pid = 0;  // the mount ends when this process does; 0: nobody's
};

Result<void> run_daemon(const DaemonOptions& options);

}  // namespace savegate::fusefs
