// The sampler: measures the ranks' processes from outside at the end of each phase, and writes a
// record for every one of them.
//
// A phase has ended when the runner sees the rank's event; the rank goes on meanwhile, so a record
// says when it was measured. What is measured is the process as it is at a step's boundaries, not
// its peaks: those the kernel keeps (VmHWM, the cgroup's peak). Walking a large process costs, so
// the next walk of a rank's pages waits for twenty times the processor time of the last: in between
// its pages are as counted, and sampling stays about 5 % of one core for each rank. A rank that
// ends before its phase could be measured gets a record that says so. At its end the cgroup tells
// how often the kernel has killed in it meanwhile; at the end of a job with a cgroup of its own,
// what the whole job held at its peak.
//
//   sampler.watch(rank, pid);
//   sampler.on_event_line(rank, line);
//   sampler.run(now);                    // at the latest at next_ns()
//   sampler.ended(rank);
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/memory/job_cgroup.h"
#include "harness/memory/proc_memory.h"

namespace savegate::harness {

struct PhaseEnd {
  std::string phase;
  std::optional<std::int64_t> step;
};
// The phase that the event on the line ends, nothing if it ends none. It only looks: whether the
// line is well formed is for the oracles to say.
std::optional<PhaseEnd> phase_ended_by(std::string_view line);
// The pid of a `hello` line.
std::optional<pid_t> pid_said_by(std::string_view line);

class MemorySampler {
 public:
  // Appends to the file at `path`. `job`: where the ranks have cgroups of their own.
  static Result<MemorySampler> create(const std::string& path, const JobCgroup* job = nullptr);

  void watch(int rank, pid_t pid);
  // A rank that nobody told of is watched from its `hello` on.
  void on_event_line(int rank, std::string_view line);
  // Measures what is due.
  void run(std::uint64_t now_ns);
  // When run() is next to be called; UINT64_MAX while there is nothing to wait for.
  std::uint64_t next_ns() const;
  // The rank has ended, its process may be gone. Once a rank.
  void ended(int rank);
  Result<void> finish();

 private:
  struct Pending {
    PhaseEnd end;
    std::uint64_t event_ns;
  };
  struct Target {
    pid_t pid = 0;
    std::optional<CgroupPlace> cgroup;
    std::optional<std::uint64_t> oom_kills;  // in the cgroup, before the rank was
    std::vector<Pending> pending;
    std::uint64_t due_ns = 0;   // not measured before
    std::uint64_t walk_ns = 0;  // its pages not walked before
    std::uint64_t running_ns = 0;
  };

  MemorySampler() = default;
  MemoryRecord record_of(int rank, const Target& target, const char* phase) const;
  void write_end(int rank, const Target& target);
  void write_job();
  void measure(int rank, Target& target, std::uint64_t now_ns);
  void write(int rank, const Target& target, const PhaseEnd& end, std::uint64_t event_ns,
             std::uint64_t time_ns, const MemoryFacts& facts);

  std::string path_;
  std::ofstream file_;
  std::string node_;
  const JobCgroup* job_ = nullptr;
  std::map<int, Target> targets_;
};

}  // namespace savegate::harness
