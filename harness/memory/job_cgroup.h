// A memory cgroup for the job of one life: what all of it holds, page cache of its files included.
//
//   savegate-…/            the job: what a guard counts
//     ranks/               where the kernel's own limit is set
//       rank-0/ rank-1/    one for each rank: which of them the kernel killed
//     fs/                  the file system's daemon, which the files' page cache is charged to
//
// Its folders go with the object. What a runner left that was killed is removed by the next one
// beside it: each holds a lock on its folder for as long as it lives.
#pragma once

#include <string>
#include <vector>

#include "harness/memory/cgroup.h"
#include "harness/run/unique_fd.h"

namespace savegate::harness {

class JobCgroup {
 public:
  // Below this process's own, or beside it. Code::kUnavailable with the reason where none may be
  // made.
  static Result<JobCgroup> create(int ranks);
  JobCgroup(JobCgroup&&) noexcept = default;
  JobCgroup& operator=(JobCgroup&&) = delete;
  ~JobCgroup();

  CgroupPlace job() const { return {version_, directory_}; }
  CgroupPlace rank(int rank) const;
  CgroupPlace file_system() const { return {version_, directory_ + "/fs"}; }
  // The kernel kills a rank where they need more than this together and nothing can be reclaimed.
  Result<void> limit_ranks(std::uint64_t bytes) const;
  Result<void> add_file_system(pid_t pid) const;
  // The command, begun within the rank's cgroup.
  std::vector<std::string> begun_in(int rank, const std::vector<std::string>& command) const;

 private:
  JobCgroup(CgroupVersion version, std::string directory, UniqueFd lock)
      : version_(version), directory_(std::move(directory)), lock_(std::move(lock)) {}
  std::string ranks() const { return directory_ + "/ranks"; }

  CgroupVersion version_;
  std::string directory_;
  UniqueFd lock_;
};

}  // namespace savegate::harness
