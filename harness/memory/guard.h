// A guard as job schedulers have: beyond its threshold of the limit it has the job's largest
// process killed, without asking. It counts all that the job's cgroup holds, page cache included,
// which the kernel itself would reclaim, but for what the file system's daemon allocated: that is
// none of the job's.
//
//   MemoryGuard guard(job.job(), job.file_system(), limit.allowed());
//   if (const auto held = guard.run(now)) …;   // at the latest at next_ns(); once
#pragma once

#include <cstdint>
#include <optional>

#include "harness/memory/cgroup.h"

namespace savegate::harness {

class MemoryGuard {
 public:
  MemoryGuard(CgroupPlace job, CgroupPlace file_system, std::uint64_t allowed)
      : job_(std::move(job)), file_system_(std::move(file_system)), allowed_(allowed) {}

  std::uint64_t allowed() const { return allowed_; }
  std::uint64_t next_ns() const { return next_ns_; }  // UINT64_MAX once it has acted
  // What the job holds, where that is too much. It acts once: who is killed frees what it held.
  std::optional<std::uint64_t> run(std::uint64_t now_ns);

 private:
  CgroupPlace job_;
  CgroupPlace file_system_;
  std::uint64_t allowed_;
  std::uint64_t next_ns_ = 0;
};

}  // namespace savegate::harness
