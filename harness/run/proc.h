// What /proc tells of a process: identity, family, and where it waits.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace savegate::harness {

struct ProcStat {
  pid_t pid = 0;
  std::string command;  // comm
  char state = '?';
  pid_t parent = 0;
  pid_t session = 0;
  std::uint64_t start_ticks = 0;  // with pid, the identity of a process
};

std::optional<ProcStat> read_proc_stat(pid_t pid);  // nothing once it is gone
std::vector<ProcStat> list_processes();             // of this pid namespace
// Whether an entry of its environment begins so: "NAME=val".
bool environment_has(pid_t pid, std::string_view prefix);

// "state D, in fsync, at request_wait_answer": for the record of a rank that had to be killed.
// Parts that the kernel does not tell are left out.
std::string describe_wait(pid_t pid);

}  // namespace savegate::harness
