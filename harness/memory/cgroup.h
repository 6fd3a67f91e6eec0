// A memory cgroup, version 1 or 2: where one is, what it says, and one made for a job's ranks.
//
// The parsers take the files' texts and are pure; both versions give the same facts. A version that
// does not tell a fact leaves it not obtained.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "harness/memory_record.h"

namespace savegate::harness {

enum class CgroupVersion : std::uint8_t { kOne, kTwo };

// The texts of a memory cgroup's files; "" for one that is not there.
struct CgroupTexts {
  std::string current;  // memory.current, memory.usage_in_bytes
  std::string peak;     // memory.peak, memory.max_usage_in_bytes
  std::string events;   // memory.events, memory.oom_control
  std::string stat;     // memory.stat
  std::string limit;    // memory.max, memory.limit_in_bytes
};

// cgroup_current, cgroup_peak, cgroup_anon, cgroup_file, cgroup_shmem, cgroup_limit (bytes; absent
// where there is none), cgroup_oom_kills. cgroup_file is the page cache, without shared memory.
void read_cgroup_texts(CgroupVersion version, const CgroupTexts& texts, MemoryFacts& facts);

struct CgroupPlace {
  CgroupVersion version = CgroupVersion::kTwo;
  std::string directory;  // "/sys/fs/cgroup/memory/job"
};

// Where a process is, from the texts of /proc/PID/cgroup and /proc/self/mountinfo. Nothing where no
// memory controller is mounted.
std::optional<CgroupPlace> find_memory_cgroup(std::string_view cgroup, std::string_view mountinfo);
std::optional<CgroupPlace> memory_cgroup_of(pid_t pid);

// As its limit is held against: anonymous memory, page cache and what the kernel holds for it.
std::optional<std::uint64_t> memory_held(const CgroupPlace& place);
// Of that, what its processes allocated.
std::optional<std::uint64_t> anonymous_held(const CgroupPlace& place);
// How many of its own processes the kernel has killed for want of memory.
std::optional<std::uint64_t> oom_kills_in(const CgroupPlace& place);
MemoryFacts measure_cgroup(const CgroupPlace& place);

}  // namespace savegate::harness
