// A process of the run: started quickly, in a session of its own, watched through a pidfd.
//
// No tie to the parent's death is set here: the sandbox's pid namespace ends with the runner and
// takes every process with it, children and daemons of the ranks included.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "faults/status.h"
#include "harness/run/unique_fd.h"

namespace savegate::harness {

struct SpawnRequest {
  std::vector<std::string> command;      // command[0] is looked up in PATH
  std::vector<std::string> environment;  // all of it, "NAME=value"
  std::string directory;                 // "" keeps the runner's
  int output = -1;                       // stdout; stderr too unless `errors` is given
  int errors = -1;
  int passed = -1;  // handed on as descriptor 3
};

struct ExitStatus {
  std::optional<int> code;  // exactly one of the two is there
  std::optional<int> signal;
};

constexpr std::uint64_t kSecond = 1'000'000'000;  // ns

class Process {
 public:
  static Result<Process> spawn(const SpawnRequest& request);
  // A process of others that has this one for its parent.
  static Result<Process> adopt(pid_t pid, std::uint64_t started_ns);
  Process(Process&&) noexcept = default;
  Process& operator=(Process&&) noexcept = default;

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }  // readable once it has ended
  std::uint64_t start_ticks() const { return start_ticks_; }
  std::uint64_t started_ns() const { return started_ns_; }
  // Reaps it if it has ended. The status is kept: later calls give it again.
  std::optional<ExitStatus> try_wait();
  // Waits at most so long.
  std::optional<ExitStatus> wait_for(std::uint64_t nanoseconds);
  // The process and its group. Nothing once it was reaped.
  void kill_group(int signal) const;

 private:
  Process() = default;
  pid_t pid_ = 0;
  UniqueFd pidfd_;
  std::uint64_t start_ticks_ = 0;
  std::uint64_t started_ns_ = 0;
  std::optional<ExitStatus> status_;
};

// Reaps ended children that were not spawned here: orphans that came to pid 1 of the sandbox.
void reap_orphans();

// The file that would be executed; Code::kUnavailable where there is none.
Result<std::string> find_executable(const std::string& name);

// This process's environment with `changes` over it ("NAME=value" each).
std::vector<std::string> environment_with(const std::vector<std::string>& changes);

}  // namespace savegate::harness
