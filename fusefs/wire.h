// What libfuse 3.14 has no words for, put into the messages on their way to the kernel.
//
// The reply to INIT gets FUSE_DIRECT_IO_ALLOW_MMAP where the kernel offers it (shared mmap on
// handles with direct I/O), replies to open and create the flags of a ScopedOpenFlags of the same
// thread.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>

namespace savegate::fusefs::wire {

inline constexpr std::uint32_t kParallelDirectWrites = 1u << 6;

ssize_t read_request(int fd, void* buffer, std::size_t size, void* userdata);
ssize_t write_reply(int fd, struct iovec* parts, int count, void* userdata);

// Known after the first request.
bool direct_mmap();
// Before the first request.
void forbid_direct_mmap();

class ScopedOpenFlags {
 public:
  explicit ScopedOpenFlags(std::uint32_t flags);
  ~ScopedOpenFlags();
  ScopedOpenFlags(const ScopedOpenFlags&) = delete;
  ScopedOpenFlags& operator=(const ScopedOpenFlags&) = delete;
};

}  // namespace savegate::fusefs::wire
