// What /proc tells of a process: identity, family, and where it waits. No call waits for a process
// whose exec does not end, or that is stuck in a driver.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace savegate::harness {

struct ProcStatus {
  pid_t pid = 0;
  std::string command;  // comm
  char state = '?';
  pid_t parent = 0;
  pid_t session = 0;
};

std::optional<ProcStatus> read_proc_status(pid_t pid);  // nothing once it is gone
std::vector<ProcStatus> list_processes();               // of this pid namespace
// With its pid a process' identity; nothing once it is gone.
std::optional<std::uint64_t> read_start_ticks(pid_t pid);
// Whether an entry of its environment begins so: "NAME=val".
bool environment_has(pid_t pid, std::string_view prefix);

// "state D, in fsync, at request_wait_answer": for the record of a rank that had to be killed.
// Parts that the kernel does not tell are left out.
std::string describe_wait(pid_t pid);

}  // namespace savegate::harness
