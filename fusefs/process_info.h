// What /proc says of a process, as far as attribution needs it. Parsing is pure.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace savegate::fusefs {

struct ProcessStatus {
  pid_t tgid = 0;
  pid_t ppid = 0;
  bool dying = false;  // SIGKILL is pending, or it is exiting and has no memory any more
};

std::optional<ProcessStatus> parse_status(std::string_view text);       // /proc/N/status
std::optional<std::uint64_t> parse_start_ticks(std::string_view text);  // /proc/N/stat, field 22
// RANK, else SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK of a NUL-separated environment.
std::optional<int> rank_from_environment(std::string_view environment);

// Of /proc/N/syscall of a thread that waits for a read: it is not in a call that reads, so that the
// pages of a mapping are filled. Nothing where it does not say.
std::optional<bool> parse_fills_pages(std::string_view text);

std::optional<ProcessStatus> process_status(pid_t tid);
bool fills_pages(pid_t tid);  // false where the thread is gone or not ours
std::optional<std::uint64_t> start_ticks(pid_t pid);
std::optional<int> process_rank(pid_t pid);
// Children, their children, and so on, of all of these.
std::vector<pid_t> descendants(const std::vector<pid_t>& ancestors);

}  // namespace savegate::fusefs
