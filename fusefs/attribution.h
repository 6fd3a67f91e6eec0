// Whose request is it: caller thread → process → rank.
//
// The rank is that of RANK (or SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK) in the environment of
// the process or its nearest ancestor; the top-most process with that rank is the rank's own, those
// below it are its children. Ancestors are followed up to pid 1 or `stop_at`, whose environment
// does not count. What was found is kept by thread and holds while /proc/<tid>/exe stays the same:
// the link is read through a descriptor bound to that very thread, so neither a reused id nor an
// exec goes unnoticed.
//
// Of a rank's own process the environment is read once for each program, as that can wait: for its
// memory's lock, which a thread that is stuck in a driver may hold, or for the end of its exec.
//
// Thread-safe; `mutex_` is held for no system call.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "faults/operation.h"
#include "faults/plan.h"
#include "fusefs/process_info.h"

namespace savegate::fusefs {

// Reads of /proc, replaceable in tests.
struct ProcessSource {
  std::function<std::optional<ProcessStatus>(pid_t)> status = process_status;
  std::function<std::optional<int>(pid_t)> rank = process_rank;
};

struct Attributed {
  int rank = -1;
  faults::Relation relation = faults::Relation::kNone;
  pid_t pid = 0;   // process
  pid_t root = 0;  // the rank's own process; 0 where there is no rank
};
Attributed attribute(pid_t tid, pid_t stop_at, const ProcessSource& source);

class Attribution {
 public:
  explicit Attribution(pid_t stop_at);
  ~Attribution();
  Attribution(const Attribution&) = delete;
  Attribution& operator=(const Attribution&) = delete;

  faults::Caller caller(pid_t tid);
  // The same of who closes a file. An exec closes files, and until they are closed nobody can read
  // the environment of its process: what the process was before counts, else its ancestors.
  faults::Caller closer(pid_t tid);
  // The process says itself which rank it is (a mark); `tid` is its caller afterwards.
  faults::Caller caller_as(pid_t tid, int rank);

  // The processes that a kill rule means, each with its identity; those that are gone are left out.
  struct Process {
    pid_t pid;
    std::uint64_t start_ticks;
  };
  std::vector<Process> targets(const faults::Caller& caller, faults::KillTarget target) const;

 private:
  struct Cached;
  std::shared_ptr<const Cached> cached(pid_t tid) const;
  std::optional<int> member_rank(pid_t pid) const;
  std::optional<int> rank_of(pid_t pid) const;
  void recall(pid_t tid, Attributed& found) const;
  enum class Known : std::uint8_t { kByEnvironment, kByItsWord };
  void remember(const Attributed& found, Known how);

  const pid_t stop_at_;
  mutable std::shared_mutex mutex_;
  std::unordered_map<pid_t, std::shared_ptr<const Cached>> threads_;
  struct Member {
    std::uint64_t start_ticks;
    int rank;
    pid_t root;
    std::string exe;  // the program whose environment says so, "" for the process's own word
  };
  void keep(pid_t pid, Member member);
  std::map<pid_t, Member> members_;  // every process of any rank
};

// Sends the signal to exactly these processes. 0, or the errno of the first that failed for another
// reason than being gone.
int send_signal(const std::vector<Attribution::Process>& targets, int signal);

}  // namespace savegate::fusefs
