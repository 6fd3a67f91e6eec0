// What /proc says of one process: memory, threads, children, open files.
//
// The parsers take the files' texts and are pure. A line that a kernel does not write is a fact
// that is not obtained, never a 0. `smaps_rollup` is exact but walks all pages of the process
// (about 10 ms for each GiB of 4 KiB pages); `status` costs microseconds, and on many cores its
// counters lag by some MiB.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "harness/memory_record.h"

namespace savegate::harness {

// rss, rss_anon, rss_file, rss_shmem, rss_peak, locked, pinned (bytes), threads.
void read_status_text(std::string_view text, MemoryFacts& facts);
// pss, pss_anon, pss_file, pss_shmem, anonymous (bytes).
void read_smaps_rollup_text(std::string_view text, MemoryFacts& facts);

enum class Pages { kCounted, kWalked };  // without or with smaps_rollup

struct Measured {
  MemoryFacts facts;
  std::uint64_t processor_ns = 0;  // what it cost
};
// All of the above and open_files, deleted_files (open, without a name), children. No facts once
// the process is gone. Of one that is amid an exec or stuck in a driver the kernel shows `status`
// alone, and lets a reader of the rest wait: that is not obtained, after 1 s, or 10 s of walking.
Measured measure_process(pid_t pid, Pages pages);
// Of `status`, at once; nothing once it is gone.
std::optional<std::uint64_t> resident_bytes(pid_t pid);

// Bytes in use on /dev/shm, which all processes of the node share.
std::optional<std::uint64_t> shared_memory_used();

}  // namespace savegate::harness
